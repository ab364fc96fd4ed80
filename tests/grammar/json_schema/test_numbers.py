from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formcast.grammar.errors import GrammarError, LimitError
from formcast.grammar.json_schema.numbers import NumberSet, exact
from formcast.grammar.languages import CharAutomaton
from formcast.grammar.limits import Limits

LIMITS = Limits()
PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
SCIENTIFIC = re.compile(r"-?[1-9](\.[0-9]{1,20})?[eE]([+-]?[0-9]+)")


@dataclass(frozen=True)
class Model:
    """A number set beside the predicate that it should have."""

    numbers: NumberSet
    holds: Callable[[Fraction], bool]


def is_spelling(text: str) -> bool:
    scientific = SCIENTIFIC.fullmatch(text)
    return bool(PLAIN.fullmatch(text)) or (scientific is not None and -400 <= int(scientific[2]) <= 308)


def range_model(low: Decimal | None, high: Decimal | None, open_low: bool, open_high: bool) -> Model:
    def holds(value: Fraction) -> bool:
        above = low is None or value > Fraction(low) or (value == Fraction(low) and not open_low)
        below = high is None or value < Fraction(high) or (value == Fraction(high) and not open_high)
        return above and below

    return Model(NumberSet.range(low, high, open_low, open_high), holds)


def multiple_model(divisor: Decimal) -> Model:
    return Model(NumberSet.multiple_of(divisor), lambda value: (value / Fraction(divisor)).denominator == 1)


def literals_model(values: list[Decimal]) -> Model:
    return Model(NumberSet.literals(values), lambda value: value in {Fraction(each) for each in values})


def both(one: Model, other: Model) -> Model:
    return Model(one.numbers & other.numbers, lambda value: one.holds(value) and other.holds(value))


def either(one: Model, other: Model) -> Model:
    return Model(one.numbers | other.numbers, lambda value: one.holds(value) or other.holds(value))


def inverse(one: Model) -> Model:
    return Model(~one.numbers, lambda value: not one.holds(value))


DECIMALS = st.one_of(
    st.integers(-130, 130).map(Decimal),
    st.builds(lambda m, e: Decimal(m).scaleb(e), st.integers(-(10**5), 10**5), st.integers(-6, 3)),
    st.sampled_from([Decimal(text) for text in ("1e22", "-1e22", "1e-7", "9007199254740993", "1e300", "18446744073709551616")]),
)
DIVISORS = st.sampled_from(["0.01", "0.1", "2.5", "1e-7", "1", "2", "3", "4", "6", "7", "12", "0.3", "0.125", "250", "1e6"]).map(Decimal)
MODELS = st.recursive(
    st.one_of(
        st.builds(range_model, st.none() | DECIMALS, st.none() | DECIMALS, st.booleans(), st.booleans()),
        st.builds(multiple_model, DIVISORS),
        st.builds(literals_model, st.lists(DECIMALS, max_size=3)),
    ),
    lambda inner: st.one_of(st.builds(both, inner, inner), st.builds(either, inner, inner), st.builds(inverse, inner)),
    max_leaves=5,
)
FLOAT_SPELLINGS = st.floats(allow_nan=False, allow_infinity=False).map(json.dumps)
SPELLINGS = st.one_of(
    st.from_regex(r"\A-?(0|[1-9][0-9]{0,6})(\.[0-9]{1,9})?\Z"),
    st.from_regex(r"\A-?[1-9](\.[0-9]{1,6})?[eE][+-]?0?[0-9]{1,2}\Z"),
    st.builds("{:f}{}".format, DECIMALS, st.sampled_from(["", ".", ".0", ".5", "0", "00", "1"])),
    st.integers().map(json.dumps),
    FLOAT_SPELLINGS,
    st.text("0123456789+-.eE", max_size=8),
)


def characters(automaton: CharAutomaton, state: int) -> str:
    return "".join(chr(code) for low, high, _ in automaton.edges(state) for code in range(low, high + 1))


def walk(numbers: NumberSet, rng: random.Random, max_length: int = 60) -> str | None:
    """A random word of the automaton; None if it did not end in time."""
    automaton = numbers.automaton(LIMITS)
    state, text = automaton.start, ""
    for _ in range(max_length):
        edges = automaton.edges(state)
        assert edges or automaton.accepting(state), f"dead end after {text!r}"
        if automaton.accepting(state) and (not edges or rng.random() < 0.2):
            return text
        low, high, state = rng.choice(edges)
        text += chr(rng.randint(low, high))
    return None


@given(model=MODELS, texts=st.lists(SPELLINGS, min_size=1, max_size=12))
def test_verdict_is_that_of_exact_arithmetic(model: Model, texts: list[str]) -> None:
    if model.numbers.is_all:
        return
    for text in texts:
        assert model.numbers.matches(text) == (is_spelling(text) and model.holds(Fraction(text))), text


@given(model=MODELS, seed=st.integers(0, 2**32))
def test_walks_never_die_and_end_in_the_set(model: Model, seed: int) -> None:
    if model.numbers.is_empty(LIMITS):
        assert model.numbers.automaton(LIMITS).edges(model.numbers.automaton(LIMITS).start) == ()
        return
    rng = random.Random(seed)
    for _ in range(8):
        text = walk(model.numbers, rng)
        if text is not None and len(text) < 60:
            assert re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", text)
            if abs(int((text.lower().partition("e")[2]) or 0)) < 1000:
                assert model.holds(Fraction(text)), text


@given(model=MODELS, value=st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_what_json_dumps_writes_is_accepted_if_it_is_in_the_set(model: Model, value: float) -> None:
    assert model.numbers.matches(json.dumps(value)) == model.holds(exact(value)) == model.numbers.contains(value)


@given(one=MODELS, other=MODELS)
def test_algebra_of_values(one: Model, other: Model) -> None:
    a, b = one.numbers, other.numbers
    assert (~(a & b) & ~(~a | ~b)).is_empty(LIMITS)
    assert ((a | b) & ~a & ~b).is_empty(LIMITS)
    assert (a & ~a).is_empty(LIMITS)
    assert (a | ~a).is_all
    assert a == ~~a


@pytest.mark.parametrize(
    ("numbers", "yes", "no"),
    [
        (NumberSet.all(), "0 -0 1.50 12e3 0e0 1E+400 -0.0e-99999 1e999999", "01 1. .5 +1 - 1e 1e+ 0x1 NaN"),
        (NumberSet.integers(), "0 -0 -0.0 1.0 12.000 1e+22 1.5e+300 1.5E1 -2e0 1e-0", "1.5 1e-1 1.25e1 01 12e3 -"),
        (NumberSet.range(minimum=0), "0 -0 -0.0 0.5 1e-07 1e+22 7", "-1 -0.1 -1e-07"),
        (NumberSet.range(0, 100), "0 100 100.0 99.99 1e2 1.0e+02 1e-300", "100.01 101 1e3 1.001e2 -1"),
        (NumberSet.range(0, 100, True, True), "0.01 99.9 1e1", "0 -0 0.0 100 100.0 1e2"),
        (NumberSet.range(minimum=2**70), "1180591620717411303424 1.2e21 1180591620717411303424.5", "1180591620717411303423 1.18e21"),
        (NumberSet.range(maximum=-1.5), "-1.5 -2 -1e300", "-1.4 0 1.5 -1.49e0"),
        (NumberSet.multiple_of(0.01), "0.01 1.5 4.35 19.99 1e-02 1e+22 0 3.000", "0.001 4.355 1e-03 1.234e0"),
        (NumberSet.multiple_of(2.5), "0 2.5 5 -7.5 1e1 2.5e0 1.25e1", "1 2 2.4 3 1e0"),
        (NumberSet.multiple_of(1e-7), "1e-07 0.0000001 3.0000001 1e-6", "1e-08 0.00000001 1.5e-07"),
        (NumberSet.multiple_of(7), "7 14.0 700 7e5 -21 1.4e1", "8 1 7.5 7.7 1e9"),
        (NumberSet.multiple_of(1000000), "0 1000000 1e6 1e+06 3000000.0 2.5e7", "1000 1e5 1000001 1.5e5"),
        (NumberSet.literals([1, 2.5, 1e22]), "1 1.0 1e0 2.5 2.50 2.5e+00 1e+22 10000000000000000000000", "2 12 1.5 1e21 -1"),
        (~NumberSet.integers(), "0.5 1.25e1 1e-07 -3.1", "1 2.0 0 1e5 1.5e1"),
        (NumberSet.nothing(), "", "0 1 -1 1e5"),
        (NumberSet.literal(0), "0 -0 0.0 -0.00", "1 0.01 0e0"),
    ],
)
def test_tables(numbers: NumberSet, yes: str, no: str) -> None:
    for text in yes.split():
        assert numbers.matches(text), text
    for text in no.split():
        assert not numbers.matches(text), text


@pytest.mark.parametrize(
    ("numbers", "empty"),
    [
        (NumberSet.range(1, 0), True),
        (NumberSet.range(1, 1), False),
        (NumberSet.range(1, 1, exclusive_maximum=True), True),
        (NumberSet.integers() & NumberSet.range(0, 1, True, True), True),
        (NumberSet.integers() & NumberSet.range(0.5, 1.5), False),
        (NumberSet.multiple_of(3) & NumberSet.multiple_of(5) & NumberSet.range(1, 14), True),
        (NumberSet.multiple_of(3) & NumberSet.multiple_of(5) & NumberSet.range(1, 15), False),
        (NumberSet.multiple_of(6) & ~NumberSet.multiple_of(3), True),
        (NumberSet.multiple_of(4) & NumberSet.multiple_of(3) & ~NumberSet.multiple_of(12), True),
        (NumberSet.multiple_of(2) & ~NumberSet.multiple_of(4) & NumberSet.range(3, 5), True),
        (NumberSet.literals([]), True),
        (NumberSet.literal(0.1) & ~NumberSet.multiple_of(0.1), True),
    ],
)
def test_emptiness(numbers: NumberSet, empty: bool) -> None:
    assert numbers.is_empty(LIMITS) is empty
    assert bool(numbers.automaton(LIMITS).edges(numbers.automaton(LIMITS).start)) is not empty


def test_prefixes_that_cannot_be_completed_have_no_edge() -> None:
    automaton = (NumberSet.integers() & NumberSet.range(10, 12)).automaton(LIMITS)
    assert characters(automaton, automaton.start) == "1"
    after_one = automaton.edges(automaton.start)[0][2]
    assert characters(automaton, after_one) == ".012Ee"


@pytest.mark.parametrize(
    ("numbers", "most"),
    [(NumberSet.range(minimum=0), 10), (NumberSet.integers(), 10), (NumberSet.multiple_of(1000000), 20), (NumberSet.range(0, 100), 15)],
)
def test_plain_digits_reach_few_states(numbers: NumberSet, most: int) -> None:
    automaton = numbers.automaton(LIMITS)
    rng = random.Random(7)
    states = set()
    for _ in range(300):
        state = automaton.start
        for char in str(rng.randrange(10 ** rng.randrange(1, 9))):
            state = next((target for low, high, target in automaton.edges(state) if low <= ord(char) <= high), None)
            if state is None:
                break
            states.add(state)
    assert len(states) <= most


def test_number_of_completions_is_known_behind_an_exponent_digit() -> None:
    automaton = NumberSet.range(minimum=0).automaton(LIMITS)
    state = automaton.start
    counts = []
    for char in "1e3":
        state = next(target for low, high, target in automaton.edges(state) if low <= ord(char) <= high)
        counts.append(automaton.tail_count(state, 1000))
    assert counts == [None, None, 1 + 10 + 9]
    assert automaton.tail_count(state, 19) is None
    assert NumberSet.nothing().automaton(LIMITS).tail_count(0, 5) == 0
    assert not automaton.universal(automaton.start)


def test_equal_sets_share_one_automaton() -> None:
    one = NumberSet.range(0, 10) & NumberSet.integers()
    other = NumberSet.integers() & NumberSet.range(maximum=10) & NumberSet.range(minimum=0)
    assert one == other and hash(one) == hash(other)
    assert one.automaton(LIMITS) is other.automaton(LIMITS)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, Decimal("NaN"), Fraction(1, 3)])
def test_values_that_json_cannot_spell_are_refused(value: float) -> None:
    with pytest.raises(GrammarError):
        exact(value)


@pytest.mark.parametrize("value", [10**2000, Decimal("1e999999999"), Decimal("1e-999999999")])
def test_oversized_values_are_refused(value: Decimal) -> None:
    with pytest.raises(LimitError):
        exact(value)


@pytest.mark.parametrize("divisor", [0, -1, -0.5])
def test_divisors_have_to_be_positive(divisor: float) -> None:
    with pytest.raises(GrammarError, match="greater than 0"):
        NumberSet.multiple_of(divisor)


def test_the_budget_of_states_is_kept() -> None:
    automaton = NumberSet.multiple_of(999983).automaton(Limits(max_states=50))
    with pytest.raises(LimitError):
        state = automaton.start
        for _ in range(40):
            state = automaton.edges(state)[-2][2] if automaton.edges(state)[-1][0] > ord("9") else automaton.edges(state)[-1][2]


def test_floats_stand_for_the_decimal_that_repr_writes() -> None:
    assert exact(0.1) == Fraction(1, 10)
    assert exact(5e-324) == Fraction(5, 10**324)
    assert exact(-0.0) == 0


@pytest.mark.parametrize(
    ("numbers", "values"),
    [
        (NumberSet.literals([3, 2.50, -1e-7]), ["-0.0000001", "2.5", "3"]),
        (NumberSet.literal(2**200 + 1), [str(2**200 + 1)]),
        (NumberSet.integers() & NumberSet.range(-1, 2), ["-1", "0", "1", "2"]),
        (NumberSet.multiple_of(0.25) & ~NumberSet.integers() & NumberSet.range(0, 1), ["0.25", "0.5", "0.75"]),
        (NumberSet.nothing(), []),
    ],
)
def test_values_are_listed_exactly(numbers: NumberSet, values: list[str]) -> None:
    assert numbers.values(10) == tuple(map(Decimal, values))


@pytest.mark.parametrize("numbers", [NumberSet.all(), NumberSet.range(0, 1), NumberSet.integers(), NumberSet.literals(range(11))])
def test_values_are_not_listed_beyond_the_cap(numbers: NumberSet) -> None:
    assert numbers.values(10) is None
