r"""Patterns of the Python module `re` for text (`str`), checked against the version that is running."""

from __future__ import annotations

import re
import unicodedata
from typing import ClassVar

from ..languages import MAX_CODE_POINT
from . import nodes
from .budget import Budget
from .casefold import fold_ascii, fold_python
from .charset import ALL_CHARS, CharSet
from .parser import FLAG_ASCII, FLAG_DOT_ALL, FLAG_IGNORE_CASE, FLAG_MULTILINE, FLAG_VERBOSE, Parser
from .syntax import (
    TEXT_END,
    TEXT_START,
    Item,
    Sequence,
    end_or_final_newline,
    line_end,
    line_start,
    no_word_boundary,
    text_not_empty,
    word_boundary,
)
from .unicode_text import python_class

_NEWLINE = CharSet.single(0x0A)
_ASCII_CLASSES = {
    "d": CharSet.of(((0x30, 0x39),)),
    "s": CharSet.of(((0x09, 0x0D), (0x20, 0x20))),
    "w": CharSet.of(((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))),
}
_CONTROL_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEX_SIZES = {"x": 2, "u": 4, "U": 8}
_FLAGS = {
    "i": FLAG_IGNORE_CASE,
    "s": FLAG_DOT_ALL,
    "m": FLAG_MULTILINE,
    "x": FLAG_VERBOSE,
    "a": FLAG_ASCII,
    "u": 0,
}
_GROUPS = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?P<name>", "(?i)", "(?#")
_VERBOSE_SPACE = re.compile(r"(?:[ \t\n\r\v\f]|#[^\n]*)+")
_VERBOSE_LITERAL = re.compile(r"[^\\^$.|?*+()\[\]{} \t\n\r\v\f#]+")
_MAX_REPEAT = 4_294_967_294


class PythonParser(Parser):
    possessive_suffix: ClassVar[bool] = True
    repeats_lookaround: ClassVar[bool] = True
    fixed_width_lookbehind: ClassVar[bool] = True

    def __init__(self, text: str, budget: Budget):
        super().__init__(text, budget)
        self._names: set[str] = set()
        # Until 3.13 `\B` never matches in an empty text.
        self._no_boundary_in_empty = re.search(r"\B", "") is not None

    def _plain(self) -> None:
        if not self.flags & FLAG_VERBOSE:
            super()._plain()
            return
        space = _VERBOSE_SPACE.match(self.text, self.pos)
        if space is not None:
            self.pos = space.end()
            return
        match = _VERBOSE_LITERAL.match(self.text, self.pos)
        if match is None:
            raise self.error("unexpected character")
        self.literal(match.group())
        self.pos = match.end()

    def dot(self) -> CharSet:
        return ALL_CHARS if self.flags & FLAG_DOT_ALL else ~_NEWLINE

    def caret(self) -> Item:
        return line_start(_NEWLINE) if self.flags & FLAG_MULTILINE else TEXT_START

    def dollar(self) -> Item:
        return line_end(_NEWLINE) if self.flags & FLAG_MULTILINE else end_or_final_newline()

    def fold(self, chars: CharSet) -> CharSet:
        if not self.flags & FLAG_IGNORE_CASE:
            return chars
        return fold_ascii(chars) if self.flags & FLAG_ASCII else fold_python(chars)

    def braced_count(self) -> tuple[int, int | None] | None:
        start = self.pos
        self.pos += 1
        if self.peek() == "}":
            self.pos = start
            return None
        low = high = self.digits()
        if self.peek() == ",":
            self.pos += 1
            high = self.digits()
        if self.peek() != "}":
            self.pos = start
            return None
        self.pos += 1
        lo = self.count(low or "0", start)
        hi = self.count(high, start) if high else None
        if lo > _MAX_REPEAT or (hi is not None and hi > _MAX_REPEAT):
            raise self.error("a repetition count is too large", start)
        return lo, hi

    def special_group(self) -> str | None:
        start = self.pos - 1
        if self.starts("?P<"):
            self.pos += 3
            self._group_name()
            return "group"
        if self.starts("?P="):
            raise self.error("a backreference is not a regular language", start)
        if self.starts("?("):
            raise self.error("a conditional group is not a regular language", start)
        if self.starts("?>"):
            self.pos += 2
            return "atomic"
        if self.starts("?#"):
            end = self.text.find(")", self.pos)
            if end < 0:
                raise self.error("a comment is not closed", start, (")",))
            self.pos = end + 1
            return None
        self.pos += 1
        return self._inline_flags(start)

    def _group_name(self) -> None:
        start = self.pos
        end = self.text.find(">", start)
        name = self.text[start:end] if end >= 0 else ""
        if not name.isidentifier():
            raise self.error("a group name is malformed", start, ("an identifier, then >",))
        if name in self._names:
            raise self.error("a group name is used twice", start)
        self._names.add(name)
        self.pos = end + 1

    def _inline_flags(self, start: int) -> str | None:
        letters = self._letters()
        removed = ""
        if self.peek() == "-":
            self.pos += 1
            removed = self._letters()
            if not removed or self.peek() != ":":
                raise self.error("malformed flags", start)
        end = self.peek()
        if end == "L":
            raise self.error("the flag L is for patterns of bytes", start)
        if end not in (":", ")") or not (letters or removed):
            raise self.error("unknown kind of group", start, _GROUPS)
        if any(letter in "aLu" for letter in removed) or ("a" in letters and "u" in letters) or set(letters) & set(removed):
            raise self.error("flags contradict each other", start)
        if end == ")" and not self.at_start():
            raise self.error("flags for the whole pattern must stand at its start", start)
        self.pos += 1
        for letter in letters:
            self.flags |= _FLAGS[letter]
        for letter in removed:
            self.flags &= ~_FLAGS[letter]
        if "u" in letters:
            self.flags &= ~FLAG_ASCII
        return "group" if end == ":" else None

    def _letters(self) -> str:
        start = self.pos
        while self.peek() in _FLAGS and self.peek():
            self.pos += 1
        return self.text[start : self.pos]

    def escape(self) -> Item | str:
        start = self.pos
        char = self.peek(1)
        if char in ("A", "Z", "b", "B"):
            self.pos += 2
            return self._assertion(char)
        if char.isascii() and char.isdigit() and char != "0":
            octal = self.text[start + 1 : start + 4]
            if len(octal) < 3 or any(digit not in "01234567" for digit in octal):
                raise self.error("a backreference is not a regular language", start)
            return self._octal(start, 3)
        found = self._class_or_character(start)
        return found if isinstance(found, str) else nodes.chars(found)

    def _assertion(self, char: str) -> Item:
        if char == "A":
            return TEXT_START
        if char == "Z":
            return TEXT_END
        word = self._category("w")
        if char == "b":
            return word_boundary(word)
        inside = no_word_boundary(word)
        return inside if self._no_boundary_in_empty else Sequence((text_not_empty(), inside))

    def _class_or_character(self, start: int) -> CharSet | str:
        """An escape that means the same inside and outside of a class."""
        char = self.peek(1)
        self.pos = start + 2
        if char and char in "dDsSwW":
            found = self._category(char.lower())
            return ~found if char.isupper() else found
        if char in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[char]
        if char in _HEX_SIZES:
            value = self.hexadecimal(_HEX_SIZES[char])
            if value is None or value > MAX_CODE_POINT:
                raise self.error(f"the escape \\{char} is malformed", start)
            return chr(value)
        if char == "N":
            return self._named(start)
        if char == "0":
            return self._octal(start, 3)
        if not char:
            raise self.error("a backslash ends the pattern", start)
        if char.isascii() and char.isalnum():
            raise self.error(f"the escape \\{char} is unknown", start)
        return char

    def _category(self, letter: str) -> CharSet:
        return _ASCII_CLASSES[letter] if self.flags & FLAG_ASCII else python_class(f"\\{letter}")

    def _octal(self, start: int, most: int) -> str:
        end = start + 1
        while end < len(self.text) and end - start <= most and self.text[end] in "01234567":
            end += 1
        value = int(self.text[start + 1 : end], 8)
        if value > 0o377:
            raise self.error("an octal escape is too large", start)
        self.pos = end
        return chr(value)

    def _named(self, start: int) -> str:
        end = self.text.find("}", self.pos) if self.peek() == "{" else -1
        if end < 0:
            raise self.error("a character name is missing", start, ("\\N{name}",))
        try:
            found = unicodedata.lookup(self.text[self.pos + 1 : end])
        except KeyError:
            raise self.error("a character name is unknown", start) from None
        if len(found) != 1:
            raise self.error("a character name stands for several characters", start)
        self.pos = end + 1
        return found

    def char_class(self) -> CharSet:
        start = self.pos
        self.pos += 1
        negated = self.peek() == "^"
        if negated:
            self.pos += 1
        listed: list[tuple[int, int]] = []
        categories: list[tuple[int, int]] = []
        first_pos = self.pos
        while self.peek() != "]" or self.pos == first_pos:
            self.budget.spend(1)
            position = self.pos
            first = self._class_atom(start)
            if self.peek() == "-" and self.peek(1) != "]":
                self.pos += 1
                last = self._class_atom(start)
                if isinstance(first, CharSet) or isinstance(last, CharSet) or first > last:
                    raise self.error("a range in a class is malformed", position)
                listed.append((ord(first), ord(last)))
            elif isinstance(first, str):
                listed.append((ord(first), ord(first)))
            else:
                categories.extend(first.ranges)
        self.pos += 1
        # Case is ignored for what is listed; `re` tests categories on the character itself.
        found = self.fold(CharSet.of(listed)) | CharSet.of(categories)
        return ~found if negated else found

    def _class_atom(self, class_start: int) -> CharSet | str:
        char = self.peek()
        if not char:
            raise self.error("a class is not closed", class_start, ("]",))
        if char != "\\":
            self.pos += 1
            return char
        start = self.pos
        following = self.peek(1)
        if following == "b":
            self.pos += 2
            return "\b"
        if following.isascii() and following.isdigit():
            if following in "89":
                raise self.error("the escape in a class is unknown", start)
            return self._octal(start, 3)
        return self._class_or_character(start)
