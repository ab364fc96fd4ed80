"""Hostile patterns end: with an automaton or with a typed error, never with a RecursionError."""

from __future__ import annotations

import pytest

from formcast.grammar.errors import GrammarError, LimitError
from formcast.grammar.limits import Limits
from formcast.grammar.regex import Language

DEEP = 10_000

NESTED = {
    "groups": "(" * DEEP + "a" + ")" * DEEP,
    "stars": "(" * DEEP + "a" + ")*" * DEEP,
    "alternatives": "(" * DEEP + "a" + "|b)c" * DEEP,
    "rounds": "(" * DEEP + "a" + "b)+" * DEEP,
    "counts": "(" * DEEP + "a" + "b){2,3}" * DEEP,
    "lookaheads": "(?=" * DEEP + "a" + ")" * DEEP,
    "negative lookaheads": "(?!" * DEEP + "a" + "b)" * DEEP,
    "lookbehinds": "(?<=" * DEEP + "a" + ")" * DEEP,
    "loops of assertions": "(?:(?=a)" * 1000 + "a" + ")*" * 1000,
    "open groups": "(" * DEEP,
    "classes": "[" * DEEP,
}

LONG = {
    "literal": "a" * 1_000_000,
    "words": "|".join(f"w{number}" for number in range(100_000)),
    "optional": "a?b?" * 250_000,
    "empty branches": "|" * 500_000,
    "empty groups": "()" * 250_000,
    "class": "[" + "".join(map(chr, range(0x4E00, 0x9000))) * 8 + "]",
    "properties": r"\p{L}" * 100_000,
    "boundaries": r"\b" * 300_000,
    "anchors": "^" * 500_000,
    "any case": "(?i)" + "a" * 300_000,
}

EXPONENTIAL = {
    "stars": "((a*)*)*b",
    "overlap": "(a|a|aa|a*)*b",
    "optional run": "(a?){1000}a{1000}",
    "far choice": ".*a.{3000}",
    "nested counts": "((ab{0,100}){0,100}c){0,100}d",
    "many lookaheads": "".join(f"(?=.*{char}.{{3}}z)" for char in "abcdefghij"),
    "forbidden pairs": "".join(f"(?!.*a.{{{distance}}}b)" for distance in range(20)),
    "tempered": "(?:(?!a.{10}b)(?!b.{11}c).)*",
}


def _use(pattern: str, dialect, limits: Limits) -> None:
    try:
        language = Language.pattern(pattern, dialect, "search", limits)
        automaton = language.automaton(limits)
        state = automaton.start
        for index in range(5):
            edges = automaton.edges(state)
            if not edges:
                break
            state = edges[index % len(edges)][2]
        automaton.tail_count(automaton.start, 4)
        language.matches("abcab" * 10, limits)
    except GrammarError:
        return


SMALL_BUDGET = Limits(max_steps=100_000)


@pytest.mark.parametrize("dialect", ["ecma", pytest.param("python", marks=pytest.mark.slow)])
@pytest.mark.parametrize("pattern", [*NESTED.values(), *EXPONENTIAL.values()], ids=[*NESTED, *EXPONENTIAL])
def test_nested_and_exponential_patterns_end(pattern: str, dialect):
    _use(pattern, dialect, SMALL_BUDGET)


@pytest.mark.parametrize("pattern", LONG.values(), ids=LONG)
def test_long_patterns_end(pattern: str):
    _use(pattern, "ecma", SMALL_BUDGET)


def test_deep_but_simple_patterns_are_understood():
    for name in ("groups", "stars", "lookaheads"):
        language = Language.pattern(NESTED[name], "ecma", "search")
        assert language.matches("a")
    # An even number of negations around "nothing follows a".
    assert Language.pattern("(?!" * 1000 + "a" + ")" * 1000, "ecma", "search").matches("a")


def test_long_but_simple_patterns_are_understood():
    assert Language.pattern(LONG["words"], "ecma").matches("w99999")
    automaton = Language.pattern(LONG["literal"]).automaton()
    assert automaton.min_length(automaton.start) == 1_000_000
    assert automaton.tail_count(automaton.start, 10) == 1


def test_sizes_and_depths_beyond_the_limits_are_limit_errors():
    with pytest.raises(LimitError):
        Language.pattern("a" * 11, limits=Limits(max_bytes=10))
    with pytest.raises(LimitError):
        Language.pattern("((a))", limits=Limits(max_depth=1))
    with pytest.raises(LimitError):
        Language.pattern("a{99999999999999999999}")
    with pytest.raises(LimitError):
        Language.pattern(r"\d" * 1000, limits=Limits(max_steps=100))
