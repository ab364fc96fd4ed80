"""The exponent of a number spelling: automaton positions behind the `e`.

A set of exponents is `Ranges`: ascending, disjoint, inclusive. Leading zeros are allowed (`1e-07`), so a set of one-digit
exponents already has infinitely many spellings.
"""

from __future__ import annotations

from dataclasses import dataclass

Ranges = tuple[tuple[int, int], ...]

MIN_EXPONENT = -400
MAX_EXPONENT = 308
_MAX_DIGITS = 3


def clipped(ranges: Ranges, low: int, high: int) -> Ranges:
    return tuple((max(first, low), min(last, high)) for first, last in ranges if first <= high and last >= low)


def _shifted(ranges: Ranges, offset: int) -> Ranges:
    return tuple((first + offset, last + offset) for first, last in ranges)


def _negated(ranges: Ranges) -> Ranges:
    return tuple((-last, -first) for first, last in reversed(ranges))


@dataclass(frozen=True)
class AfterExponentMark:
    """Behind `e`: a sign or a digit."""

    exponents: Ranges
    accepting = False

    @property
    def key(self) -> AfterExponentMark:
        return self

    @property
    def alive(self) -> bool:
        return bool(self.exponents)

    def successors(self) -> list[tuple[str, AfterExponentSign | ExponentZeros | ExponentTail]]:
        positive = AfterExponentSign(clipped(self.exponents, 0, MAX_EXPONENT))
        negative = AfterExponentSign(_negated(clipped(self.exponents, MIN_EXPONENT, 0)))
        return [("+", positive), ("-", negative), *positive.successors()]


@dataclass(frozen=True)
class AfterExponentSign:
    """Behind the sign: a digit. `magnitudes` are the admissible absolute values."""

    magnitudes: Ranges
    accepting = False

    @property
    def key(self) -> AfterExponentSign:
        return self

    @property
    def alive(self) -> bool:
        return bool(self.magnitudes)

    def successors(self) -> list[tuple[str, ExponentZeros | ExponentTail]]:
        return [("0", ExponentZeros(self.magnitudes)), *_first_digits(self.magnitudes)]


@dataclass(frozen=True)
class ExponentZeros:
    """Behind leading zeros: the value read so far is zero."""

    magnitudes: Ranges

    @property
    def key(self) -> ExponentZeros:
        return self

    @property
    def alive(self) -> bool:
        return bool(self.magnitudes)

    @property
    def accepting(self) -> bool:
        return bool(clipped(self.magnitudes, 0, 0))

    def successors(self) -> list[tuple[str, ExponentZeros | ExponentTail]]:
        return [("0", self), *_first_digits(self.magnitudes)]


def _first_digits(magnitudes: Ranges) -> list[tuple[str, ExponentTail]]:
    levels = tuple(clipped(magnitudes, 10**count // 10, 10**count - 1) for count in range(1, _MAX_DIGITS + 1))
    return [(str(digit), _tail(levels, digit)) for digit in range(1, 10)]


@dataclass(frozen=True)
class ExponentTail:
    """Behind a digit other than zero.

    `levels[n]` are the admissible values of `n` further digits; the last one is not empty.
    """

    levels: tuple[Ranges, ...]

    @property
    def key(self) -> ExponentTail:
        return self

    @property
    def alive(self) -> bool:
        return bool(self.levels)

    @property
    def accepting(self) -> bool:
        return bool(self.levels and self.levels[0])

    @property
    def num_completions(self) -> int:
        return sum(last - first + 1 for level in self.levels for first, last in level)

    def successors(self) -> list[tuple[str, ExponentTail]]:
        return [(str(digit), _tail(self.levels[1:], digit)) for digit in range(10)]


def _tail(levels: tuple[Ranges, ...], digit: int) -> ExponentTail:
    """What is left of the values of 1, 2, ... digits once their first digit is known."""
    rest = [_shifted(clipped(level, digit * 10**n, (digit + 1) * 10**n - 1), -digit * 10**n) for n, level in enumerate(levels)]
    while rest and not rest[-1]:
        rest.pop()
    return ExponentTail(tuple(rest))
