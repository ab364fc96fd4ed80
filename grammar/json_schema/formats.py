"""The formats of JSON Schema as sets of strings.

Every language holds only valid values. Most hold all of them; the exceptions, each on the side of fewer values:

  - `hostname`, `idn-hostname`: no labels with hyphens at the third and fourth place, `xn--` among them; see
    `formats_idna` for the others.
  - `idn-email`: at most 16 to 64 characters before the `@`, depending on the widest one.
  - `regex`: see `formats_regex`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ..regex import Language
from . import formats_idna, formats_net, formats_time
from .formats_host import HostName
from .formats_regex import EcmaPattern

_FORMATS: dict[str, Callable[[], Language]] = {
    "date-time": formats_time.date_time,
    "date": lambda: Language.pattern(formats_time.DATE),
    "time": formats_time.time,
    "duration": lambda: Language.pattern(formats_time.DURATION),
    "email": formats_net.email,
    "idn-email": formats_net.idn_email,
    "hostname": lambda: Language.recognized(HostName()),
    "idn-hostname": lambda: Language.recognized(HostName()) | formats_idna.idn_hostname(),
    "ipv4": lambda: Language.pattern(formats_net.IPV4),
    "ipv6": lambda: Language.pattern(formats_net.IPV6),
    "uri": lambda: formats_net.resource_identifier(reference=False),
    "uri-reference": lambda: formats_net.resource_identifier(reference=True),
    "iri": lambda: formats_net.resource_identifier(reference=False, beyond_ascii=formats_net.UCSCHAR, private=formats_net.IPRIVATE),
    "iri-reference": lambda: formats_net.resource_identifier(
        reference=True, beyond_ascii=formats_net.UCSCHAR, private=formats_net.IPRIVATE
    ),
    "uri-template": lambda: Language.pattern(formats_net.URI_TEMPLATE),
    "uuid": lambda: Language.pattern(formats_net.UUID),
    "json-pointer": lambda: Language.pattern(formats_net.JSON_POINTER),
    "relative-json-pointer": lambda: Language.pattern(formats_net.RELATIVE_JSON_POINTER),
    "regex": lambda: Language.recognized(EcmaPattern()),
}

FORMAT_NAMES = tuple(_FORMATS)


@lru_cache(maxsize=len(_FORMATS))
def _language(name: str) -> Language:
    return _FORMATS[name]()


def format_language(name: str) -> Language | None:
    """The values of a format, made once per process; None for a name that the standard does not define (an annotation)."""
    return _language(name) if name in _FORMATS else None
