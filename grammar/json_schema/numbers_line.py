"""Sets of values on the number line: finitely many cuts, and a condition on divisibility between two cuts.

`Line` is closed under union, intersection and complement. It knows values only; spellings are the business of
`numbers_automaton`.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from ..lazily import lazy
from .numbers_divisors import Grid, GridBasis, basis

NO_GRIDS = basis(frozenset())
NOWHERE = 0
EVERYWHERE = NO_GRIDS.full


@dataclass(frozen=True)
class Line:
    """A set of decimals.

    Attributes:
        grids: the divisors that occur, as a basis.
        cuts: ascending values where the condition changes.
        points: for each cut whether it belongs to the set.
        gaps: for each open interval (before the first cut, between two, after the last) a table over `grids`:
            a value of the interval belongs to the set if its pattern is in the table.
    """

    grids: GridBasis
    cuts: tuple[Fraction, ...]
    points: tuple[bool, ...]
    gaps: tuple[int, ...]

    @lazy
    def _hash(self) -> int:
        return hash((self.grids, self.cuts, self.points, self.gaps))

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def constant(cls, holds: bool) -> Line:
        return cls(NO_GRIDS, (), (), (EVERYWHERE if holds else NOWHERE,))

    @classmethod
    def multiples(cls, step: Fraction) -> Line:
        return cls(basis(frozenset((Grid(step),))), (), (), (0b10,))

    @classmethod
    def values(cls, values: Iterable[Fraction]) -> Line:
        distinct = set(values)
        scale = lcm(*{value.denominator for value in distinct})  # to compare integers, which is faster
        cuts = tuple(sorted(distinct, key=lambda value: value.numerator * (scale // value.denominator)))
        return cls(NO_GRIDS, cuts, (True,) * len(cuts), (NOWHERE,) * (len(cuts) + 1))

    @classmethod
    def at_least(cls, bound: Fraction, *, exclusive: bool) -> Line:
        return cls(NO_GRIDS, (bound,), (not exclusive,), (NOWHERE, EVERYWHERE))

    @classmethod
    def at_most(cls, bound: Fraction, *, exclusive: bool) -> Line:
        return cls(NO_GRIDS, (bound,), (not exclusive,), (EVERYWHERE, NOWHERE))

    def __and__(self, other: Line) -> Line:
        if self is other or other == _ALL or self == _NOTHING:
            return self
        return other if self == _ALL or other == _NOTHING else self._combined(other, operator.and_)

    def __or__(self, other: Line) -> Line:
        if self is other or other == _NOTHING or self == _ALL:
            return self
        return other if self == _NOTHING or other == _ALL else self._combined(other, operator.or_)

    def __invert__(self) -> Line:
        full = self.grids.full
        return Line(self.grids, self.cuts, tuple(not point for point in self.points), tuple(gap ^ full for gap in self.gaps))

    def _combined(self, other: Line, operation: Callable[[int, int], int]) -> Line:
        grids = basis(frozenset(self.grids.grids) | frozenset(other.grids.grids))
        cuts = self.cuts if self.cuts == other.cuts else tuple(sorted({*self.cuts, *other.cuts}))
        one, two = self._refined(cuts, grids), other._refined(cuts, grids)
        points = tuple(bool(operation(a, b)) for a, b in zip(one.points, two.points, strict=True))
        return _simplified(Line(grids, cuts, points, tuple(map(operation, one.gaps, two.gaps))))

    def _refined(self, cuts: tuple[Fraction, ...], grids: GridBasis) -> Line:
        """The same set over more cuts and a wider basis."""
        points, gaps, index = [], [self.gaps[0]], 0
        for cut in cuts:
            if index < len(self.cuts) and self.cuts[index] == cut:
                points.append(self.points[index])
                index += 1
            else:
                points.append(self.grids.holds(self.gaps[index], cut))
            gaps.append(self.gaps[index])
        return Line(grids, cuts, tuple(points), tuple(self.grids.lift(gap, grids) for gap in gaps))

    def contains(self, value: Fraction) -> bool:
        index = bisect_left(self.cuts, value)
        if index < len(self.cuts) and self.cuts[index] == value:
            return self.points[index]
        return self.grids.holds(self.gaps[index], value)

    @lazy
    def empty(self) -> bool:
        """Whether the set has no value."""
        return not any(self.points) and not self.gaps[0] and not self.gaps[-1] and not any(map(self._gap_occurs, range(1, len(self.cuts))))

    def _gap_occurs(self, index: int) -> bool:
        return self.grids.occurs(self.gaps[index], self.cuts[index - 1], self.cuts[index])

    @lazy
    def full(self) -> bool:
        """Whether the set has all values."""
        return (~self).empty

    def listed(self, cap: int) -> list[Fraction] | None:
        """All values in ascending order, None if there are more than `cap`."""
        if self.gaps[0] or self.gaps[-1]:
            return None
        found = [cut for cut, inside in zip(self.cuts, self.points, strict=True) if inside]
        for index in range(1, len(self.cuts)):
            if self._gap_occurs(index):
                if self.gaps[index] & 1 or not self.grids.grids:
                    return None  # values on no grid are dense
                low, high = self.cuts[index - 1], self.cuts[index]
                for step in (grid.step for grid in self.grids.grids):
                    if (high - low) / step > 100 * cap:
                        return None
                    multiples = (k * step for k in range(low // step + 1, -(-high // step)))
                    found += [value for value in multiples if self.contains(value)]
        found = sorted(set(found))
        return found if len(found) <= cap else None

    def mirrored(self) -> Line:
        """The set of the negated values."""
        return Line(self.grids, tuple(-cut for cut in reversed(self.cuts)), self.points[::-1], self.gaps[::-1])


_ALL = Line.constant(True)
_NOTHING = Line.constant(False)


def _simplified(line: Line) -> Line:
    """The same set without cuts that change nothing and without grids that nothing depends on."""
    kept = [index for index in range(len(line.cuts)) if not _is_redundant(line, index)]
    gaps = (line.gaps[0], *(line.gaps[index + 1] for index in kept))
    used = {index for gap in set(gaps) for index in line.grids.support(gap)}
    grids = basis(frozenset(line.grids.grids[index] for index in used))
    return Line(
        grids,
        tuple(line.cuts[index] for index in kept),
        tuple(line.points[index] for index in kept),
        tuple(_narrowed(line.grids, gap, grids) for gap in gaps),
    )


def _is_redundant(line: Line, index: int) -> bool:
    before, after = line.gaps[index], line.gaps[index + 1]
    return before == after and line.points[index] == line.grids.holds(before, line.cuts[index])


def _narrowed(owner: GridBasis, table: int, grids: GridBasis) -> int:
    """A table that depends only on `grids`, as a table over them."""
    if owner is grids:
        return table
    places = [owner.grids.index(grid) for grid in grids.grids]
    narrowed = 0
    for pattern in owner.patterns(table):
        own = sum(1 << index for index, place in enumerate(places) if pattern >> place & 1)
        narrowed |= 1 << own
    return narrowed
