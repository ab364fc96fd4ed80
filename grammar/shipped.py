"""Shipped schemas and grammars, which a name such as `formcast:invoice` stands for wherever a schema or grammar is taken."""

from __future__ import annotations

import re
from typing import Any

from .errors import GrammarError

_NAME = re.compile(r"formcast:([A-Za-z0-9_-]+)")


def shipped_name(given: object) -> str | None:
    """The name that a schema or grammar is given by; None if it is something else."""
    found = _NAME.fullmatch(given) if isinstance(given, str) else None
    return found and found.group(1)


def shipped_schema(name: str) -> dict[str, Any]:
    """The schema of a name.

    Raises:
        GrammarError: there is none.
    """
    from .. import schemas

    try:
        return schemas.load(name)
    except schemas.UnknownSchema as error:
        raise GrammarError(str(error)) from None


def shipped_grammar(name: str) -> tuple[str, str]:
    """Notation and text of the grammar of a name.

    Raises:
        GrammarError: there is none.
    """
    from .. import schemas

    try:
        return schemas.load_grammar(name)
    except schemas.UnknownGrammar as error:
        raise GrammarError(str(error)) from None


def grammar_text(given: str, notation: str) -> str:
    """The text of a grammar that is given by its text or by a name.

    Raises:
        GrammarError: there is none of that name, or it is in another notation.
    """
    name = shipped_name(given)
    if name is None:
        return given
    kind, text = shipped_grammar(name)
    if kind != notation:
        raise GrammarError(f"{given} is written in {kind}, not in {notation}")
    return text
