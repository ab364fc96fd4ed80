r"""Patterns of ECMA-262 with the flag `u`, as JSON Schema uses them.

Beyond the grammar of the standard (section 22.2.1) it takes what Annex B takes and what real schemas hold: identity
escapes of punctuation, lone brackets, classes such as `[\w-.]`, and inline flags at the start. What other engines read
differently is refused.
"""

from __future__ import annotations

from ..languages import MAX_CODE_POINT
from . import nodes, properties
from .casefold import fold_ecma
from .charset import ALL_CHARS, CharSet
from .parser import FLAG_DOT_ALL, FLAG_IGNORE_CASE, FLAG_MULTILINE, Parser
from .syntax import TEXT_END, TEXT_START, Item, line_end, line_start, no_word_boundary, word_boundary

_DIGIT = CharSet.of(((0x30, 0x39),))
_WORD = CharSet.of(((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)))
_NEWLINE = CharSet.of(((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)))
# WhiteSpace and LineTerminator of ECMA-262 12.2 and 12.3; the rest of it is general category Zs.
_SPACE = CharSet.of(
    (
        (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
        (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
    )
)  # fmt: skip
_CONTROL_ESCAPES = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_FLAGS = {"i": FLAG_IGNORE_CASE, "s": FLAG_DOT_ALL, "m": FLAG_MULTILINE}


class EcmaParser(Parser):
    def dot(self) -> CharSet:
        return ALL_CHARS if self.flags & FLAG_DOT_ALL else ~_NEWLINE

    def caret(self) -> Item:
        return line_start(_NEWLINE) if self.flags & FLAG_MULTILINE else TEXT_START

    def dollar(self) -> Item:
        return line_end(_NEWLINE) if self.flags & FLAG_MULTILINE else TEXT_END

    def fold(self, chars: CharSet) -> CharSet:
        return fold_ecma(chars) if self.flags & FLAG_IGNORE_CASE else chars

    def braced_count(self) -> tuple[int, int | None] | None:
        start = self.pos
        self.pos += 1
        low = self.digits()
        high: str | None = low
        if self.peek() == ",":
            self.pos += 1
            high = self.digits() or None
        if self.peek() != "}" or (not low and high is None):
            self.pos = start
            return None
        if not low:
            raise self.error("a quantifier without a lower number has different meanings", start, ("{0,",))
        self.pos += 1
        return self.count(low, start), None if high is None else self.count(high, start)

    def special_group(self) -> str | None:
        start = self.pos - 1
        if self.starts("?<") or self.starts("?P<"):
            self.pos = self.text.index("<", start) + 1
            self._group_name()
            return "group"
        self.pos += 1
        return self._inline_flags(start)

    def _group_name(self) -> None:
        start = self.pos
        end = self.text.find(">", start)
        name = self.text[start:end] if end >= 0 else ""
        if not name.replace("$", "_").isidentifier():
            raise self.error("a group name is malformed", start, ("a letter, then letters and digits, then >",))
        self.pos = end + 1

    def _inline_flags(self, start: int) -> str | None:
        on = self._flag_letters()
        off = 0
        if self.peek() == "-":
            self.pos += 1
            off = self._flag_letters()
        end = self.peek()
        if end not in (":", ")") or not (on or off) or on & off:
            raise self.error("unknown kind of group", start, ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?<name>"))
        if end == ")" and (off or not self.at_start()):
            raise self.error("flags for the whole pattern must stand at its start", start)
        self.pos += 1
        self.flags = (self.flags | on) & ~off
        return "group" if end == ":" else None

    def _flag_letters(self) -> int:
        found = 0
        while self.peek() in _FLAGS and self.peek():
            bit = _FLAGS[self.peek()]
            if found & bit:
                raise self.error("a flag is repeated")
            found |= bit
            self.pos += 1
        return found

    def escape(self) -> Item | str:
        start = self.pos
        char = self.peek(1)
        if char in ("b", "B"):
            self.pos += 2
            word = self._word()
            return word_boundary(word) if char == "b" else no_word_boundary(word)
        if char == "k" or (char.isascii() and char.isdigit() and char != "0"):
            raise self.error("a backreference is not a regular language", start)
        found = self._class_or_character(start)
        return found if isinstance(found, str) else nodes.chars(self.fold(found))

    def _class_or_character(self, start: int) -> CharSet | str:
        """An escape that means the same inside and outside of a class."""
        char = self.peek(1)
        self.pos = start + 2
        if char in ("d", "D"):
            return _DIGIT if char == "d" else ~_DIGIT
        if char in ("s", "S"):
            return _SPACE if char == "s" else ~_SPACE
        if char in ("w", "W"):
            return self._word() if char == "w" else ~self._word()
        if char in ("p", "P"):
            found = self._property(start)
            return found if char == "p" else ~found
        if char in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[char]
        if char == "c":
            letter = self.peek()
            if not (letter.isascii() and letter.isalpha()):
                raise self.error("a control escape needs a letter", start, ("\\cA to \\cZ",))
            self.pos += 1
            return chr(ord(letter) % 32)
        if char == "0":
            if self.peek().isascii() and self.peek().isdigit():
                raise self.error("an octal escape is not allowed", start)
            return "\0"
        if char in ("x", "u"):
            return self._numbered(char, start)
        if not char:
            raise self.error("a backslash ends the pattern", start)
        if char.isascii() and char.isalnum():
            raise self.error(f"the escape \\{char} is unknown, or different in other dialects", start)
        return char

    def _word(self) -> CharSet:
        return self.fold(_WORD)

    def _numbered(self, kind: str, start: int) -> str:
        if kind == "u" and self.peek() == "{":
            end = self.text.find("}", self.pos)
            digits = self.text[self.pos + 1 : end] if end >= 0 else ""
            value = _code_point(digits)
            if value is None:
                raise self.error("a code point escape is malformed", start, ("\\u{0} to \\u{10FFFF}",))
            self.pos = end + 1
            return chr(value)
        value = self.hexadecimal(2 if kind == "x" else 4)
        if value is None:
            raise self.error(f"the escape \\{kind} needs {2 if kind == 'x' else 4} hexadecimal digits", start)
        if 0xD800 <= value <= 0xDBFF and self.starts("\\u"):
            after = self.pos
            self.pos += 2
            low = self.hexadecimal(4)
            if low is not None and 0xDC00 <= low <= 0xDFFF:
                return chr(0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00))
            self.pos = after
        return chr(value)

    def _property(self, start: int) -> CharSet:
        end = self.text.find("}", self.pos) if self.peek() == "{" else -1
        if end < 0:
            raise self.error("a property needs a name in braces", start, ("\\p{L}", "\\p{Script=Han}"))
        body = self.text[self.pos + 1 : end]
        self.pos = end + 1
        key, equals, value = body.partition("=")
        found = properties.unicode_property(key, value if equals else None)
        if found is None:
            raise self.error(f"there is no Unicode property {body}", start)
        return found

    def char_class(self) -> CharSet:
        start = self.pos
        self.pos += 1
        negated = self.peek() == "^"
        if negated:
            self.pos += 1
        ranges: list[tuple[int, int]] = []
        while self.peek() != "]":
            self.budget.spend(1)
            if not self.peek():
                raise self.error("a class is not closed", start, ("]",))
            position = self.pos
            first = self._class_atom()
            if self.peek() != "-" or self.peek(1) in ("]", ""):
                ranges.extend(_ranges(first))
                continue
            self.pos += 1
            last = self._class_atom()
            if isinstance(first, str) and isinstance(last, str):
                if first > last:
                    raise self.error("the ends of a range are out of order", position)
                ranges.append((ord(first), ord(last)))
            else:
                # Annex B.1.2: next to a class escape, the hyphen is itself.
                ranges.extend((*_ranges(first), (0x2D, 0x2D), *_ranges(last)))
        self.pos += 1
        found = self.fold(CharSet.of(ranges))
        return ~found if negated else found

    def _class_atom(self) -> CharSet | str:
        char = self.peek()
        if char != "\\":
            if not char:
                raise self.error("a class is not closed", expected=("]",))
            self.pos += 1
            return char
        start = self.pos
        following = self.peek(1)
        if following == "b":
            self.pos += 2
            return "\b"
        if following.isascii() and following.isdigit() and following != "0":
            raise self.error("an octal escape is not allowed", start)
        return self._class_or_character(start)


def _ranges(found: CharSet | str) -> tuple[tuple[int, int], ...]:
    return ((ord(found), ord(found)),) if isinstance(found, str) else found.ranges


def _code_point(digits: str) -> int | None:
    if not digits or any(char not in "0123456789abcdefABCDEF" for char in digits):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > 6 or int(digits, 16) > MAX_CODE_POINT:
        return None
    return int(digits, 16)
