"""The format `regex`: patterns of ECMA-262 with the flag `u`.

Balanced parentheses are not a regular condition, so groups are nested at most `MAX_NESTING` deep. Left out are named
groups and backreferences (whether a group exists, and exists once, is not regular either), property escapes, and counts
above 999.
"""

from __future__ import annotations

MAX_NESTING = 3

_ALPHABETS = ("0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")

# ECMA-262, section 22.2.1: CharacterEscape, without what depends on the groups of the pattern.
_HEX = "[0-9A-Fa-f]"
_ESCAPED = rf"[fnrtv^$\\.*+?()\[\]{{}}|/dDsSwW]|c[A-Za-z]|0(?![0-9])|x{_HEX}{{2}}|u(?:{_HEX}{{4}}|\{{0*(?:10|{_HEX})?{_HEX}{{1,4}}\}})"
_CHARACTER = rf"(?:[^\^$\\.*+?()\[\]{{}}|]|\.|\\(?:{_ESCAPED}))"
_ASSERTION = r"(?:[\^$]|\\[bB])"


def _ordered_ranges() -> str:
    """Ranges of a class between two digits or letters of one alphabet, the lower one first."""
    return "|".join(f"{letter}-[{letter}-{alphabet[-1]}]" for alphabet in _ALPHABETS for letter in alphabet)


_CLASS_ATOM = rf"(?:[^\\\]\-]|\\(?:{_ESCAPED}|[b\-]))"
# A hyphen stands first or last, or makes a range of digits or letters.
_CLASS = rf"\[\^?-?(?:{_CLASS_ATOM}|{_ordered_ranges()})*-?\]"


def _count() -> str:
    """`{n}`, `{n,}` and `{n,m}` with n <= m."""
    single = "|".join(rf"{low},(?:[{low}-9]|[1-9][0-9]{{1,2}})" for low in range(10))
    return rf"\{{(?:[0-9]{{1,3}},?|{single}|[1-9][0-9],[1-9][0-9]{{2}})\}}"


_QUANTIFIER = rf"(?:(?:[*+?]|{_count()})\??)?"


def _disjunction(nesting: int) -> str:
    terms = [rf"(?:{_CHARACTER}|{_CLASS}){_QUANTIFIER}", _ASSERTION]
    if nesting:
        inner = _disjunction(nesting - 1)
        terms += [rf"\((?:\?:)?{inner}\){_QUANTIFIER}", rf"\(\?<?[=!]{inner}\)"]
    return rf"(?:{'|'.join(terms)}|\|)*"


REGEX = _disjunction(MAX_NESTING)
