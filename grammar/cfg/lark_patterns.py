"""Terminals of Lark as regular expressions, composed as lark composes them: by their text.

The composition is part of the meaning. Alternatives are sorted so that a longer one is tried first, and what is written side by side
is joined without a group around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import GrammarError
from ..lazily import lazy
from ..limits import Limits
from ..regex.syntax import width
from .ordered import parse_ordered

# What lark evaluates in strings and regular expressions; every other escape is left to the regular expression.
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "f": "\f", "t": "\t", "r": "\r"}
_UNBOUNDED = 1 << 64


@dataclass(kw_only=True, unsafe_hash=True)
class PatternText:
    """A terminal or a part of one.

    Attributes:
        value: the text itself if `is_string`, else a regular expression.
        flags: letters out of "imslux".
        is_string: written as a string.
    """

    value: str
    flags: str = ""
    is_string: bool = False

    @property
    def literal(self) -> str | None:
        """The only text that matches, if it is known to be the only one."""
        return self.value if self.is_string and not self.flags else None

    @lazy
    def regexp(self) -> str:
        """As a regular expression that brings its flags along."""
        text = re.escape(self.value) if self.is_string else self.value
        for flag in self.flags:
            text = f"(?{flag}:{text})"
        return text

    def rank(self, limits: Limits) -> tuple[int, int, int]:
        """Sort key among alternatives: the widest first."""
        if self.is_string:
            least, most = len(self.value), len(self.value)
        else:
            least, found = width(parse_ordered(self.regexp, limits))
            most = _UNBOUNDED if found is None else found
        return -most, -least, -len(self.value)


def literal_pattern(token: str, position: int) -> PatternText:
    """A string or regular expression as written, with its quotes and flags.

    Raises:
        GrammarError: it is empty, or an escape is malformed.
    """
    end = max(token.rfind("/"), token.rfind('"')) + 1
    flags = token[end:]
    is_string = token[0] == '"'
    if not is_string and "\n" in token and "x" not in flags:
        raise GrammarError("a regular expression with line ends needs the flag x", position=position)
    value = _evaluated(token[1 : end - 1], position)
    if not value:
        raise GrammarError("a terminal may not be empty", position=position)
    if is_string:
        value = value.replace("\\\\", "\\")
    return PatternText(value=value, flags="".join(dict.fromkeys(flags)), is_string=is_string)


def range_pattern(first: str, last: str, position: int) -> PatternText:
    """The range between two strings of one character, as written with their quotes.

    Raises:
        GrammarError: one of them is not one character.
    """
    low, high = first[1:-1], last[1:-1]
    if not (first.endswith('"') and last.endswith('"') and len(_evaluated(low, position)) == len(_evaluated(high, position)) == 1):
        raise GrammarError("the ends of a range must be single characters", position=position)
    return PatternText(value=f"[{low}-{high}]")


def in_sequence(parts: list[PatternText]) -> PatternText:
    """One after another."""
    if not parts:
        return PatternText(value="", is_string=True)
    return parts[0] if len(parts) == 1 else PatternText(value="".join([part.regexp for part in parts]))


def any_of(parts: list[PatternText], limits: Limits) -> PatternText:
    """Any one of several."""
    if len(parts) == 1:
        return parts[0]
    ordered = sorted(parts, key=lambda part: part.rank(limits))
    return PatternText(value=f"(?:{'|'.join([part.regexp for part in ordered])})")


def repeated(part: PatternText, low: int, high: int | None) -> PatternText:
    """`low` to `high` times."""
    marks = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    operator = marks.get((low, high), f"{{{low}}}" if low == high else f"{{{low},{high}}}")
    return PatternText(value=f"(?:{part.regexp}){operator}", flags=part.flags)


def _evaluated(text: str, position: int) -> str:
    """The text with the escapes evaluated that lark evaluates: it rewrites the text to a Python literal."""
    if "\\" not in text:
        return text
    literal = re.sub(r"\\(.)", _kept_escape, text, flags=re.DOTALL).replace('\\"', '"')
    return _ESCAPE.sub(lambda found: _character(found, position), literal)


def _kept_escape(found: re.Match[str]) -> str:
    """An escape that means the same after it is evaluated, by doubling its backslash."""
    char = found.group(1)
    if char == "\\":
        return "\\\\\\\\"
    return "\\" + char if char in "Uuxnftr" else "\\\\" + char


def _character(found: re.Match[str], position: int) -> str:
    digits = found.group(1) or found.group(2) or found.group(3)
    char = found.group(4)
    if digits is not None:
        code_point = int(digits, 16)
        if code_point > 0x10FFFF or 0xD800 <= code_point <= 0xDFFF:
            raise GrammarError(f"U+{code_point:X} is not a Unicode character", position=position)
        return chr(code_point)
    if char in _CONTROLS:
        return _CONTROLS[char]
    if char in "xuU":
        raise GrammarError(f"the escape \\{char} needs hexadecimal digits", position=position)
    return char
