"""Regular expressions as lazy automata over Unicode code points."""

from __future__ import annotations

from .automaton import RegexAutomaton
from .charset import CharSet
from .language import Language

__all__ = ["CharSet", "Language", "RegexAutomaton"]
