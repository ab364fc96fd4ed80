"""Constraints: JSON Schema, regex and choice as lazy byte automata."""

from .errors import FormcastError, GrammarError, LimitError
from .grammar import Compiled, Grammar
from .limits import Limits

__all__ = ["Compiled", "FormcastError", "Grammar", "GrammarError", "LimitError", "Limits"]
