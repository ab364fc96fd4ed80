"""GBNF, the notation of llama.cpp (its `grammars/README.md`)."""

from __future__ import annotations

import re

from ..errors import GrammarError
from ..limits import Limits
from .bnf_reader import BnfReader
from .ir import Atom, ContextFreeGrammar, SpecialToken
from .written_parts import read_token


class _GbnfReader(BnfReader):
    """A rule ends with its line, unless the line ends inside a group, or `|` or another body line follows."""

    name_pattern = re.compile(r"[A-Za-z0-9_-]+")
    blank_pattern = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
    escapes = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]"}  # noqa: RUF012

    def special_atom(self) -> Atom | None:
        start = self.pos
        if self.peek() == "!":
            raise GrammarError("any token but one is not supported in a grammar", position=start)
        tokens = read_token(self, named=True)
        return None if tokens is None else SpecialToken(tokens=tokens, position=start)


def parse_gbnf(text: str, root: str = "root", limits: Limits | None = None) -> ContextFreeGrammar:
    """Reads a GBNF grammar.

    Args:
        text: the grammar.
        root: the rule to start with.
        limits: `max_bytes` bounds the text.

    Raises:
        GrammarError: with the position of what is malformed, and what could have stood there; or if no text satisfies the grammar.
        LimitError: if the text is too long.
    """
    return _GbnfReader(text, limits or Limits()).read(root)
