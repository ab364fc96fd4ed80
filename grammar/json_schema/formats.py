"""The formats of JSON Schema as sets of strings.

Every language holds only valid values. Most hold all of them; where one does not, its outer language holds all that may be valid, so that
`not` and `oneOf` let nothing in either:

  - `hostname`, `idn-hostname`: see `formats_host` and `formats_idna`.
  - `idn-email`: at most 16 to 64 characters before the `@`, depending on the widest one.
  - `regex`: see `formats_regex`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ..regex import Language
from . import formats_idna, formats_net, formats_time
from .formats_host import MAX_HOST, HostName
from .formats_net import LABEL
from .formats_regex import EcmaPattern

_BEYOND_ASCII = Language.pattern(r"[^]*[^\0-\x7F][^]*")
# What may be a pattern though `EcmaPattern` leaves it out: names, modifiers, large numbers, ranges of unknown characters, deep nesting.
_RARE_PATTERN = Language.pattern(r"[^]*(?:\(\?[<a-z\-]|[0-9]{3}|\\u[dD]|[^\0-\x7F]-)[^]*|(?:[^(]*\(){100}[^]*")


def _host_name() -> Language:
    """What the outer language has more: `xn--` labels in upper case, and those whose last octets are the last that fit."""
    known = Language.recognized(HostName())
    named = Language.pattern(r"(?:[^.]*\.)*[xX][nN]--[^]*") & Language.pattern(rf"{LABEL}(?:\.{LABEL})*") & Language.length(1, MAX_HOST)
    return Language.between(known, known | named)


def _pattern() -> Language:
    known = Language.recognized(EcmaPattern())
    return Language.between(known, known | _RARE_PATTERN)


_FORMATS: dict[str, Callable[[], Language]] = {
    "date-time": formats_time.date_time,
    "date": lambda: Language.pattern(formats_time.DATE),
    "time": formats_time.time,
    "duration": lambda: Language.pattern(formats_time.DURATION),
    "email": formats_net.email,
    "idn-email": lambda: Language.between(formats_net.idn_email(), Language.pattern("[^]*@[^]*") & (formats_net.email() | _BEYOND_ASCII)),
    "hostname": _host_name,
    "idn-hostname": lambda: _host_name() | Language.between(formats_idna.idn_hostname(), _BEYOND_ASCII),
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
    "regex": _pattern,
}

FORMAT_NAMES = tuple(_FORMATS)


@lru_cache(maxsize=len(_FORMATS))
def _language(name: str) -> Language:
    return _FORMATS[name]()


def format_language(name: str) -> Language | None:
    """The values of a format, made once per process; None for a name that the standard does not define (an annotation)."""
    return _language(name) if name in _FORMATS else None
