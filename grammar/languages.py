"""The one protocol for sets of strings: patterns, formats, key names, number spellings."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

MAX_CODE_POINT = 0x10FFFF
Edge = tuple[int, int, int]


class Run(NamedTuple):
    """Characters that can come one after another, each of them in any order.

    Attributes:
        ranges: the characters, as inclusive intervals.
        count: how many of them can come at least; None for as many as wanted.
    """

    ranges: tuple[tuple[int, int], ...]
    count: int | None


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


@runtime_checkable
class HasRuns(Protocol):
    """An automaton that knows where many characters can come one after another without looking at each."""

    def run(self, q: int) -> Run | None:
        """A large run that can begin at `q`; None if there is none, or none is known."""
        ...
