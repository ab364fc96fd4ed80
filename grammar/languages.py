"""The one protocol for sets of strings: patterns, formats, key names, number spellings."""

from __future__ import annotations

from typing import Protocol

MAX_CODE_POINT = 0x10FFFF
Edge = tuple[int, int, int]


class CharAutomaton(Protocol):
    """A lazy deterministic automaton over Unicode code points.

    States are small ints made on demand. It is *trimmed*: from every state that `edges` names, some accepting
    state is reachable, so following edges never leads to a dead end. Surrogates (U+D800..U+DFFF) are never in an edge.
    """

    @property
    def start(self) -> int: ...

    def accepting(self, q: int) -> bool:
        """Whether the string read so far is in the language."""
        ...

    def edges(self, q: int) -> tuple[Edge, ...]:
        """Live edges `(lo, hi, target)` of `q`: inclusive code points, sorted, disjoint."""
        ...

    def universal(self, q: int) -> bool:
        """True only if every string is accepted from `q` (False may also mean "not known")."""
        ...

    def tail_count(self, q: int, cap: int) -> int | None:
        """How many strings are accepted from `q`; None if more than `cap` or infinitely many."""
        ...
