"""The spellings of a set of numbers, as a lazy trimmed automaton over the characters of RFC 8259, section 6.

A *position* is what has been read, reduced to what matters for the rest. Positions hand out their successors; the
automaton numbers them by their keys and keeps those that are alive. A position may carry a representative (the digits of
the first prefix that led to it): equal keys promise equal continuations, so any representative does.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from fractions import Fraction
from operator import itemgetter
from typing import Protocol

from ..errors import LimitError
from ..languages import Edge
from ..lazily import lazy
from ..limits import Limits
from .numbers_divisors import Grid
from .numbers_exponent import MAX_EXPONENT, MIN_EXPONENT, AfterExponentMark, ExponentTail
from .numbers_line import Line
from .numbers_windows import Side, Window

MAX_PLACES_WITH_EXPONENT = 20
_DIGITS = "0123456789"


class Position(Protocol):
    @property
    def key(self) -> Hashable:
        """Equal keys, equal continuations."""
        ...

    @property
    def alive(self) -> bool: ...

    @property
    def accepting(self) -> bool: ...

    def successors(self) -> Sequence[tuple[str, Position]]:
        """One entry per character, in any order; dead ones included."""
        ...


class Stage(IntEnum):  # of ints, whose hash costs no call
    ZERO = 0
    INTEGER = 1
    POINT = 2
    FRACTION = 3


@dataclass(frozen=True, eq=False)
class Start:
    """Nothing read."""

    line: Line
    accepting = False

    @property
    def key(self) -> Hashable:
        return Start

    @property
    def alive(self) -> bool:
        return any(position.alive for _, position in self.successors())

    def successors(self) -> list[tuple[str, Position]]:
        return [("-", Minus(Side(self.line.mirrored()))), *_first_digits(Side(self.line))]


@dataclass(frozen=True, eq=False)
class Minus:
    """Behind the minus sign. `side` is the mirrored set."""

    side: Side
    accepting = False

    @property
    def key(self) -> Hashable:
        return Minus

    @property
    def alive(self) -> bool:
        return any(position.alive for _, position in self.successors())

    def successors(self) -> list[tuple[str, Position]]:
        return _first_digits(self.side)


def _first_digits(side: Side) -> list[tuple[str, Position]]:
    nonzero = [(digit, Digits(side, int(digit), 0, Stage.INTEGER, True)) for digit in "123456789"]
    return [("0", Digits(side, 0, 0, Stage.ZERO, False)), *nonzero]


@dataclass(eq=False)
class Digits:
    """Inside the mantissa. Not frozen, since making one would take twice as long.

    Attributes:
        digits: all digits read so far, without the point, as an integer.
        places: how many of them stand behind the point.
        scientific: whether an exponent may still follow.
    """

    side: Side
    digits: int
    places: int
    stage: Stage
    scientific: bool

    @lazy
    def _windows(self) -> list[Window]:
        if self.digits == 0:
            return [self.side.window_at_zero(self.places)]
        low = MIN_EXPONENT if self.scientific else 0
        if self.stage is Stage.INTEGER:
            return self.side.windows(self.digits, self.places, low, None)
        return self.side.windows(self.digits, self.places, low, MAX_EXPONENT + 1 if self.scientific else 1)

    @property
    def key(self) -> Hashable:
        windows = self._windows
        grids = [self.side.line.grids.grids[index] for index in self.side.support(windows)]
        if not self.scientific and self.stage is not Stage.INTEGER and all(grid.places <= self.places for grid in grids):
            return (self.stage, self.side.decided_view(windows[0], self.digits, self.places))
        views = tuple(self.side.view(window, self.digits, self.places) for window in windows)
        return (self.stage, self.scientific, views, self._residues(grids))

    def _residues(self, grids: list[Grid]) -> Hashable:
        if not self.scientific:
            return (self.places, tuple(map(self._residue, grids))) if grids else None
        if self._max_places is None:
            return None
        digits, zeros = self.digits, 0
        while digits % 10 == 0:
            digits, zeros = digits // 10, zeros + 1
        return (self.places, zeros, tuple(grid.residue(digits) for grid in grids))

    def _residue(self, grid: Grid) -> Hashable:
        if self.stage is not Stage.INTEGER and self.places >= grid.places:
            return grid.contains(Fraction(self.digits, 10**self.places))
        return grid.residue(self.digits)

    @property
    def _max_places(self) -> int | None:
        """How many digits may stand behind the point if an exponent follows; None: any number."""
        return MAX_PLACES_WITH_EXPONENT if self.side.line.grids.grids else None

    @property
    def alive(self) -> bool:
        return self._occurs(self._plain_windows, None) or (self.scientific and self._occurs(self._windows, self._max_places))

    @property
    def _plain_windows(self) -> list[Window]:
        """The windows that are reached without an exponent."""
        if not self.scientific:
            return self._windows
        return self.side.windows(self.digits, self.places, 0, None if self.stage is Stage.INTEGER else 1)

    def _occurs(self, windows: list[Window], max_places: int | None) -> bool:
        return any(self.side.occurs(window, self.digits, self.places, max_places) for window in windows)

    @property
    def accepting(self) -> bool:
        return self.stage is not Stage.POINT and self.side.line.contains(Fraction(self.digits, 10**self.places))

    def successors(self) -> list[tuple[str, Position]]:
        found: list[tuple[str, Position]] = []
        if self.stage is Stage.INTEGER:
            found += [(digit, self._with_digit(digit, 0, Stage.INTEGER, False)) for digit in _DIGITS]
        elif self.stage is not Stage.ZERO:
            scientific = self.scientific and self.places != self._max_places
            found += [(digit, self._with_digit(digit, self.places + 1, Stage.FRACTION, scientific)) for digit in _DIGITS]
        if self.stage in (Stage.ZERO, Stage.INTEGER):
            found.append((".", Digits(self.side, self.digits, 0, Stage.POINT, self.scientific)))
        if self.scientific and self.stage is not Stage.POINT:
            mark = AfterExponentMark(self.side.exponents(self.digits, self.places))
            found += [("e", mark), ("E", mark)]
        return found

    def _with_digit(self, digit: str, places: int, stage: Stage, scientific: bool) -> Digits:
        return Digits(self.side, self.digits * 10 + int(digit), places, stage, scientific)


class AnyNumber(Enum):
    """The positions of the full number syntax of RFC 8259."""

    START = "start"
    MINUS = "minus"
    ZERO = "zero"
    INTEGER = "integer"
    POINT = "point"
    FRACTION = "fraction"
    MARK = "mark"
    SIGN = "sign"
    EXPONENT = "exponent"

    @property
    def key(self) -> AnyNumber:
        return self

    @property
    def alive(self) -> bool:
        return True

    @property
    def accepting(self) -> bool:
        return self in (AnyNumber.ZERO, AnyNumber.INTEGER, AnyNumber.FRACTION, AnyNumber.EXPONENT)

    def successors(self) -> list[tuple[str, AnyNumber]]:
        return [(char, target) for chars, target in _SYNTAX[self] for char in chars]


_AFTER_MINUS = [("0", AnyNumber.ZERO), ("123456789", AnyNumber.INTEGER)]
_AFTER_INTEGER = [(".", AnyNumber.POINT), ("eE", AnyNumber.MARK)]
_SYNTAX = {
    AnyNumber.START: [("-", AnyNumber.MINUS), *_AFTER_MINUS],
    AnyNumber.MINUS: _AFTER_MINUS,
    AnyNumber.ZERO: _AFTER_INTEGER,
    AnyNumber.INTEGER: [(_DIGITS, AnyNumber.INTEGER), *_AFTER_INTEGER],
    AnyNumber.POINT: [(_DIGITS, AnyNumber.FRACTION)],
    AnyNumber.FRACTION: [(_DIGITS, AnyNumber.FRACTION), ("eE", AnyNumber.MARK)],
    AnyNumber.MARK: [("+-", AnyNumber.SIGN), (_DIGITS, AnyNumber.EXPONENT)],
    AnyNumber.SIGN: [(_DIGITS, AnyNumber.EXPONENT)],
    AnyNumber.EXPONENT: [(_DIGITS, AnyNumber.EXPONENT)],
}


_UNKNOWN = -1


class NumberAutomaton:
    """A `CharAutomaton` over positions. Safe to share between threads. Raises LimitError beyond `limits.max_states`."""

    def __init__(self, start: Position, limits: Limits):
        self._positions: list[Position] = []
        self._ids: dict[Hashable, int | None] = {}
        self._edges: dict[int, tuple[Edge, ...]] = {}
        self._max_states = limits.max_states
        self._lock = threading.Lock()
        self._start = self._add(start)

    @property
    def start(self) -> int:
        return self._start

    @property
    def num_states(self) -> int:
        """States made so far."""
        return len(self._positions)

    def accepting(self, q: int) -> bool:
        return self._positions[q].accepting

    def universal(self, q: int) -> bool:
        return False

    def tail_count(self, q: int, cap: int) -> int | None:
        """Finite only behind a nonzero exponent digit: zeros can always be added to a fraction or in front of an exponent."""
        position = self._positions[q]
        if not isinstance(position, ExponentTail):
            return None if position.alive else 0
        return position.num_completions if position.num_completions <= cap else None

    def edges(self, q: int) -> tuple[Edge, ...]:
        found = self._edges.get(q)
        if found is None:
            with self._lock:
                found = self._edges[q] = self._explore(self._positions[q])
        return found

    def _explore(self, position: Position) -> tuple[Edge, ...]:
        edges: list[Edge] = []
        for char, successor in sorted(position.successors(), key=itemgetter(0)):
            target = self._id(successor)
            if target is None:
                continue
            code = ord(char)
            if edges and edges[-1][1] == code - 1 and edges[-1][2] == target:
                edges[-1] = (edges[-1][0], code, target)
            else:
                edges.append((code, code, target))
        return tuple(edges)

    def _id(self, position: Position) -> int | None:
        """The number of a position, None if it is dead."""
        key = position.key
        number = self._ids.get(key, _UNKNOWN)
        if number == _UNKNOWN:
            number = self._ids[key] = self._add(position) if position.alive else None
        return number

    def _add(self, position: Position) -> int:
        if len(self._positions) >= self._max_states:
            raise LimitError(f"a number constraint needs more than {self._max_states} states")
        self._positions.append(position)
        return len(self._positions) - 1
