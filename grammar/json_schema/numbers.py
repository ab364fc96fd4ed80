"""Sets of JSON numbers: `minimum`, `multipleOf`, `enum` and what `allOf`, `anyOf`, `not` make of them.

A `NumberSet` is a set of *values*. All arithmetic is exact; a float stands for the decimal that `repr` writes. Its language
are spellings of RFC 8259, section 6, whose value is in the set, and nothing else:

  - *plain* spellings `-?(0|[1-9][0-9]*)([.][0-9]+)?` of any length, all of them: `1`, `1.0`, `1.50`, `-0`;
  - *scientific* spellings `-?[1-9]([.][0-9]+)?[eE][+-]?[0-9]+` with one digit in front of the point and an exponent from
    -400 to 308 (above, a binary64 reader sees infinity); leading zeros of the exponent do not count. Where the set depends
    on divisibility, at most 20 digits stand behind the point of a scientific spelling.

That includes everything that `json.dumps` writes. The set of all numbers is the exception: its language is the full syntax
of RFC 8259, exponents without bounds included.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from ..cancellation import check
from ..errors import GrammarError, LimitError
from ..languages import CharAutomaton
from ..limits import Limits
from .numbers_automaton import AnyNumber, NumberAutomaton, Start
from .numbers_divisors import decimal_places
from .numbers_line import Line

Number = int | float | Decimal | Fraction

MAX_DIGITS = 1000


def exact(value: Number) -> Fraction:
    """The value of a number as a JSON parser returns it.

    Raises GrammarError for infinities, NaN and fractions without a finite decimal spelling, LimitError for a number with
    more than `MAX_DIGITS` digits on one side of the point.
    """
    check()
    if type(value) is int and value.bit_length() <= MAX_DIGITS:
        return Fraction(value)
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        _check_decimal(value)
    fraction = Fraction(value)
    if max(fraction.numerator.bit_length(), fraction.denominator.bit_length()) > MAX_DIGITS * 4:
        raise LimitError(f"a number has more than {MAX_DIGITS} digits")
    if decimal_places(fraction) is None:
        raise GrammarError(f"{fraction} has no finite decimal spelling")
    return fraction


def _check_decimal(value: Decimal) -> None:
    """Refuse what has no exact value, and what would take long to convert."""
    if not value.is_finite():
        raise GrammarError(f"{value} is not a number of JSON")
    if value and abs(value.adjusted()) > MAX_DIGITS:
        raise LimitError(f"a number has more than {MAX_DIGITS} digits")


def _decimal(value: Fraction) -> Decimal:
    """The value as a decimal. Built from its digits, because decimal arithmetic rounds to the digits of the context."""
    check()
    places = decimal_places(value) or 0
    digits = Decimal(int(value * 10**places)).as_tuple()
    return Decimal((digits.sign, digits.digits, -places))


@dataclass(frozen=True)
class NumberSet:
    """An immutable set of number values, closed under `&`, `|` and `~` (relative to all numbers)."""

    _line: Line

    @classmethod
    def all(cls) -> NumberSet:
        return cls(Line.constant(True))

    @classmethod
    def nothing(cls) -> NumberSet:
        return cls(Line.constant(False))

    @classmethod
    def integers(cls) -> NumberSet:
        """All numbers with an integral value, `1.0` included."""
        return _INTEGERS

    @classmethod
    def multiple_of(cls, divisor: Number) -> NumberSet:
        """All integral multiples of `divisor`. Raises GrammarError unless `divisor` is positive."""
        step = exact(divisor)
        if step <= 0:
            raise GrammarError(f"multipleOf is {divisor}, but has to be greater than 0")
        return cls(Line.multiples(step))

    @classmethod
    def range(
        cls,
        minimum: Number | None = None,
        maximum: Number | None = None,
        exclusive_minimum: bool = False,
        exclusive_maximum: bool = False,
    ) -> NumberSet:
        """All numbers between two bounds; None is no bound. Empty if the bounds cross."""
        line = Line.constant(True)
        if minimum is not None:
            line &= Line.at_least(exact(minimum), exclusive=exclusive_minimum)
        if maximum is not None:
            line &= Line.at_most(exact(maximum), exclusive=exclusive_maximum)
        return cls(line)

    @classmethod
    def literal(cls, value: Number) -> NumberSet:
        """All spellings of one value."""
        return cls.literals((value,))

    @classmethod
    def literals(cls, values: Iterable[Number]) -> NumberSet:
        return cls(Line.values(map(exact, values)))

    def __and__(self, other: NumberSet) -> NumberSet:
        return NumberSet(self._line & other._line)

    def __or__(self, other: NumberSet) -> NumberSet:
        return NumberSet(self._line | other._line)

    def __invert__(self) -> NumberSet:
        return NumberSet(~self._line)

    def contains(self, value: Number) -> bool:
        """Whether a value is in the set."""
        return self._line.contains(exact(value))

    @property
    def is_all(self) -> bool:
        """Whether every number is in the set."""
        return self._line.full

    def is_empty(self, limits: Limits) -> bool:
        """Whether no number is in the set. The cost is linear in the number of bounds; `limits` are not needed."""
        return self._line.empty

    def automaton(self, limits: Limits) -> CharAutomaton:
        """The spellings of the set (see the module docstring). Equal sets share one automaton."""
        return _automaton(self, limits)

    def values(self, cap: int) -> tuple[Decimal, ...] | None:
        """All values in ascending order, None if there are more than `cap` (or infinitely many)."""
        found = self._line.listed(cap)
        return None if found is None else tuple(map(_decimal, found))

    def matches(self, text: str) -> bool:
        """Whether `text` is a spelling of the language."""
        automaton = self.automaton(Limits())
        state = automaton.start
        for char in text:
            code = ord(char)
            state = next((target for low, high, target in automaton.edges(state) if low <= code <= high), None)
            if state is None:
                return False
        return automaton.accepting(state)


_INTEGERS = NumberSet.multiple_of(1)


@lru_cache(maxsize=1024)
def _automaton(numbers: NumberSet, limits: Limits) -> NumberAutomaton:
    start = AnyNumber.START if numbers.is_all else Start(numbers._line)
    return NumberAutomaton(start, limits)
