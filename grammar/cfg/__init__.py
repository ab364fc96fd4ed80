"""Context-free grammars (Lark, GBNF, EBNF) as lazy byte automata."""

from __future__ import annotations

from .compile import compile_cfg
from .ebnf import parse_ebnf
from .gbnf import parse_gbnf
from .ir import ContextFreeGrammar
from .lark import parse_lark
from .wellformed import Findings, inspect_grammar

__all__ = ["ContextFreeGrammar", "Findings", "compile_cfg", "inspect_grammar", "parse_ebnf", "parse_gbnf", "parse_lark"]
