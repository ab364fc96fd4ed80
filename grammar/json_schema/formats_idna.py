"""Internationalised host names of IDNA 2008, read character by character: RFC 5890 to 5893.

The rules are checked on U-labels. Where one of them can't be decided from a few facts about the characters so far, the names are fewer than
the standard allows, never more:

  - only the Basic Multilingual Plane;
  - a label is in NFC because characters that can compose with their predecessor are left out, and marks stand in an order that is decided
    by groups of combining classes;
  - the length of a label's A-form is bounded through the number of its characters, and a name has at most four labels;
  - labels that start with `xn--` are left out here: `formats_host` has them;
  - ZERO WIDTH NON-JOINER stands behind a virama or between letters of the Arabic and Persian alphabets.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from ..languages import Run
from ..regex import CharSet, Language
from .labels import (
    ARABIC_DIGITS,
    CONJOINING,
    EXTENDED_ARABIC_DIGITS,
    EXTRA_INVALID,
    EXTRA_VALID,
    GERESH,
    IGNORABLE,
    JOINER,
    JOINING_BEFORE,
    JOINING_BOTH_SIDES,
    KATAKANA_DOT,
    KERAIA,
    MIDDLE_DOT,
    NEUTRAL,
    NON_JOINER,
    RIGHT_TO_LEFT,
    VIRAMA_CLASS,
    Reading,
    is_stable_letter_or_digit,
)

_HYPHEN, _L = 0x2D, 0x6C
_NARROW = (_HYPHEN, *range(0x30, 0x3A), *range(0x61, 0x7B))
_LAST_CODE_POINT = 0xFFFF
_SPECIAL = frozenset((_HYPHEN, _L, MIDDLE_DOT, KERAIA, KATAKANA_DOT, NON_JOINER, JOINER))
_CONTEXTUAL = frozenset((MIDDLE_DOT, KERAIA, KATAKANA_DOT, *GERESH, *ARABIC_DIGITS, *EXTENDED_ARABIC_DIGITS, NON_JOINER, JOINER))
# Ideographs and syllables that have been valid since Unicode 11: asking for each of them would take most of the time.
_VALID_BLOCKS = (range(0x3400, 0x4DB6), range(0x4E00, 0x9FF0), range(0xAC00, 0xD7A4))

# Four labels and three dots stay within the 253 octets of a name.
_MAX_LABELS = 4
_MAX_LABEL_OCTETS = 62

# Combining classes after which marks are told apart. Two different marks of one group do not follow one another.
_ORDERS = (0, 1, 6, 7, 8, 9, 36, 132, 218, 220, 228, 230, 255)

# Letters that complete a label: whatever is begun, at most three of them end it.
_ENDINGS = "al\u03b2\u4e00\u05d0\u0628"
_MAX_ENDING = 3

_Ranges = tuple[tuple[int, int], ...]


class _Kind(NamedTuple):
    """What the rules know of a character.

    Attributes:
        special: the character itself, where it has a rule of its own.
        is_wide: beyond ASCII.
        is_mark: can't stand first.
        order: canonical combining class.
        direction: bidirectional class.
        joins: "both" sides, or "before" it only, or "".
        script: "greek", "hebrew", "kana" (what a katakana dot asks for), or "".
        digits: 1 Arabic, 2 extended Arabic, else 0.
    """

    special: int | None
    is_wide: bool
    is_mark: bool
    order: int
    direction: str
    joins: str
    script: str
    digits: int

    @staticmethod
    def of(char: str) -> _Kind:
        code, name = ord(char), unicodedata.name(char, "")
        scripts = {"greek": ("GREEK ",), "hebrew": ("HEBREW ",), "kana": ("HIRAGANA ", "KATAKANA LETTER ", "CJK UNIFIED IDEOGRAPH-")}
        return _Kind(
            code if code in _SPECIAL else GERESH[0] if code in GERESH else None,
            code >= 0x80,
            unicodedata.category(char) in ("Mn", "Mc"),
            unicodedata.combining(char),
            unicodedata.bidirectional(char),
            "both" if code in JOINING_BOTH_SIDES else "before" if code in JOINING_BEFORE else "",
            next((script for script, starts in scripts.items() if name.startswith(starts)), ""),
            1 if code in ARABIC_DIGITS else 2 if code in EXTENDED_ARABIC_DIGITS else 0,
        )


@cache
def _alphabet() -> tuple[tuple[_Ranges, _Kind], ...]:
    """The characters of labels, by kind."""
    found: dict[_Kind, list[tuple[int, int]]] = {}
    for char in _single_characters():
        found.setdefault(_Kind.of(char), []).append((ord(char), ord(char)))
    for block in _VALID_BLOCKS:
        found.setdefault(_Kind.of(chr(block[0])), []).append((block[0], block[-1]))
    return tuple((CharSet.of(ranges).ranges, kind) for kind, ranges in found.items())


def _single_characters() -> list[str]:
    """What a label may hold outside of `_VALID_BLOCKS`: PVALID of RFC 5892, less what composes, and what needs a context."""
    in_block = (code for block in _VALID_BLOCKS for code in block)
    skipped = frozenset((*in_block, *EXTRA_INVALID, *IGNORABLE, *CONJOINING, *_composing_characters()))
    valid = (code for code in range(0x80, _LAST_CODE_POINT + 1) if code not in skipped and is_stable_letter_or_digit(chr(code)))
    return list(map(chr, sorted({*_NARROW, *EXTRA_VALID, *_CONTEXTUAL, *valid})))


def _composing_characters() -> frozenset[int]:
    """Second halves of canonical compositions: without them, a label in canonical order is in NFC."""
    pairs = ((char, unicodedata.decomposition(char).split()) for char in map(chr, range(0xC0, _LAST_CODE_POINT + 1)))
    found = {int(parts[1], 16) for char, parts in pairs if len(parts) == 2 and not parts[0].startswith("<") and _is_composed(char)}
    return frozenset(found)


def _is_composed(char: str) -> bool:
    return unicodedata.normalize("NFC", char) == char


@cache
def max_a_label_octets(num_wide: int, num_narrow: int) -> int:
    """An upper bound for the A-form of a label with so many characters beyond ASCII and within.

    The form is `xn--`, the ASCII characters, a hyphen, and one variable-length integer for each other character. In the
    least favourable state of the adaptation (RFC 3492, section 6.1), 2, 3, 4, ... digits are needed from the values 1, 36,
    1261, 28886, ... on; all integers together sum up to less than the range of code points times one more than the length.
    """
    thresholds = (0, 1, 36, 1261, 28886, 288886, 2888886, 28888886)
    available = (_LAST_CODE_POINT - 0x80) * (num_wide + num_narrow + 1)
    digits = num_wide
    for lower, upper in pairwise(thresholds):
        upgraded = min(num_wide, available // (upper - lower))
        available -= upgraded * (upper - lower)
        digits += upgraded
    return len("xn--") + num_narrow + (num_narrow > 0) + digits


class _Direction(NamedTuple):
    """How a label reads (RFC 5893, section 2).

    Attributes:
        is_free: it has no character that reads from right to left.
        left, right: it can still be a label of either direction in a name that has such characters.
        numbers: "EN" or "AN" once it has such digits, of which a label from right to left has one kind.
        last: whether a label of either direction may end with the last character, non-spacing marks apart; None before the first.
    """

    is_free: bool = True
    left: bool = True
    right: bool = True
    numbers: str = ""
    last: tuple[bool, bool] | None = None

    def after(self, kind: _Kind) -> _Direction:
        turn = kind.direction
        left = turn == "L" if self.last is None else self.left and (turn == "L" or turn in NEUTRAL)
        right = turn in RIGHT_TO_LEFT if self.last is None else self.right and (turn in RIGHT_TO_LEFT or turn in NEUTRAL or turn == "AN")
        numbers = turn if right and turn in ("EN", "AN") else self.numbers
        if kind.special == KATAKANA_DOT or (self.numbers and numbers != self.numbers):
            right = False  # the letters that the dot asks for read from left to right
        is_free = self.is_free and turn not in ("R", "AL", "AN")
        ends = self.last if turn == "NSM" and self.last else (turn in ("L", "EN"), turn in (*RIGHT_TO_LEFT, "EN", "AN"))
        return _Direction(is_free, left, right, numbers if right else "", (left and ends[0], right and ends[1]))

    @property
    def reading(self) -> Reading:
        """Of the label, if it ends here."""
        return Reading(self.is_free, self.last is not None and any(self.last))


class _Label(NamedTuple):
    """Inside a label.

    Attributes:
        narrow, wide: how many characters of ASCII and beyond it has.
        before: what the last character is to the next one: "hyphen", "l", "virama", "both" (joins on both sides), "hebrew" or "".
        order: combining class of the last character, or the last one of a group of classes that are not told apart.
        needs: what must come next: "l", "greek", "joining" or "".
        kana: "dot" as long as a katakana dot waits for a letter, "letter" once there is one.
        digits: which kind of Arabic digits it has.
        direction: how it reads.
    """

    narrow: int = 0
    wide: int = 0
    before: str = ""
    order: int = 0
    needs: str = ""
    kana: str = ""
    digits: int = 0
    direction: _Direction = _Direction()

    def after(self, kind: _Kind) -> _Label | None:
        """With one more character; None where that is against a rule."""
        is_first = not self.narrow and not self.wide
        if is_first and (kind.is_mark or kind.special == _HYPHEN):
            return None
        if not self._takes(kind) or (kind.order and kind.order < self.order):
            return None
        if kind.digits and self.digits not in (0, kind.digits):
            return None
        narrow, wide = self.narrow + (not kind.is_wide), self.wide + kind.is_wide
        if (max_a_label_octets(wide, narrow) if wide else narrow) > _MAX_LABEL_OCTETS:
            return None
        return _Label(
            narrow,
            wide,
            _before(kind),
            next(last for last in _ORDERS if kind.order <= last),
            self._needs_behind(kind),
            self._kana_behind(kind),
            kind.digits or self.digits,
            self.direction.after(kind),
        )

    def _takes(self, kind: _Kind) -> bool:
        """RFC 5892, appendix A, and RFC 5891, section 4.2.3.1."""
        special = kind.special
        if self.needs:
            return {"l": special == _L, "greek": kind.script == "greek", "joining": kind.joins != ""}[self.needs]
        if special == _HYPHEN:
            return not (self.before == "hyphen" and self.narrow + self.wide == 3)
        if special == MIDDLE_DOT:
            return self.before == "l"
        if special == GERESH[0]:
            return self.before == "hebrew"
        if special == NON_JOINER:
            return self.before in ("virama", "both")
        return special != JOINER or self.before == "virama"

    def _needs_behind(self, kind: _Kind) -> str:
        if kind.special == MIDDLE_DOT:
            return "l"
        if kind.special == KERAIA:
            return "greek"
        return "joining" if kind.special == NON_JOINER and self.before == "both" else ""

    def _kana_behind(self, kind: _Kind) -> str:
        if self.kana == "letter" or kind.script == "kana":
            return "letter"
        return "dot" if kind.special == KATAKANA_DOT else self.kana

    @property
    def reading(self) -> Reading | None:
        """How the label reads if it ends here; None if it can't."""
        if self.needs or self.before == "hyphen" or self.kana == "dot" or not (self.narrow or self.wide):
            return None
        return self.direction.reading


def _before(kind: _Kind) -> str:
    if kind.special in (_HYPHEN, _L):
        return "hyphen" if kind.special == _HYPHEN else "l"
    if kind.order == VIRAMA_CLASS:
        return "virama"
    return "both" if kind.joins == "both" else "hebrew" if kind.script == "hebrew" else ""


class _Place(NamedTuple):
    """Inside a name: labels that may still follow, how the labels before may stand together, and the one that is begun."""

    left: int
    reading: Reading
    label: _Label


class _Domain:
    """Names of U-labels and lower case ASCII labels, separated by the characters of `dots`."""

    start = _Place(_MAX_LABELS - 1, Reading(True, True), _Label())

    def __init__(self, dots: str):
        self._dots: _Ranges = tuple((ord(dot), ord(dot)) for dot in dots)

    def accepting(self, state: _Place) -> bool:
        return _ended(state) is not None

    def moves(self, state: _Place) -> Iterator[tuple[_Ranges, _Place]]:
        ended = _ended(state)
        if ended is not None and state.left:
            yield self._dots, _Place(state.left - 1, ended, _Label())
        for ranges, kind in _alphabet():
            label = state.label.after(kind)
            if label is not None:
                yield ranges, state._replace(label=label)

    def is_live(self, state: _Place) -> bool:
        return _can_end(state.label, state.reading, _MAX_ENDING)

    def shortest(self, state: _Place) -> int:
        return 0 if self.accepting(state) else 1

    def at_most(self, state: _Place, length: int) -> None:
        return None

    def beside_others(self, state: _Place) -> _Place:
        return state

    def run(self, state: _Place) -> Run | None:
        return None


def _ended(state: _Place) -> Reading | None:
    return state.reading.beside(state.label.reading)


@lru_cache(maxsize=1 << 15)
def _can_end(label: _Label, reading: Reading, depth: int) -> bool:
    """Whether at most `depth` of the characters `_ENDINGS` end a label behind others of some reading."""
    direction = label.direction
    if reading.beside(Reading(direction.is_free, direction.left or direction.right)) is None:
        return False
    if reading.beside(label.reading) is not None:
        return True
    longer = (label.after(_kind_of(char)) for char in _ENDINGS) if depth else ()
    return any(more is not None and _can_end(more, reading, depth - 1) for more in longer)


@cache
def _kind_of(char: str) -> _Kind:
    return _Kind.of(char)


def idn_hostname() -> Language:
    """Names with one of the four dots of RFC 3490, section 3.1 between two labels."""
    return idn_domain(".\u3002\uff0e\uff61")


@lru_cache(maxsize=8)
def idn_domain(dots: str) -> Language:
    """Names of U-labels and lower case ASCII labels, separated by the characters of `dots`."""
    return Language.recognized(_Domain(dots))
