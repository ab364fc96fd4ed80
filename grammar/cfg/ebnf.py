"""EBNF in the style of the W3C (XML 1.0, section 6) and of xgrammar.

Where the two differ, both are read: strings in single or double quotes take escapes (a backslash is written `\\\\`), `#x41` is a
character, `A - B` (with blanks: names may hold `-`) a difference of regular parts, `/* ... */` and `# ...` are comments.
"""

from __future__ import annotations

import re

from ..errors import GrammarError
from ..limits import Limits
from .bnf_reader import BnfReader
from .ir import Atom, ContextFreeGrammar, Terminal

_CODE = re.compile(r"#x([0-9A-Fa-f]+)(?![0-9A-Za-z])")
_CODE_IN_CLASS = re.compile(r"#x([0-9A-Fa-f]+)")


class _EbnfReader(BnfReader):
    name_pattern = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(?:-[A-Za-z0-9_.]+)*")
    has_difference = True
    blank_pattern = re.compile(r"(?:[ \t\r\n\f]+|#(?!x[0-9A-Fa-f]+(?![0-9A-Za-z]))[^\r\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
    escapes = {  # noqa: RUF012
        **{char: char for char in "\\\"'[]^-/"},
        **{"n": "\n", "r": "\r", "t": "\t", "f": "\f", "b": "\b", "v": "\v", "a": "\a", "0": "\0"},
    }

    def skip(self) -> None:
        super().skip()
        if self.text.startswith("/*", self.pos):
            raise GrammarError("a comment is not closed", position=self.pos, expected=("*/",))

    def special_atom(self) -> Atom | None:
        start = self.pos
        if self.peek() == "'":
            return self.string("'")
        digits = self.match(_CODE)
        if digits is not None:
            return Terminal(literal=chr(self._code(digits, start)))
        return None

    def class_character(self) -> int:
        start = self.pos
        digits = self.match(_CODE_IN_CLASS)
        return super().class_character() if digits is None else self._code(digits, start)

    def _code(self, text: str, position: int) -> int:
        digits = text[2:].lstrip("0")
        return self.checked(int(digits or "0", 16) if len(digits) <= 6 else 1 << 24, position)


def parse_ebnf(text: str, root: str = "root", limits: Limits | None = None) -> ContextFreeGrammar:
    """Reads an EBNF grammar.

    Args:
        text: the grammar.
        root: the rule to start with.
        limits: `max_bytes` bounds the text.

    Raises:
        GrammarError: with the position of what is malformed, and what could have stood there; or if no text satisfies the grammar.
        LimitError: if the text is too long.
    """
    return _EbnfReader(text, limits or Limits()).read(root)
