r"""Unicode properties for `\p{...}`, by the exact names of ECMA-262 (sections 22.2.1 and 22.2.2.9, `UnicodeMatchProperty`).

The characters are in `unicode_properties.txt`, which says from which version of Unicode they are: not in the tables of the running
Python, which know no scripts and change with it. Lines are decoded when they are asked for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .charset import CharSet, Range

UNICODE_VERSION = "17.0"

_KEYS = {"General_Category": "gc", "gc": "gc", "Script": "sc", "sc": "sc", "Script_Extensions": "scx", "scx": "scx"}


def unicode_property(name: str, value: str | None = None) -> CharSet | None:
    """The characters with a property; None if there is none of that name.

    Args:
        name: a value of General_Category, or a binary property, without `value`; else General_Category, Script or Script_Extensions.
        value: of that property.
    """
    if value is None:
        found = _characters("gc", name)
        return _characters("bin", name) if found is None else found
    kind = _KEYS.get(name)
    if kind is None:
        return None
    found = _characters(kind, value)
    return _characters("sc", value) if found is None and kind == "scx" else found


@cache
def property_texts() -> tuple[str, ...]:
    """All that may stand in the braces of `\\p{...}`, sorted."""
    texts: set[str] = set()
    for kind, name in _lines():
        if kind in ("gc", "bin"):
            texts.add(name)
        keys = ("sc", "scx") if kind == "sc" else (kind,)
        texts.update(f"{key}={name}" for key, of in _KEYS.items() if of in keys)
    return tuple(sorted(texts))


@cache
def _lines() -> dict[tuple[str, str], str]:
    """The ranges as written, by kind and name."""
    text = Path(__file__).with_name("unicode_properties.txt").read_text(encoding="utf-8")
    lines: dict[tuple[str, str], str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            kind, names, *ranges = line.split(" ", 2)
            for name in names.split(","):
                lines[kind, name] = "".join(ranges)
    return lines


@cache
def _known(kind: str, name: str) -> CharSet:
    ranges: list[Range] = []
    end = 0
    for word in _lines()[kind, name].split():
        gap, _, further = word.partition(",")
        first = end + int(gap, 36)
        end = first + (int(further, 36) if further else 0) + 1
        ranges.append((first, end - 1))
    return CharSet.of(ranges)


def _characters(kind: str, name: str) -> CharSet | None:
    return _known(kind, name) if (kind, name) in _lines() else None
