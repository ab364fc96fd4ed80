"""Runs of characters: what they say about an automaton is what stepping through it finds."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formcast.grammar.limits import Limits
from formcast.grammar.regex import Language
from formcast.grammar.regex.automaton import RegexAutomaton

EVEN = {
    "[a-z]{0,40}": True,
    "[a-z]+": True,
    "[a-z]{2,40}\\.": False,
    '([^"]|""){0,20}"': False,
    "(?![^@]{65})[a-z!]+(\\.[a-z!]+)*": True,
}
UNEVEN = ["[a-z]{3,40}", "[^\"]{0,9}\"|'x'", "[a-z]{0,9}[a-c]?", "[a-z]{0,5}x|[a-c]{0,9}y", "([a-z]|ab){0,9}", "[a-z]{0,9}(?<=ab)"]


def automaton_of(pattern: str) -> RegexAutomaton:
    found = Language.pattern(pattern, "python", "full", Limits()).automaton(Limits())
    assert isinstance(found, RegexAutomaton)
    return found


def assert_equal(automaton: RegexAutomaton, one: int, other: int) -> None:
    """Two states accept the same texts, as far as a few characters show."""
    todo, seen = [(one, other, 4)], set()
    while todo:
        pair = one, other, left = todo.pop()
        if one == other or pair in seen:
            continue
        seen.add(pair)
        assert automaton.accepting(one) == automaton.accepting(other)
        for char in {char for q in (one, other) for low, high, _ in automaton.edges(q) for char in (low, high)}:
            first, second = automaton.step(one, char), automaton.step(other, char)
            assert (first is None) == (second is None)
            if first is not None and second is not None and left:
                todo.append((first, second, left - 1))


def check_run(automaton: RegexAutomaton, state: int, rng: random.Random) -> None:
    """Steps through the run of a state."""
    run = automaton.run(state)
    if run is None or run.count is None or run.may_end is None:
        return
    assert run.others is not None
    for target in range(1, min(run.count, 12) + 1):
        state_here = state
        for _ in range(target):
            low, high = rng.choice(run.ranges)
            found = automaton.step(state_here, rng.choice((low, high)))
            assert found is not None
            state_here = found
        assert_equal(automaton, state_here, automaton.ahead(state, target))
        assert automaton.accepting(state_here) == run.may_end
        if target < run.count:
            for low, high, _ in automaton.edges(state_here):
                assert all(any(a <= char <= b for a, b in (*run.ranges, *run.others)) for char in (low, high))


@pytest.mark.parametrize("pattern", [*EVEN, *UNEVEN])
def test_the_run_at_the_start(pattern: str) -> None:
    automaton = automaton_of(pattern)
    run = automaton.run(automaton.start)
    if run is not None and run.count is not None:
        assert run.may_end == EVEN.get(pattern)
    check_run(automaton, automaton.start, random.Random(0))


_CHARACTERS = st.sampled_from(["[a-c]", "[^}]", "[^a]", ".", "a", "(?:[a-c]|-x)", '(?:""|[^"])', "(?:ab|[^a])", "é", "[a-é]"])
_COUNTS = st.sampled_from(["", "*", "+", "?", "{0,3}", "{2,9}", "{4}", "{1,70}", "{5,}"])
_PARTS = st.tuples(_CHARACTERS, _COUNTS).map("".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_PARTS, min_size=1, max_size=3).map("".join), min_size=1, max_size=2), st.sampled_from(["", "(?!.{6})", "(?!a{3})"]))
def test_runs_of_generated_patterns(branches: list[str], before: str) -> None:
    automaton = automaton_of(before + "(?:" + "|".join(branches) + ")")
    rng = random.Random(1)
    state = automaton.start
    for _ in range(5):
        check_run(automaton, state, rng)
        edges = automaton.edges(state)
        if not edges:
            return
        state = rng.choice(edges)[2]
