"""Grammars as they are given on a command line: a file, the grammar itself, a shipped name, or stdin."""

from __future__ import annotations

from .errors import UsageError
from .schema_source import SHIPPED_PREFIX, read_text


def read_grammar(source: str, notation: str) -> str:
    """The text of a grammar.

    Args:
        notation: "lark", "gbnf" or "ebnf"; a shipped grammar has to be in it.

    Raises:
        UsageError: it cannot be read, or is in another notation.
        UnknownGrammar: no grammar of that name is shipped.
    """
    if source.startswith(SHIPPED_PREFIX):
        return _shipped(source, notation)
    return read_text(source, _looks_like_rules)


def _shipped(source: str, notation: str) -> str:
    from ... import schemas

    kind, text = schemas.load_grammar(source.removeprefix(SHIPPED_PREFIX))
    if kind != notation:
        raise UsageError(f"{source} is a grammar for --{kind}, not for --{notation}")
    return text


def _looks_like_rules(source: str) -> bool:
    """Every rule has a colon, in all notations; names of files seldom do."""
    return ":" in source
