"""Grids of multiples: which combinations of `multipleOf` can hold together, and where they do.

A `Grid` is the set of multiples of one positive decimal. A `GridBasis` is a tuple of grids together with the algebra of
*tables*: a table is a set of sign patterns over the basis, one bit per pattern, where bit `i` of a pattern says whether a
value lies on grid `i`. Bit 0 of a table is therefore "on no grid at all". A pattern that no value has (on the grid of 6,
off the grid of 3) is *inconsistent* and never set in a normalised table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from ..cancellation import check
from ..errors import LimitError

MAX_GRIDS = 8


def power_of_ten(exponent: int) -> Fraction:
    """10**exponent, exactly."""
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)


def decade(value: Fraction) -> int:
    """The `x` with 10**x <= value < 10**(x + 1). `value` > 0."""
    guess = math.floor((value.numerator.bit_length() - value.denominator.bit_length() - 1) * math.log10(2))
    while power_of_ten(guess + 1) <= value:
        guess += 1
    return guess


def decimal_places(value: Fraction) -> int | None:
    """The fewest fraction digits that spell `value`, or None if no finite number of digits does."""
    if value.denominator == 1:
        return 0
    twos, rest = _strip(value.denominator, 2)
    fives, rest = _strip(rest, 5)
    return max(twos, fives) if rest == 1 else None


def _strip(number: int, prime: int) -> tuple[int, int]:
    """How often `prime` divides a positive `number`, and what is left of it."""
    count = 0
    while number % prime == 0:
        number //= prime
        count += 1
    return count, number


@dataclass(frozen=True)
class Grid:
    """All multiples of `step`, which is `numerator / 10**places` in the fewest places."""

    step: Fraction

    @cached_property
    def places(self) -> int:
        places = decimal_places(self.step)
        assert places is not None
        return places

    @cached_property
    def numerator(self) -> int:
        return int(self.step * 10**self.places)

    @cached_property
    def _factors(self) -> tuple[int, int, int]:
        """Exponents of 2 and 5 in the numerator, and the part of it that is coprime to 10."""
        twos, rest = _strip(self.numerator, 2)
        fives, rest = _strip(rest, 5)
        return twos, fives, rest

    @property
    def coprime_part(self) -> int:
        return self._factors[2]

    def contains(self, value: Fraction) -> bool:
        check()
        return (value / self.step).denominator == 1

    @cached_property
    def _horizon(self) -> int:
        """The number of further digits after which every residue can still be completed to a multiple."""
        return len(str(self.numerator - 1)) if self.numerator > 1 else 0

    def residue(self, digits: int) -> tuple[int, ...]:
        """What must be remembered of the digits read so far, as an integer, to know which further digits give a multiple.

        Two digit strings with equal residues are completed to multiples by exactly the same further digits (at every
        position of the decimal point). `j` further digits can only add less than `10**j`, so the distance to the next
        multiple is remembered for a small `j` only where it is that small. That keeps the multiples of 1000000 at seven
        residues where the plain remainder would have a million.
        """
        modulus = self.numerator
        if self.coprime_part == modulus:
            return (digits % modulus,)
        known = [digits * 10**self._horizon % modulus]
        for count in range(self._horizon):
            missing = -digits * 10**count % modulus
            if missing < 10**count:
                known += (count, missing)
        return tuple(known)

    def first_exponent(self, digits: int, places: int) -> int | None:
        """The smallest `e` for which `digits * 10**(e - places)` is a multiple; None if there is none. `digits` > 0."""
        twos, fives, rest = self._factors
        if digits % rest:
            return None
        own_twos, without = _strip(digits, 2)
        own_fives, _ = _strip(without, 5)
        return places - self.places + max(twos - own_twos, fives - own_fives)


def _least_common_multiple(one: Fraction, other: Fraction) -> Fraction:
    return Fraction(math.lcm(one.numerator, other.numerator), math.gcd(one.denominator, other.denominator))


def _includes_multiple(low: Fraction, high: Fraction, closed: bool, step: Fraction, excluded: list[int]) -> bool:
    """Whether (low, high), or [low, high) if `closed`, has an `n * step` where nothing in `excluded` (all > 1) divides `n`.

    Runs of forbidden `n` are short (Jacobsthal's function of the product of `excluded`), so the scan is.
    """
    n = math.ceil(low / step) if closed else math.floor(low / step) + 1
    while n * step < high:
        if all(n % divisor for divisor in excluded):
            return True
        n += 1
    return False


@dataclass(frozen=True)
class GridBasis:
    """Grids in ascending order of their steps, and the tables over them."""

    grids: tuple[Grid, ...]

    @cached_property
    def _multiples(self) -> tuple[Fraction | None, ...]:
        """Per pattern the step of the grid on which all its grids meet; None for the pattern without grids."""
        found: list[Fraction | None] = [None]
        for pattern in range(1, 1 << len(self.grids)):
            low = pattern & -pattern
            step, rest = self.grids[low.bit_length() - 1].step, found[pattern ^ low]
            found.append(step if rest is None else _least_common_multiple(step, rest))
        return tuple(found)

    @cached_property
    def full(self) -> int:
        """The table of all patterns that some value has."""
        table = 0
        for pattern in range(1 << len(self.grids)):
            if self._excluded(pattern, self._multiples[pattern]) is not None:
                table |= 1 << pattern
        return table

    def _excluded(self, pattern: int, step: Fraction | None) -> list[int] | None:
        """Which multiples of `step` lie on the grids that `pattern` forbids, as divisors of the factor; None: all do."""
        if step is None:
            return []
        excluded = []
        for index, grid in enumerate(self.grids):
            if not pattern >> index & 1:
                factor = _least_common_multiple(step, grid.step) / step
                if factor == 1:
                    return None
                excluded.append(int(factor))
        return excluded

    def patterns(self, table: int) -> list[int]:
        return [pattern for pattern in range(1 << len(self.grids)) if table >> pattern & 1]

    def pattern_of(self, value: Fraction) -> int:
        return sum(1 << index for index, grid in enumerate(self.grids) if grid.contains(value))

    def holds(self, table: int, value: Fraction) -> bool:
        """Whether the pattern of `value` is in `table`."""
        if table in (0, self.full):
            return table != 0
        return bool(table >> self.pattern_of(value) & 1)

    def support(self, table: int) -> tuple[int, ...]:
        """Indexes of grids that decide membership in `table`; no smaller part of them does."""
        if table in (0, self.full):
            return ()
        return _support(self, table)

    def lift(self, table: int, wider: GridBasis) -> int:
        """The same condition as a table of a basis that contains this one's grids."""
        if self is wider:
            return table
        return _lift(self, table, wider)

    def occurs(self, table: int, low: Fraction, high: Fraction, *, closed: bool = False, grain: Fraction | None = None) -> bool:
        """Whether some value of (low, high), or [low, high) if `closed`, has a pattern of `table`.

        `grain` restricts the values to its multiples.
        """
        if grain is None and table & 1:
            return low < high
        return any(self._occurs_pattern(pattern, low, high, closed, grain) for pattern in self.patterns(table))

    def _occurs_pattern(self, pattern: int, low: Fraction, high: Fraction, closed: bool, grain: Fraction | None) -> bool:
        step = self._step(pattern, grain)
        excluded = self._excluded(pattern, step)
        return excluded is not None and step is not None and _includes_multiple(low, high, closed, step, excluded)

    def _step(self, pattern: int, grain: Fraction | None) -> Fraction | None:
        step = self._multiples[pattern]
        if step is None or grain is None:
            return step or grain
        return _least_common_multiple(step, grain)

    def occurs_at_scale(self, table: int, digits: int, places: int, exponents: range, max_places: int | None) -> bool:
        """Whether for some exponent `e` a value of [digits, digits + 1) * 10**(e - places) has a pattern of `table`.

        With `max_places`, only values of the form n * 10**(e - max_places) count. `digits` > 0.
        """
        return any(self._pattern_at_scale(pattern, digits, places, exponents, max_places) for pattern in self.patterns(table))

    def _pattern_at_scale(self, pattern: int, digits: int, places: int, exponents: range, max_places: int | None) -> bool:
        step = self._multiples[pattern]
        if step is None and max_places is None:
            return bool(exponents)
        first = exponents.start
        if step is not None:
            first = max(first, decade(step) - decade(Fraction(digits + 1)) + places)
        for exponent in range(first, exponents.stop):
            grain = None if max_places is None else power_of_ten(exponent - max_places)
            if self._excluded(pattern, self._step(pattern, grain)) is None:
                return False  # A coarser grain has only fewer multiples, so no larger exponent can do better.
            unit = power_of_ten(exponent - places)
            if self._occurs_pattern(pattern, digits * unit, (digits + 1) * unit, True, grain):
                return True
        return False


@lru_cache(maxsize=4096)
def basis(grids: frozenset[Grid]) -> GridBasis:
    """The one basis over these grids. Raises LimitError beyond `MAX_GRIDS`."""
    if len(grids) > MAX_GRIDS:
        raise LimitError(f"a number is constrained by more than {MAX_GRIDS} different divisors")
    return GridBasis(tuple(sorted(grids, key=lambda grid: grid.step)))


@lru_cache(maxsize=4096)
def _support(owner: GridBasis, table: int) -> tuple[int, ...]:
    # One grid at a time: where two grids meet a third in the same values, either can be left out, but not both.
    kept = list(range(len(owner.grids)))
    for index in range(len(owner.grids)):
        fewer = [other for other in kept if other != index]
        if _determined(owner, table, sum(1 << other for other in fewer)):
            kept = fewer
    return tuple(kept)


def _determined(owner: GridBasis, table: int, grids: int) -> bool:
    """Whether the bits `grids` of a pattern are enough to know if it is in `table`."""
    seen: dict[int, bool] = {}
    for pattern in owner.patterns(owner.full):
        holds = bool(table >> pattern & 1)
        if seen.setdefault(pattern & grids, holds) != holds:
            return False
    return True


@lru_cache(maxsize=4096)
def _lift(owner: GridBasis, table: int, wider: GridBasis) -> int:
    places = [wider.grids.index(grid) for grid in owner.grids]
    lifted = 0
    for pattern in wider.patterns(wider.full):
        own = sum(1 << index for index, place in enumerate(places) if pattern >> place & 1)
        if table >> own & 1:
            lifted |= 1 << pattern
    return lifted
