r"""Unicode properties for `\p{...}`, from the tables of the running Python (`unicodedata.unidata_version`).

General categories and the binary properties that Python's own tables answer exactly. What they do not answer (scripts,
emoji) is unknown here, and the parser refuses it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import groupby

from .charset import ALL_CHARS, CharSet, Range
from .unicode_text import all_code_points, cased_text

# PropertyValueAliases.txt, gc: every alias that ECMA-262 table "Value aliases for General_Category" lists.
_CATEGORY_ALIASES = {
    "Cased_Letter": "LC", "Close_Punctuation": "Pe", "Connector_Punctuation": "Pc", "Control": "Cc", "cntrl": "Cc",
    "Currency_Symbol": "Sc", "Dash_Punctuation": "Pd", "Decimal_Number": "Nd", "digit": "Nd", "Enclosing_Mark": "Me",
    "Final_Punctuation": "Pf", "Format": "Cf", "Initial_Punctuation": "Pi", "Letter": "L", "Letter_Number": "Nl",
    "Line_Separator": "Zl", "Lowercase_Letter": "Ll", "Mark": "M", "Combining_Mark": "M", "Math_Symbol": "Sm",
    "Modifier_Letter": "Lm", "Modifier_Symbol": "Sk", "Nonspacing_Mark": "Mn", "Number": "N", "Open_Punctuation": "Ps",
    "Other": "C", "Other_Letter": "Lo", "Other_Number": "No", "Other_Punctuation": "Po", "Other_Symbol": "So",
    "Paragraph_Separator": "Zp", "Private_Use": "Co", "Punctuation": "P", "punct": "P", "Separator": "Z",
    "Space_Separator": "Zs", "Spacing_Mark": "Mc", "Surrogate": "Cs", "Symbol": "S", "Titlecase_Letter": "Lt",
    "Unassigned": "Cn", "Uppercase_Letter": "Lu",
}  # fmt: skip

_CATEGORIES = (
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
    "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn",
)  # fmt: skip

_CATEGORY_UNIONS = {"LC": ("Lu", "Ll", "Lt")} | {major: tuple(minor for minor in _CATEGORIES if minor[0] == major) for major in "LMNPSZC"}

# PropList.txt: these sets are closed by the stability policy of Unicode.
_WHITE_SPACE: tuple[Range, ...] = (
    (0x09, 0x0D), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
    (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
_ASCII_HEX: tuple[Range, ...] = ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))
_FULLWIDTH_HEX: tuple[Range, ...] = ((0xFF10, 0xFF19), (0xFF21, 0xFF26), (0xFF41, 0xFF46))
_NONCHARACTERS: tuple[Range, ...] = ((0xFDD0, 0xFDEF), *[(plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0x110000, 0x10000)])


@cache
def _category(short: str) -> CharSet:
    return CharSet.of([one for part in _CATEGORY_UNIONS.get(short, (short,)) for one in _categories().get(part, ())])


def category(name: str) -> CharSet | None:
    """The characters of a general category, by its short or long name; None if there is no such category."""
    short = _CATEGORY_ALIASES.get(name, name)
    return _category(short) if short in _CATEGORY_UNIONS or short in _CATEGORIES else None


def binary_property(name: str) -> CharSet | None:
    """The characters with a binary property, by its short or long name; None if it is not known exactly."""
    make = _BINARY.get(_BINARY_ALIASES.get(name, name))
    return None if make is None else make()


@cache
def _categories() -> dict[str, list[Range]]:
    result: dict[str, list[Range]] = {}
    start = 0
    for name, run in groupby(map(unicodedata.category, all_code_points())):
        end = start + sum(1 for _ in run)
        result.setdefault(name, []).append((start, end - 1))
        start = end
    return result


@cache
def _chars_where(test: Callable[[str], bool]) -> CharSet:
    return CharSet.of([(index, index) for index, char in enumerate(all_code_points()) if test(char)])


def _is_identifier_start(char: str) -> bool:
    return char != "_" and char.isidentifier()


def _is_identifier_part(char: str) -> bool:
    return ("a" + char).isidentifier()


@cache
def _changes(change: Callable[[str], str]) -> CharSet:
    """Characters whose NFD form changes: the definition of the Changes_When_* properties."""
    changed: list[Range] = []
    for char in cased_text():
        decomposed = unicodedata.normalize("NFD", char)
        if change(decomposed) != decomposed:
            changed.append((ord(char), ord(char)))
    return CharSet.of(changed)


_BINARY: dict[str, Callable[[], CharSet]] = {
    "Any": lambda: ALL_CHARS,
    "ASCII": lambda: CharSet.of(((0, 0x7F),)),
    "Assigned": lambda: ~_category("Cn"),
    "ASCII_Hex_Digit": lambda: CharSet.of(_ASCII_HEX),
    "Hex_Digit": lambda: CharSet.of(_ASCII_HEX + _FULLWIDTH_HEX),
    "White_Space": lambda: CharSet.of(_WHITE_SPACE),
    "Noncharacter_Code_Point": lambda: CharSet.of(_NONCHARACTERS),
    "Uppercase": lambda: _chars_where(str.isupper),
    "Lowercase": lambda: _chars_where(str.islower),
    "XID_Start": lambda: _chars_where(_is_identifier_start),
    "XID_Continue": lambda: _chars_where(_is_identifier_part),
    "Changes_When_Lowercased": lambda: _changes(str.lower),
    "Changes_When_Uppercased": lambda: _changes(str.upper),
}

_BINARY_ALIASES = {
    "AHex": "ASCII_Hex_Digit", "Hex": "Hex_Digit", "space": "White_Space", "NChar": "Noncharacter_Code_Point",
    "Upper": "Uppercase", "Lower": "Lowercase", "XIDS": "XID_Start", "XIDC": "XID_Continue",
    "CWL": "Changes_When_Lowercased", "CWU": "Changes_When_Uppercased",
}  # fmt: skip
