"""Places: what can stand before a parser that reads left corners, made only when a text gets there.

A place is a segment still to be read (the tail of a production, or the growth of a left corner into its goal), the guard before it
and the guards that may hold after it. `expand` answers which terminals can come first, and the places after each. Recognising needs
no tree, so places that read the same texts are merged as far as that is cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import GrammarError
from ..regex import CharSet
from ..regex.charset import NO_CHARS
from .corners import Corners, Start
from .growths import Growths
from .guards import FREE, Guards
from .lexemes import Reader
from .numbered import NumberedGrammar, Production
from .outcomes import Outcomes


class Tail(NamedTuple):
    """Symbols one after another."""

    symbols: Production


class Growth(NamedTuple):
    """How `symbol`, just read at the left edge of `goal`, becomes the whole of it."""

    goal: int
    symbol: int


Segment = Tail | Growth
Segments = tuple[Segment, ...]


class Place(NamedTuple):
    """A segment to be read.

    Attributes:
        guard: holds before it (FREE also if it forbids nothing that can come here).
        ends: guards one of which must hold after it.
        skippable: it may read nothing.
    """

    segment: Segment
    guard: int
    ends: frozenset[int]
    skippable: bool


class AnyOf(NamedTuple):
    """Any one of several places."""

    places: frozenset[Place]

    @property
    def skippable(self) -> bool:
        return any(place.skippable for place in self.places)


Position = Place | AnyOf
Path = tuple[Position, ...]


class Leaf(NamedTuple):
    """A terminal, the guard before it, and the guards one of which must hold after it."""

    terminal: int
    guard: int
    ends: frozenset[int]


class Alternative(NamedTuple):
    """One of `leaves`, then `path`."""

    leaves: tuple[Leaf, ...]
    path: Path


class Places:
    """Places of one grammar.

    Args:
        grammar: its productions.
        readers: of its terminals, by number.
        guards: shared with the readers.
        outcomes: shared tabulation.
    """

    def __init__(self, grammar: NumberedGrammar, readers: Sequence[Reader], guards: Guards, outcomes: Outcomes):
        self._grammar = grammar
        self._readers = readers
        self._guards = guards
        self._outcomes = outcomes
        self._by_goal: dict[int, Growths] = {}
        self._firsts: dict[int | Segment, CharSet] = {}

    def sentence(self) -> Place | None:
        """The place before a whole text, None if only the empty text is one.

        Raises:
            GrammarError: no text satisfies the grammar.
        """
        start = self._grammar.start
        if start is None:
            return None
        ends = frozenset(end for end in self._outcomes.of_symbol(start, FREE) if self._guards.allows_end(end))
        if not ends:
            raise GrammarError("no text satisfies the grammar: its terminals never end where the next one can begin")
        return Place(Tail((start,)), FREE, ends, self._grammar.nullable(start) and FREE in ends)

    def expand(self, position: Position) -> tuple[Alternative, ...]:
        """What can come first at a position."""
        places = position.places if isinstance(position, AnyOf) else (position,)
        found: list[tuple[Leaf, Path]] = []
        for place in places:
            if isinstance(place.segment, Tail):
                self._begin(place.segment.symbols, (), place, found)
            else:
                self._grow(place.segment, place, found)
        return _merged(self._needed(found))

    # --- what comes first ------------------------------------------------------------------------------------------

    def _begin(self, symbols: Production, after: Segments, place: Place, found: list[tuple[Leaf, Path]]) -> None:
        """Adds the ways to begin `symbols`, which `after` follows up to the end of `place`."""
        for at, symbol in enumerate(symbols):
            rest = symbols[at + 1 :]
            follow: Segments = (Tail(rest), *after) if rest else after
            if symbol < 0:
                self._read(symbol, follow, place, found)
            else:
                for start in self._corners(symbol).starts:
                    self._read(start.terminal, (*self._completed(start, symbol), *follow), place, found)
            if not self._grammar.nullable(symbol):
                break

    def _completed(self, start: Start, goal: int) -> Segments:
        """What follows the terminal of a start until its goal is complete."""
        tail: Segments = (Tail(start.rest),) if start.rest else ()
        return (*tail, *self._growth(goal, start.head, start.rest))

    def _growth(self, goal: int, head: int, rest: Production) -> Segments:
        """The growth of `head` into `goal` after `rest` completed it; nothing where that reads nothing new."""
        corners = self._corners(goal)
        symbol = corners.same_as(head)
        # What ends with the goal itself has grown already: the goal takes everything that could be added.
        if symbol == goal and (not corners.recursive or (rest and rest[-1] == goal)):
            return ()
        return (Growth(goal, symbol),)

    def _grow(self, growth: Growth, place: Place, found: list[tuple[Leaf, Path]]) -> None:
        corners = self._corners(growth.goal)
        for symbol in self._growths(growth.goal).heads(growth.symbol):
            for parent in corners.parents(symbol):
                self._begin(parent.rest, self._growth(growth.goal, parent.head, parent.rest), place, found)

    def _needed(self, found: list[tuple[Leaf, Path]]) -> list[tuple[Leaf, Path]]:
        """Leaves out `(leaf, path, rest)` where `(leaf, path)` reads as much: after a growth of a goal into itself, a rest that the same
        growth adds. Otherwise the stack of `s: s s s | s s | "a"` would get higher with each "a"."""
        if not self._outcomes.unguarded:
            return found
        known = set(found)

        def is_needed(leaf: Leaf, path: Path) -> bool:
            return len(path) < 2 or (leaf, path[:-1]) not in known or not self._adds(path[-2], path[-1])

        return [(leaf, path) for leaf, path in found if is_needed(leaf, path)]

    def _adds(self, before: Position, last: Position) -> bool:
        """Whether a growth reads everything that `last` reads after it."""
        if isinstance(before, AnyOf) or isinstance(last, AnyOf):
            return False
        growth, tail = before.segment, last.segment
        if not isinstance(growth, Growth) or not isinstance(tail, Tail) or growth.symbol != growth.goal:
            return False
        corners = self._corners(growth.goal)
        return any(parent.rest == tail.symbols and corners.same_as(parent.head) == growth.goal for parent in corners.parents(growth.goal))

    def _growths(self, goal: int) -> Growths:
        found = self._by_goal.get(goal)
        if found is None:
            found = self._by_goal[goal] = Growths(self._grammar, self._outcomes, goal)
        return found

    def _corners(self, goal: int) -> Corners:
        return self._growths(goal).corners

    # --- with guards -----------------------------------------------------------------------------------------------

    def _read(self, terminal: int, segments: Segments, place: Place, found: list[tuple[Leaf, Path]]) -> None:
        """Adds the ways to read a terminal and then the segments."""
        guard = FREE if self._guards.lets_pass(place.guard, self._first_of(terminal)) else place.guard
        for path, ends in self._by_path(self._readers[~terminal].outcomes(guard), segments, place.ends).items():
            found.append((Leaf(terminal, guard, frozenset(ends)), path))

    def _by_path(self, guards: Iterable[int], segments: Segments, ends: frozenset[int]) -> dict[Path, set[int]]:
        """The paths through segments, each with the guards before it that it takes."""
        result: dict[Path, set[int]] = {}
        for guard in guards:
            for path in self._paths(segments, guard, ends):
                result.setdefault(path, set()).add(guard)
        return result

    def _paths(self, segments: Segments, guard: int, ends: frozenset[int]) -> list[Path]:
        """The paths through at most a few segments under a guard, such that one of `ends` holds after them."""
        if not segments:
            return [()] if guard in ends else []
        first, rest = segments[0], segments[1:]
        by_path = self._by_path(self._outcomes_of(first, guard), rest, ends)
        return [(*self._place(first, guard, frozenset(before)), *path) for path, before in by_path.items()]

    def _place(self, segment: Segment, guard: int, ends: frozenset[int]) -> Path:
        """A segment that begins under a guard, or nothing if it reads nothing."""
        skippable = guard in ends and self._is_nullable(segment)
        if guard != FREE and self._guards.lets_pass(guard, self._first_of(segment)):
            guard = FREE
            ends = ends & self._outcomes_of(segment, FREE)
        return (Place(segment, guard, ends, skippable),) if ends else ()

    def _is_nullable(self, segment: Segment) -> bool:
        if isinstance(segment, Growth):
            return segment.goal in self._growths(segment.goal).heads(segment.symbol)
        return all(self._grammar.nullable(symbol) for symbol in segment.symbols)

    def _outcomes_of(self, segment: Segment, guard: int) -> frozenset[int]:
        if isinstance(segment, Tail):
            return self._outcomes.of_sequence(segment.symbols, guard)
        return self._growths(segment.goal).ends(segment.symbol, guard)

    # --- first characters ------------------------------------------------------------------------------------------

    def _first_of(self, part: int | Segment) -> CharSet:
        """Characters that a symbol or segment can begin with."""
        found = self._firsts.get(part)
        if found is None:
            found = self._firsts[part] = self._find_first(part)
        return found

    def _find_first(self, part: int | Segment) -> CharSet:
        if isinstance(part, Tail):
            return self._first_of_all(part.symbols)
        result = NO_CHARS
        if isinstance(part, Growth):
            corners = self._corners(part.goal)
            for symbol in self._growths(part.goal).heads(part.symbol):
                for parent in corners.parents(symbol):
                    result = result | self._first_of_all(parent.rest)
        elif part < 0:
            result = self._readers[~part].first()
        else:
            for start in self._corners(part).starts:
                result = result | self._first_of(start.terminal)
        return result

    def _first_of_all(self, symbols: Production) -> CharSet:
        result = NO_CHARS
        for symbol in symbols:
            result = result | self._first_of(symbol)
            if not self._grammar.nullable(symbol):
                break
        return result


def _merged(found: list[tuple[Leaf, Path]]) -> tuple[Alternative, ...]:
    """Alternatives, with paths of the same leaf joined where they differ in one position, and leaves of the same path together."""
    by_leaf: dict[Leaf, dict[Path, None]] = {}
    for leaf, path in found:
        by_leaf.setdefault(leaf, {})[path] = None
    by_path: dict[Path, list[Leaf]] = {}
    for leaf, paths in by_leaf.items():
        for path in _joined(list(paths)):
            by_path.setdefault(path, []).append(leaf)
    return tuple(Alternative(tuple(leaves), path) for path, leaves in by_path.items())


def _joined(paths: list[Path]) -> list[Path]:
    """Paths with AnyOf where several differ in one position only."""
    longest = max(len(path) for path in paths)
    at = longest - 1
    while len(paths) > 1 and at >= 0:
        groups: dict[object, list[Path]] = {}
        for path in paths:
            groups.setdefault((path[:at], path[at + 1 :]) if len(path) > at else path, []).append(path)
        if len(groups) < len(paths):
            paths = [_joined_at(at, group) for group in groups.values()]
            at = longest
        at -= 1
    return paths


def _joined_at(at: int, paths: list[Path]) -> Path:
    """One path for several that are equal but for one position."""
    first = paths[0]
    return first if len(paths) == 1 else (*first[:at], _any_of(path[at] for path in paths), *first[at + 1 :])


def _any_of(positions: Iterable[Position]) -> AnyOf:
    places: set[Place] = set()
    for position in positions:
        places.update(position.places if isinstance(position, AnyOf) else (position,))
    return AnyOf(frozenset(places))
