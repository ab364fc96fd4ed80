"""Context-free grammars (Lark, GBNF, EBNF) as lazy byte automata."""

from __future__ import annotations
