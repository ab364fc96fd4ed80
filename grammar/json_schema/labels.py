"""Labels of internationalised names (IDNA 2008), each read as a whole: RFC 5890 to 5893, 3492."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

from ..regex.properties import unicode_property

ACE_PREFIX = "xn--"
MAX_LABEL = 63  # octets

_LDH = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
# RFC 5892, section 2.6.
EXTRA_VALID = frozenset((0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007))
EXTRA_INVALID = frozenset((0x640, 0x7FA, 0x302E, 0x302F, *range(0x3031, 0x3036), 0x303B))
# Sections 2.3, 2.4 and 2.9, where they hold letters: ignorable characters, marks for symbols and music, conjoining Hangul letters.
_MUSIC = range(0x1D100, 0x1D250)
_SELECTORS = (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
IGNORABLE = frozenset((0x34F, 0x17B4, 0x17B5, *_SELECTORS, *range(0x20D0, 0x2100), *_MUSIC))
CONJOINING = frozenset((*range(0x1100, 0x1200), *range(0xA960, 0xA980), *range(0xD7B0, 0xD800)))
# Section 2.1.
LETTER_DIGIT = frozenset(("Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"))

# Appendix A: characters that depend on those around them.
MIDDLE_DOT, KERAIA, KATAKANA_DOT = 0xB7, 0x375, 0x30FB
GERESH = (0x5F3, 0x5F4)
ARABIC_DIGITS, EXTENDED_ARABIC_DIGITS = range(0x660, 0x66A), range(0x6F0, 0x6FA)
NON_JOINER, JOINER = 0x200C, 0x200D
VIRAMA_CLASS = 9
# Letters of the Arabic script by how they join (Unicode, ArabicShaping): on both sides, or with their predecessor only.
JOINING_BOTH_SIDES = (
    *(0x626, 0x628, *range(0x62A, 0x62F), *range(0x633, 0x63B), *range(0x641, 0x648)),
    *(0x649, 0x64A, 0x67E, 0x686, 0x6A9, 0x6AF, 0x6CC),
)
JOINING_BEFORE = (*range(0x622, 0x626), 0x627, 0x629, *range(0x62F, 0x633), 0x648, 0x698)

# RFC 5893, section 2.
RIGHT_TO_LEFT = frozenset(("R", "AL"))
NEUTRAL = frozenset(("EN", "ES", "CS", "ET", "ON", "BN", "NSM"))

_MAX_REMEMBERED = 1 << 14


class Reading(NamedTuple):
    """In which names a label may stand.

    Attributes:
        left_to_right: in those without any character that reads from right to left: it has none itself.
        bidirectional: in those with such characters: it obeys the rule of RFC 5893, section 2.
    """

    left_to_right: bool
    bidirectional: bool

    def beside(self, other: Reading | None) -> Reading | None:
        """How both stand in one name; None where they can't."""
        if other is None:
            return None
        both = Reading(self.left_to_right and other.left_to_right, self.bidirectional and other.bidirectional)
        return both if any(both) else None


@lru_cache(maxsize=_MAX_REMEMBERED)
def read_a_label(form: str) -> Reading | None:
    """How the label `xn--` + `form` reads; None if it is no A-label. Lower case only."""
    basic, hyphen, digits = form.rpartition("-")
    if not digits or (hyphen and not basic):
        return None
    try:
        text = form.encode().decode("punycode")
        reading = read_u_label(text)
        return reading if reading is not None and text.encode("punycode") == form.encode() else None
    except (UnicodeError, ValueError, OverflowError):
        return None


def read_u_label(text: str) -> Reading | None:
    """How a label beyond ASCII reads, whatever its length; None if it is no U-label."""
    if text.isascii() or text[0] == "-" or text[-1] == "-" or text[2:4] == "--":
        return None
    if unicodedata.category(text[0])[0] == "M" or not all(map(_is_valid, text)):
        return None
    if unicodedata.normalize("NFC", text) != text or not _fits_context(text):
        return None
    return reading_of(text)


def reading_of(text: str) -> Reading:
    """RFC 5893, section 2."""
    classes = [unicodedata.bidirectional(char) for char in text]
    while len(classes) > 1 and classes[-1] == "NSM":
        classes.pop()
    first, last, within = classes[0], classes[-1], frozenset(classes) - NEUTRAL
    left_to_right = within <= {"L"}
    if first == "L":
        return Reading(left_to_right, left_to_right and last in ("L", "EN"))
    is_mixed = "EN" in classes and "AN" in within
    right = first in RIGHT_TO_LEFT and within <= RIGHT_TO_LEFT | {"AN"} and not is_mixed and last in RIGHT_TO_LEFT | {"EN", "AN"}
    return Reading(left_to_right, right)


@lru_cache(maxsize=_MAX_REMEMBERED)
def _is_valid(char: str) -> bool:
    """PVALID, CONTEXTJ or CONTEXTO: RFC 5892, section 3."""
    code = ord(char)
    if char in _LDH or code in EXTRA_VALID or code in (MIDDLE_DOT, KERAIA, KATAKANA_DOT, NON_JOINER, JOINER, *GERESH):
        return True
    if code in EXTRA_INVALID or code in IGNORABLE or code in CONJOINING:
        return False
    return is_stable_letter_or_digit(char)


def is_stable_letter_or_digit(char: str) -> bool:
    """RFC 5892, sections 2.1 and 2.2."""
    if unicodedata.category(char) not in LETTER_DIGIT:
        return False
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold()) == char


def _fits_context(text: str) -> bool:
    """RFC 5892, appendix A. ZERO WIDTH NON-JOINER stands behind a virama or between letters of the Arabic and Persian alphabets."""
    codes = [ord(char) for char in text]
    if not _are_disjoint(codes, ARABIC_DIGITS, EXTENDED_ARABIC_DIGITS):
        return False
    for before, code, after in zip([0, *codes], codes, [*codes[1:], 0], strict=False):
        if code == MIDDLE_DOT:
            fits = before == after == ord("l")
        elif code == KERAIA:
            fits = _in_script(after, "Greek")
        elif code in GERESH:
            fits = _in_script(before, "Hebrew")
        elif code == KATAKANA_DOT:
            fits = any(_in_script(c, script) for c in codes if c != code for script in ("Hiragana", "Katakana", "Han"))
        elif code in (NON_JOINER, JOINER):
            joins = before in JOINING_BOTH_SIDES and (after in JOINING_BOTH_SIDES or after in JOINING_BEFORE)
            fits = unicodedata.combining(chr(before)) == VIRAMA_CLASS or (joins and code == NON_JOINER)
        else:
            fits = True
        if not fits:
            return False
    return True


def _are_disjoint(codes: list[int], one: range, other: range) -> bool:
    return not (any(code in one for code in codes) and any(code in other for code in codes))


def _in_script(code: int, script: str) -> bool:
    characters = unicode_property("Script", script)
    return characters is not None and code in characters
