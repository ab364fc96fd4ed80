"""What a digit prefix can still become: the windows of the number line that its continuations reach.

With the digits `m` read so far, `p` of them behind the decimal point, every continuation has a value in
`[m, m + 1) * 10**(e - p)`, a *window*, where `e` is the number of integer digits or the exponent still to come. Two
prefixes with equal windows and equal residues have the same continuations, which is what makes the automaton finite; a
prefix is alive if one of its windows holds a value of the set, which is what makes it trimmed. Windows are on the
non-negative half-line: negative numbers are read on the mirrored set.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from ..lazily import lazy
from .numbers_divisors import decade, decimal_places, power_of_ten
from .numbers_exponent import MAX_EXPONENT, MIN_EXPONENT, Ranges
from .numbers_line import Line


@dataclass(eq=False, slots=True)
class Decade:
    """The cuts in [10**exponent, 10**(exponent + 1)): those at the indexes first..stop - 1."""

    exponent: int
    first: int
    stop: int


@dataclass(eq=False, slots=True)
class Window:
    """A run of windows with the same condition. Not frozen, since making one would take twice as long.

    `exponents` is a range of `e`, its `stop` None where it has no end. The cuts first..stop - 1 lie inside (the left end
    included); only a run of length one has any. `gap` is the table to the left of the first cut inside.
    """

    low_exponent: int
    stop_exponent: int | None
    first: int
    stop: int
    gap: int


View = tuple[object, ...]


@dataclass(eq=False)
class Side:
    """The values of a line from zero upwards, indexed by decades. Cuts are compared as integers, in units of 10**-_places."""

    line: Line

    @lazy
    def _places(self) -> int:
        return max([decimal_places(cut) or 0 for cut in self.line.cuts], default=0)

    @lazy
    def _cuts(self) -> tuple[int, ...]:
        unit = 10**self._places
        return tuple([cut.numerator * (unit // cut.denominator) for cut in self.line.cuts])

    def _from(self, digits: int, scale: int, first: int, stop: int) -> int:
        """The first of the cuts first..stop - 1 that is at least `digits * 10**scale`."""
        shift = scale + self._places
        return bisect_left(self._cuts, digits * 10**shift if shift >= 0 else -(-digits // 10**-shift), first, stop)

    def _offset(self, index: int, scale: int, digits: int) -> int | Fraction:
        """`cut * 10**scale - digits`."""
        shift = scale - self._places
        if shift >= 0:
            return self._cuts[index] * 10**shift - digits
        unit = 10**-shift
        whole, rest = divmod(self._cuts[index], unit)
        return Fraction(self._cuts[index] - digits * unit, unit) if rest else whole - digits

    @lazy
    def decades(self) -> tuple[Decade, ...]:
        cuts = self.line.cuts
        found = []
        for exponent, indexes in groupby(range(bisect_left(cuts, 0), len(cuts)), key=self._decade_of_cut):
            if exponent is not None:
                members = list(indexes)
                found.append(Decade(exponent, members[0], members[-1] + 1))
        return tuple(found)

    def _decade_of_cut(self, index: int) -> int | None:
        cut = self.line.cuts[index]
        return decade(cut) if cut else None

    @lazy
    def _first_gap(self) -> int:
        """The index of the gap right above zero."""
        cuts = self.line.cuts
        index = bisect_left(cuts, 0)
        return index + (index < len(cuts) and cuts[index] == 0)

    def windows(self, digits: int, places: int, low: int, stop: int | None) -> list[Window]:
        """The windows of `digits` > 0 for the exponents from `low` to before `stop` (None: without end)."""
        own = len(str(digits)) - 1 - places
        gaps = self.line.gaps
        found: list[Window] = []
        at, gap_index = low, self._first_gap
        for block in self.decades:
            exponent = block.exponent - own
            if stop is not None and exponent >= stop:
                break
            if exponent >= low:
                if exponent > at:
                    _extend(found, at, exponent, gaps[gap_index])
                first, last = self._inside(block, digits, exponent - places)
                if first == last:
                    _extend(found, exponent, exponent + 1, gaps[first])
                else:
                    found.append(Window(exponent, exponent + 1, first, last, gaps[first]))
                at = exponent + 1
            gap_index = block.stop
        if stop is None or at < stop:
            _extend(found, at, stop, gaps[gap_index])
        return found

    def _inside(self, block: Decade, digits: int, scale: int) -> tuple[int, int]:
        first = self._from(digits, scale, block.first, block.stop)
        return first, self._from(digits + 1, scale, first, block.stop)

    def window_at_zero(self, places: int) -> Window:
        """The window [0, 10**-places)."""
        size = len(self._cuts)
        first = self._from(0, 0, 0, size)
        return Window(0, 1, first, self._from(1, -places, first, size), self.line.gaps[first])

    def view(self, window: Window, digits: int, places: int) -> View:
        """The window as seen from its left end, in units of its width: equal views admit the same continuations."""
        if window.first == window.stop:
            return (window.low_exponent, window.stop_exponent, window.gap)
        scale, line = places - window.low_exponent, self.line
        pieces = [
            (self._offset(index, scale, digits), line.points[index], line.gaps[index + 1]) for index in range(window.first, window.stop)
        ]
        return (window.low_exponent, None if pieces[0][0] == 0 else window.gap, *pieces)

    def decided_view(self, window: Window, digits: int, places: int) -> View:
        """The view where only the left end can be on a grid: truth values instead of tables."""
        line = self.line
        at_end = line.contains(Fraction(digits, 10**places))
        pieces: list[tuple[int | Fraction, bool, bool]] = [(0, at_end, bool(window.gap & 1))]
        for index in range(window.first, window.stop):
            offset, beyond = self._offset(index, places, digits), bool(line.gaps[index + 1] & 1)
            if offset == 0:
                pieces = [(offset, at_end, beyond)]
            elif not pieces[-1][2] == line.points[index] == beyond:
                pieces.append((offset, line.points[index], beyond))
        return tuple(pieces)

    def support(self, windows: list[Window]) -> list[int]:
        """The indexes of the grids that matter inside the windows, ascending."""
        grids, gaps = self.line.grids, self.line.gaps
        if not grids.grids:
            return []
        tables = {window.gap for window in windows}
        for window in windows:
            tables.update(gaps[window.first + 1 : window.stop + 1])
        if len(tables) == 1:
            return list(grids.support(tables.pop()))
        return sorted({index for table in tables for index in grids.support(table)})

    def occurs(self, window: Window, digits: int, places: int, max_places: int | None) -> bool:
        """Whether a value of the set lies in the window; with `max_places`, one with so few digits behind the point."""
        line = self.line
        if window.first == window.stop:
            if not window.gap:
                return False
            if window.stop_exponent is None:
                return True
            if digits == 0:
                return line.grids.occurs(window.gap, Fraction(0), power_of_ten(-places), closed=True)
            exponents = range(window.low_exponent, window.stop_exponent)
            return line.grids.occurs_at_scale(window.gap, digits, places, exponents, max_places)
        unit = power_of_ten(window.low_exponent - places)
        grain = None if max_places is None else power_of_ten(window.low_exponent - max_places)
        return self._occurs_between(window, digits * unit, (digits + 1) * unit, grain)

    def _occurs_between(self, window: Window, low: Fraction, high: Fraction, grain: Fraction | None) -> bool:
        line = self.line
        inside = range(window.first, window.stop)
        cuts = line.cuts
        if any(line.points[index] and (grain is None or (cuts[index] / grain).denominator == 1) for index in inside):
            return True
        if cuts[window.first] > low and line.grids.occurs(window.gap, low, cuts[window.first], closed=True, grain=grain):
            return True
        ends = [*cuts[window.first + 1 : window.stop], high]
        return any(line.grids.occurs(line.gaps[index + 1], cuts[index], ends[index - window.first], grain=grain) for index in inside)

    def exponents(self, digits: int, places: int) -> Ranges:
        """All exponents `e` for which `digits * 10**(e - places)` is in the set. `digits` > 0."""
        own = len(str(digits)) - 1 - places
        breaks = {MIN_EXPONENT}
        for block in self.decades:
            breaks.update((block.exponent - own, block.exponent - own + 1))
        for grid in self.line.grids.grids:
            first = grid.first_exponent(digits, places)
            if first is not None:
                breaks.add(first)
        starts = sorted(start for start in breaks if MIN_EXPONENT <= start <= MAX_EXPONENT)
        found: list[tuple[int, int]] = []
        for start, stop in zip(starts, [*starts[1:], MAX_EXPONENT + 1], strict=True):
            if self.line.contains(digits * power_of_ten(start - places)):
                if found and found[-1][1] == start - 1:
                    start = found.pop()[0]
                found.append((start, stop - 1))
        return tuple(found)


def _extend(found: list[Window], low: int, stop: int | None, gap: int) -> None:
    """Append a run without cuts, merged with its predecessor where the condition is the same."""
    if found and found[-1].first == found[-1].stop and found[-1].gap == gap:
        low = found.pop().low_exponent
    found.append(Window(low, stop, 0, 0, gap))
