"""The lazy automaton: the protocol's promises, laziness, and the counting methods against brute force."""

from __future__ import annotations

import random

import pytest

from formcast.grammar.errors import LimitError
from formcast.grammar.limits import Limits
from formcast.grammar.regex import Language, RegexAutomaton


def _strings(automaton: RegexAutomaton, most: int) -> list[str]:
    """Every accepted string of up to `most` characters; only for automata with small sets."""
    result = []
    level = [("", automaton.start)]
    for _ in range(most + 1):
        result.extend(text for text, state in level if automaton.accepting(state))
        level = [
            (text + chr(code_point), target)
            for text, state in level
            for low, high, target in automaton.edges(state)
            for code_point in range(low, high + 1)
        ]
    return result


FINITE = ["", "a", "ab|c", "[ab]{0,3}", "(a|ab)(c|bcd)", "a?b?c?", "(a{2}|b){1,2}", "(?=a)[ab]b?", "(?!ab)[ab]{2}", r"a\b|ab", "(aa|a){2}"]


@pytest.mark.parametrize("pattern", FINITE)
def test_counts_and_lengths_of_finite_languages(pattern: str):
    automaton = Language.pattern(pattern).automaton()
    strings = _strings(automaton, 8)
    assert len(set(strings)) == len(strings)
    assert automaton.tail_count(automaton.start, 100) == len(strings)
    assert automaton.tail_count(automaton.start, len(strings)) == len(strings)
    assert automaton.tail_count(automaton.start, len(strings) - 1) is None
    assert automaton.min_length(automaton.start) == min(map(len, strings))
    assert automaton.tail_lengths(automaton.start, 20) == sum({1 << len(text) for text in strings})


@pytest.mark.parametrize(
    ("pattern", "lengths"),
    [
        ("(abc)*", {0, 3, 6, 9, 12}),
        ("a(bb)*", {1, 3, 5, 7, 9, 11}),
        ("(aaa|aaaaa)+", {3, 5, 6, 8, 9, 10, 11, 12}),
        ("(a{2,3}){2}", {4, 5, 6}),
        ("(?:(?=a)aaa|(?=b)bb)*", {0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
        ("(?!b)(?:aa)*", {0, 2, 4, 6, 8, 10, 12}),
        ("(?!$)(?:aaa)*", {3, 6, 9, 12}),
    ],
)
def test_lengths_of_infinite_languages(pattern: str, lengths: set[int]):
    automaton = Language.pattern(pattern).automaton()
    assert automaton.tail_lengths(automaton.start, 12) == sum(1 << size for size in lengths)


@pytest.mark.parametrize("pattern", ["a*", "(?!b)a*", ".", "[a-z]{3}", "(?:(?!x).)*", "(a|b){20}"])
def test_too_many_strings_are_not_counted(pattern: str):
    automaton = Language.pattern(pattern).automaton()
    assert automaton.tail_count(automaton.start, 1000) is None


def test_a_language_without_strings_has_a_dead_start():
    automaton = (Language.pattern("a+") & Language.pattern("b+")).automaton()
    assert automaton.edges(automaton.start) == ()
    assert not automaton.accepting(automaton.start)
    assert automaton.tail_count(automaton.start, 5) == 0
    assert automaton.tail_lengths(automaton.start, 5) == 0
    assert automaton.min_length(automaton.start) is None


def test_universal_states_are_known():
    automaton = Language.pattern("foo", "ecma", "search").automaton()
    state = automaton.start
    for char in "xfoo":
        assert not automaton.universal(state)
        step = automaton.step(state, ord(char))
        assert step is not None
        state = step
    assert automaton.universal(state)
    assert automaton.edges(state) == ((0, 0xD7FF, state), (0xE000, 0x10FFFF, state))


@pytest.mark.parametrize(
    ("pattern", "most_states"),
    [
        ("(.{0,3000}x){0,50}", 200),
        (".*a.{30}", 200),
        ("(a|aa)*b{500}", 200),
        ("[a-z]{1,65535}", 200),
        ("(a{0,1000}b{0,1000}){0,1000}", 400),
        ("(?=.*1)(?!.*--)[a-z0-9-]{5,2000}", 400),
    ],
)
def test_counters_are_not_unrolled(pattern: str, most_states: int):
    automaton = Language.pattern(pattern).automaton(Limits(max_states=most_states, max_steps=50_000))
    state = automaton.start
    for char in "axab" * 20:
        step = automaton.step(state, ord(char))
        if step is None:
            break
        state = step
    assert automaton.num_states <= most_states


def test_shared_counters_merge():
    # However the x are read, the widest counters win: the number of alternatives stays small.
    automaton = Language.pattern("(.{0,3000}x){0,50}").automaton(Limits(max_steps=40_000))
    state = automaton.start
    for _ in range(300):
        step = automaton.step(state, ord("x"))
        assert step is not None
        state = step


def test_classes_are_the_edges_by_target():
    automaton = Language.pattern("[a-cx-z]1|b2").automaton()
    flat = sorted((low, high, target) for cell, target in automaton.classes(automaton.start) for low, high in cell.ranges)
    assert tuple(flat) == automaton.edges(automaton.start)


def test_many_literals_are_walked_lazily():
    words = [f"w{number:05d}" for number in range(20_000)]
    automaton = Language.literals(words).automaton()
    assert automaton.tail_count(automaton.start, 20_000) == 20_000
    state = automaton.start
    for char in "w00042":
        step = automaton.step(state, ord(char))
        assert step is not None
        state = step
    assert automaton.accepting(state)
    assert automaton.num_states < 100


def test_budgets():
    automaton = Language.pattern("[a-z]{1,100}").automaton(Limits(max_states=10))
    state = automaton.start
    with pytest.raises(LimitError):
        for _ in range(20):
            state = automaton.edges(state)[0][2]
    assert automaton.edges(automaton.start)
    with pytest.raises(LimitError):
        wide = Language.pattern("(?:(?=.*a.{9}).)*").automaton(Limits(max_steps=100))
        wide.edges(wide.edges(wide.start)[0][2])


# Needles that share their letters, in texts of one length: what fits into the rest is a question of shortest superstrings.
NEEDLES = ["ab1", "b12", "bc1", "c12", "ca1", "a12", "ac", "a2", "[aA][12].*[zZ]"]


def test_a_budget_bounds_what_lies_between_two_states_not_all_texts_together():
    limits = Limits(max_steps=400_000)
    language = Language.intersection([Language.pattern(f".*{needle}.*") for needle in NEEDLES]) & Language.pattern(r"\w{60}")
    automaton = language.automaton(limits)
    for seed in range(60):
        rng, state = random.Random(seed), automaton.start
        for _ in range(60):
            state = rng.choice(automaton.classes(state))[1]
        assert automaton.accepting(state)
    assert automaton.num_states > 8000


@pytest.mark.parametrize(
    "pattern",
    [
        "a{2,5}b?",
        "(?![^@]{6})[ab]+(\\.[ab]+)*",
        "(?!.{4}).*bb",
        "(?!.{3})[ab]{3,}|c",
        "(?=.{2,4}$)[ab]*",
        "(?!ab|.{5})(?![^b]{3})[ab]*",
        "([ab]{2}){3}|[ab]{3}",
    ],
)
def test_the_characters_of_a_run_can_come_as_often_as_it_says(pattern: str):
    automaton = Language.pattern(pattern, "python", "full", Limits()).automaton()
    seen, todo = {automaton.start}, [automaton.start]
    while todo:
        state = todo.pop()
        run = automaton.run(state)
        if run is not None:
            level = {state}
            for _ in range(8 if run.count is None else min(run.count, 8)):
                steps = [
                    automaton.step(one, ord(char)) for one in level for char in "ab." if any(lo <= ord(char) <= hi for lo, hi in run.ranges)
                ]
                assert None not in steps
                level = {step for step in steps if step is not None}
        for _, _, target in automaton.edges(state):
            if target not in seen:
                seen.add(target)
                todo.append(target)
