"""Leaf automata that grammars share are replaced before texts have used them up."""

from __future__ import annotations

import random

import pytest

from formcast import Grammar, LimitError, Limits

# Each text meets states of its own: which of the last twelve characters were an a.
SCHEMA = {"type": "string", "pattern": "a.{12}b$"}
LIMITS = Limits(max_states=2_000)


def read(grammar: Grammar, number: int) -> None:
    rng = random.Random(number)
    compiled = grammar.compile(LIMITS)
    compiled.machine.run(compiled.start, ('"' + "".join(rng.choice("ac") for _ in range(100))).encode())


def test_texts_of_others_use_nothing_up():
    for number in range(40):
        read(Grammar.json_schema(SCHEMA, limits=LIMITS), number)


def test_each_automaton_has_a_budget():
    with pytest.raises(LimitError):
        compiled = Grammar.json_schema(SCHEMA, limits=LIMITS).compile(LIMITS)
        state, rng = compiled.start, random.Random(0)
        for _ in range(12):
            state = compiled.machine.run(state, ('"' * (state == compiled.start) + "".join(rng.choice("ac") for _ in range(600))).encode())
