"""Internationalised host names of IDNA 2008: RFC 5890 to 5893.

The rules are checked on U-labels, without a table of their own: the character classes are derived from the properties in
`unicodedata`. Where a rule needs a property that Python lacks, or is not a regular condition, the language is smaller than
the standard allows, never larger:

  - only the Basic Multilingual Plane;
  - a label is in NFC because characters that can compose with their predecessor are left out, and marks stand in order;
  - the length of a label's A-form is bounded through the number of its characters, and a name has at most four labels;
  - labels that start with `xn--` are left out here, since decoding them is not a regular condition (`formats_host` has them);
  - ZERO WIDTH NON-JOINER stands behind a virama or between letters of the Arabic and Persian alphabets.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from itertools import pairwise

from ..regex import Language
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
    is_stable_letter_or_digit,
)

_HYPHEN = 0x2D
_NARROW = (_HYPHEN, *range(0x30, 0x3A), *range(0x61, 0x7B))
_LAST_CODE_POINT = 0xFFFF

_CONTEXTUAL = frozenset((MIDDLE_DOT, KERAIA, KATAKANA_DOT, *GERESH, *ARABIC_DIGITS, *EXTENDED_ARABIC_DIGITS, NON_JOINER, JOINER))
_MARK = frozenset(("Mn", "Mc"))
# Ideographs and syllables that have been valid since Unicode 11: asking for each of them would take most of the time.
_VALID_BLOCKS = (range(0x3400, 0x4DB6), range(0x4E00, 0x9FF0), range(0xAC00, 0xD7A4))

# Four labels and three dots stay within the 253 octets of a name.
_MAX_LABELS = 4
_MAX_LABEL_OCTETS = 62
_WIDE_COUNTS = (1, 2, 4, 6, 8, 11)

_ANYTHING = Language.anything()


def idn_hostname() -> Language:
    """Names with one of the four dots of RFC 3490, section 3.1 between two labels."""
    return idn_domain(".\u3002\uff0e\uff61")


@lru_cache(maxsize=8)
def idn_domain(dots: str) -> Language:
    """Names of U-labels and lower case ASCII labels, separated by the characters of `dots`."""
    dot, label = _chars(map(ord, dots)), _label()
    left_to_right = label & ~_containing(_of_direction("R", "AL", "AN"))
    bidirectional = label & (_right_to_left_label() | _left_to_right_label())
    return _name(left_to_right, dot) | _name(bidirectional, dot)


def _name(label: Language, dot: Language) -> Language:
    return label.concat(dot.concat(label).repeat(0, _MAX_LABELS - 1))


def _label() -> Language:
    return Language.intersection((_shape(), _short_enough(), _ordered_marks(), *_context_rules()))


def _shape() -> Language:
    """RFC 5891, section 4.2.3: the characters, hyphens only inside and not third and fourth, no mark in front."""
    every = _where(lambda char: True)
    mark = _where(lambda char: unicodedata.category(char) in _MARK)
    return every.repeat(1) & ~mark.concat(_ANYTHING) & ~Language.pattern("-[^]*|[^]*-|[^]{2}--[^]*")


@lru_cache(maxsize=1)
def _single_characters() -> tuple[str, ...]:
    """What a label may hold outside of `_VALID_BLOCKS`: PVALID of RFC 5892, less what composes, and what needs a context."""
    in_block = (code for block in _VALID_BLOCKS for code in block)
    skipped = frozenset((*in_block, *EXTRA_INVALID, *IGNORABLE, *CONJOINING, *_composing_characters()))
    valid = (code for code in range(0x80, _LAST_CODE_POINT + 1) if code not in skipped and is_stable_letter_or_digit(chr(code)))
    return tuple(map(chr, sorted({*_NARROW, *EXTRA_VALID, *_CONTEXTUAL, *valid})))


def _where(holds: Callable[[str], bool]) -> Language:
    """One character of a label with some property. The characters of a block have all properties in common."""
    singles = [(ord(char), ord(char)) for char in _single_characters() if holds(char)]
    return Language.chars(singles + [(block[0], block[-1]) for block in _VALID_BLOCKS if holds(chr(block[0]))])


def _composing_characters() -> frozenset[int]:
    """Second halves of canonical compositions: without them, a label in canonical order is in NFC."""
    pairs = ((char, unicodedata.decomposition(char).split()) for char in map(chr, range(0xC0, _LAST_CODE_POINT + 1)))
    found = {int(parts[1], 16) for char, parts in pairs if len(parts) == 2 and not parts[0].startswith("<") and _is_composed(char)}
    return frozenset(found)


def _is_composed(char: str) -> bool:
    return unicodedata.normalize("NFC", char) == char


def _short_enough() -> Language:
    """Labels whose A-form has at most `_MAX_LABEL_OCTETS` octets."""
    narrow = _chars(_NARROW)
    wide = Language.chars([(0x80, _LAST_CODE_POINT)])
    forms = [narrow.repeat(1, _MAX_LABEL_OCTETS)]
    for count in _WIDE_COUNTS:
        num_narrow = max(n for n in range(_MAX_LABEL_OCTETS) if max_a_label_octets(count, n) <= _MAX_LABEL_OCTETS)
        up_to_count = narrow.repeat().concat(wide.concat(narrow.repeat()).repeat(1, count))
        forms.append(up_to_count & Language.length(1, count + num_narrow))
    return Language.union(forms)


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


def _ordered_marks() -> Language:
    """Marks behind a base character in ascending order of their combining classes (Unicode, section 3.11)."""
    orders = sorted({unicodedata.combining(char) for char in _single_characters()} - {0})
    run = Language.empty_string().concat(*(_of_combining_class(order).repeat() for order in orders))
    return run.concat(_of_combining_class(0).concat(run).repeat())


def _of_combining_class(order: int) -> Language:
    return _where(lambda char: unicodedata.combining(char) == order)


def _context_rules() -> Iterable[Language]:
    """RFC 5892, appendix A."""
    virama, both_sides = _of_combining_class(VIRAMA_CLASS), _chars(JOINING_BOTH_SIDES)
    non_joiner, middle_dot, letter_l = _chars([NON_JOINER]), _chars([MIDDLE_DOT]), _chars([ord("l")])
    yield _each_follows(virama | both_sides, non_joiner)
    yield _each_precedes(both_sides.concat(non_joiner), both_sides | _chars(JOINING_BEFORE))
    yield _each_follows(virama, _chars([JOINER]))
    yield _each_follows(letter_l, middle_dot)
    yield _each_precedes(middle_dot, letter_l)
    yield _each_precedes(_chars([KERAIA]), _named("GREEK "))
    yield _each_follows(_named("HEBREW "), _chars(GERESH))
    yield ~_containing(_chars([KATAKANA_DOT])) | _containing(_named("HIRAGANA ", "KATAKANA LETTER ", "CJK UNIFIED IDEOGRAPH-"))
    yield ~(_containing(_chars(ARABIC_DIGITS)) & _containing(_chars(EXTENDED_ARABIC_DIGITS)))


def _named(*prefixes: str) -> Language:
    return _where(lambda char: unicodedata.name(char, "").startswith(prefixes))


def _each_follows(before: Language, target: Language) -> Language:
    """Strings where every `target` stands behind `before`."""
    return ~(~_ANYTHING.concat(before)).concat(target, _ANYTHING)


def _each_precedes(target: Language, after: Language) -> Language:
    """Strings where every `target` stands in front of `after`."""
    return ~_ANYTHING.concat(target, ~after.concat(_ANYTHING))


def _right_to_left_label() -> Language:
    """RFC 5893, section 2, rules 1 to 4."""
    shape = _directed_label(first=RIGHT_TO_LEFT, last=RIGHT_TO_LEFT | {"EN", "AN"}, inside=RIGHT_TO_LEFT | NEUTRAL | {"AN"})
    one_kind_of_digits = ~(_containing(_of_direction("EN")) & _containing(_of_direction("AN")))
    # The letters that a katakana dot asks for read from left to right. Said outright, a dot here is dead at once.
    return shape & one_kind_of_digits & ~_containing(_chars([KATAKANA_DOT]))


def _left_to_right_label() -> Language:
    """RFC 5893, section 2, rules 1, 5 and 6."""
    return _directed_label(first={"L"}, last={"L", "EN"}, inside=NEUTRAL | {"L"})


def _directed_label(*, first: Collection[str], last: Collection[str], inside: Collection[str]) -> Language:
    """Labels whose characters, the first of them, and the last before non-spacing marks have one of the given directions."""
    opened = _of_direction(*first).concat(_ANYTHING)
    closed = _ANYTHING.concat(_of_direction(*last), _of_direction("NSM").repeat())
    return opened & closed & _of_direction(*inside).repeat()


def _of_direction(*classes: str) -> Language:
    return _where(lambda char: unicodedata.bidirectional(char) in classes)


def _containing(part: Language) -> Language:
    return _ANYTHING.concat(part, _ANYTHING)


def _chars(codes: Iterable[int]) -> Language:
    return Language.chars((code, code) for code in codes)
