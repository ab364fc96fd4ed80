"""Sets of characters closed under the case rules of a dialect.

Each rule gives every character a key; characters with equal keys match each other when case is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .charset import CharSet
from .unicode_text import cased_text

Fold = Callable[[CharSet], CharSet]


def fold_ecma(chars: CharSet) -> CharSet:
    """ECMA-262 `Canonicalize` with the flags `iu`: simple case folding (Unicode CaseFolding.txt, status C and S)."""
    return _closure(chars, _ecma_classes())


def fold_python(chars: CharSet) -> CharSet:
    """`re.IGNORECASE` on text: equal simple lowercase, or lowercase letters with the same uppercase."""
    return _closure(chars, _python_classes())


def fold_ascii(chars: CharSet) -> CharSet:
    """`re.IGNORECASE | re.ASCII`: the letters A-Z and a-z."""
    return _closure(chars, _ascii_classes())


Classes = tuple[CharSet, dict[int, CharSet]]


def _closure(chars: CharSet, classes: Classes) -> CharSet:
    cased, class_of = classes
    ranges = list(chars.ranges)
    for low, high in (chars & cased).ranges:
        for code_point in range(low, high + 1):
            ranges.extend(class_of[code_point].ranges)
    return CharSet.of(ranges)


def _group(key_of: dict[int, int | str]) -> Classes:
    members: dict[int | str, list[int]] = {}
    for code_point, key in key_of.items():
        members.setdefault(key, []).append(code_point)
    class_of: dict[int, CharSet] = {}
    for group in members.values():
        if len(group) > 1:
            whole = CharSet.of([(code_point, code_point) for code_point in group])
            for code_point in group:
                class_of[code_point] = whole
    return CharSet.of([(code_point, code_point) for code_point in class_of]), class_of


@cache
def _ecma_classes() -> Classes:
    return _group({ord(char): _simple_fold(char) for char in cased_text()})


def _simple_fold(char: str) -> int | str:
    folded = char.casefold()
    if len(folded) == 1:
        return ord(folded)
    # A full folding to several characters is status F; status S, if any, then is the simple lowercase mapping.
    lower = char.lower()
    if len(lower) == 1 and lower.casefold() == folded:
        return ord(lower)
    return ord(char)


@cache
def _python_classes() -> Classes:
    lower_of = {ord(char): _simple_lower(char) for char in cased_text()}
    key_of: dict[int, int | str] = {code_point: chr(lower).upper() for code_point, lower in lower_of.items()}
    return _group(key_of)


def _simple_lower(char: str) -> int:
    # U+0130 is the only character with a longer full mapping; its simple mapping is the first character of it.
    return ord(char.lower()[0])


@cache
def _ascii_classes() -> Classes:
    return _group({ord(char): char.lower() for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"})
