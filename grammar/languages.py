"""The one protocol for sets of strings: patterns, formats, key names, number spellings."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable

MAX_CODE_POINT = 0x10FFFF
Edge = tuple[int, int, int]


class Run(NamedTuple):
    """Characters that can come one after another, each of them in any order.

    Attributes:
        ranges: the characters, as inclusive intervals.
        count: how many of them can come at least; None for as many as wanted.
        others: what else may come after one character of the run and within it: all other characters are dead there. None if that is
            not known.
        may_end: whether the text may end after each character of the run. None if that differs: otherwise all the characters lead to the
            same states, and `HasRuns.ahead` says to which.
    """

    ranges: tuple[tuple[int, int], ...]
    count: int | None
    others: tuple[tuple[int, int], ...] | None = None
    may_end: bool | None = None


class Recognizer(Protocol):
    """A deterministic automaton made by hand, for a set of strings that no pattern of moderate size describes.

    States are hashable and carry whatever the set depends on; `start` is a function of no other thing than the set.
    """

    @property
    def start(self) -> Hashable: ...

    def accepting(self, state: Any) -> bool: ...

    def moves(self, state: Any) -> Iterable[tuple[tuple[tuple[int, int], ...], Hashable]]:
        """Disjoint `(inclusive intervals of code points, next state)`; a character in none of them leads nowhere."""
        ...

    def is_live(self, state: Any) -> bool:
        """Whether some string is accepted from `state`."""
        ...

    def shortest(self, state: Any) -> int:
        """A lower bound, in code points, for the strings accepted from `state`; the closer, the less is explored."""
        ...

    def at_most(self, state: Any, length: int) -> Hashable | None:
        """A state that accepts those of the strings of `state` that are no longer; None if there is no such state."""
        ...

    def beside_others(self, state: Any) -> Hashable | None:
        """The state that stands for `state` in conjunctions with other sets than lengths: one from which few states are reached, since
        all of them may be explored there. It may accept less. None for no string."""
        ...

    def run(self, state: Any) -> Run | None:
        """A large run that can begin at `state`; None if there is none."""
        ...


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
class HasLengths(Protocol):
    """An automaton whose strings can be counted."""

    def min_length(self, q: int) -> int | None:
        """Length in code points of a shortest string accepted from `q`; None if none is."""
        ...


@runtime_checkable
class HasRuns(Protocol):
    """An automaton that knows where many characters can come one after another without looking at each."""

    def run(self, q: int) -> Run | None:
        """A large run that can begin at `q`; None if there is none, or none is known."""
        ...

    def ahead(self, q: int, count: int) -> int:
        """The state after `count` characters of the run at `q`, which has at least so many and knows `may_end`."""
        ...
