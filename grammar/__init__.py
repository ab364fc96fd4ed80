"""Constraints: JSON Schema, regex and choice as lazy byte automata.

`Grammar` is loaded when first used: errors and limits alone need no numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import FormcastError, GrammarError, LimitError
from .limits import Limits

if TYPE_CHECKING:
    from .grammar import Compiled, Grammar

__all__ = ["Compiled", "FormcastError", "Grammar", "GrammarError", "LimitError", "Limits"]


def __getattr__(name: str) -> Any:
    if name in ("Compiled", "Grammar"):
        from . import grammar

        return getattr(grammar, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
