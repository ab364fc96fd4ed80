"""Ambiguous grammars: stacks are merged, so that time and memory grow with the text and not with the number of its parses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from formcast import LimitError, Limits
from formcast.grammar.cfg import ContextFreeGrammar, compile_cfg, parse_gbnf, parse_lark
from formcast.grammar.machine_layout import H_NODES

GRAMMARS: dict[str, ContextFreeGrammar] = {
    "pairs": parse_lark('start: start start | "a"'),
    "pairs, triples, nothing": parse_gbnf('root ::= root root root | root root | "a" | ""'),
    "one operator": parse_gbnf('root ::= root "+" root | "1"'),
    "two operators": parse_lark('start: start "+" start | start "*" start | "(" start ")" | "1"\n%ignore " "'),
    "even palindromes": parse_gbnf('root ::= "a" root "a" | "b" root "b" | ""'),
    "palindromes": parse_gbnf('root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""'),
    "dangling else": parse_gbnf('root ::= "i" root | "i" root "e" root | "x"'),
    "hidden left recursion": parse_gbnf('root ::= n root "b" | "a"\nn ::= "" | "n"'),
    "hidden on both sides": parse_gbnf('root ::= n root n | "a"\nn ::= "" | "n" | n n'),
    "tails that may be nothing": parse_gbnf('root ::= "a" root n | "b"\nn ::= "n" | ""'),
    "one or two closers": parse_gbnf('root ::= x | y\nx ::= "a" x "b" | ""\ny ::= "a" y "bb" | ""'),
    "closers in any mixture": parse_gbnf('root ::= "a" root "x" | [ab] root "y" | "z"'),
    "trees": parse_gbnf('root ::= "a" root root | "a" root | "a"'),
    "lengths": parse_gbnf('root ::= c root d | ""\nc ::= "a" | "aa" | c c\nd ::= "a" | d d | "aaa"'),
}

TEXTS: list[tuple[str, Callable[[int], str], bool]] = [
    ("pairs", lambda n: "a" * n, True),
    ("pairs", lambda n: "a" * n + "b", False),
    ("pairs, triples, nothing", lambda n: "a" * n, True),
    ("one operator", lambda n: "1+" * n + "1", True),
    ("one operator", lambda n: "1+" * n, False),
    ("two operators", lambda n: "(1+1 * 1)*" * n + "1", True),
    ("two operators", lambda n: "(" * n + "1" + ")*1" * n, True),
    ("two operators", lambda n: "(" * n + "1" + ")*1" * (n - 1), False),
    ("even palindromes", lambda n: "a" * 2 * n, True),
    ("even palindromes", lambda n: "a" * (2 * n + 1), False),
    ("even palindromes", lambda n: "abbaab" * n + "baabba" * n, True),
    ("even palindromes", lambda n: "abbaab" * n + "baabba" * (n - 1) + "baabab", False),
    ("palindromes", lambda n: "ab" * n + "a", True),
    ("palindromes", lambda n: "ab" * n, False),
    ("dangling else", lambda n: "i" * n + "x" + "ex" * n, True),
    ("dangling else", lambda n: "i" * n + "x" + "ex" * (n - 7), True),
    ("dangling else", lambda n: "i" * n + "x" + "ex" * (n + 1), False),
    ("hidden left recursion", lambda n: "a" + "b" * n, True),
    ("hidden left recursion", lambda n: "n" * 50 + "a" + "b" * n, True),
    ("hidden left recursion", lambda n: "n" * 50 + "a" + "b" * 49, False),
    ("hidden on both sides", lambda n: "n" * n + "a" + "n" * 2 * n, True),
    ("tails that may be nothing", lambda n: "a" * n + "b" + "n" * n, True),
    ("tails that may be nothing", lambda n: "a" * n + "b", True),
    ("tails that may be nothing", lambda n: "a" * n + "b" + "n" * (n + 1), False),
    ("one or two closers", lambda n: "a" * n + "b" * n, True),
    ("one or two closers", lambda n: "a" * n + "b" * 2 * n, True),
    ("one or two closers", lambda n: "a" * n + "b" * (n + 1), False),
    ("closers in any mixture", lambda n: "a" * n + "z" + "xyyx" * (n // 4), True),
    ("closers in any mixture", lambda n: "ab" * (n // 2) + "z" + "y" * n, True),
    ("closers in any mixture", lambda n: "b" * n + "z" + "x" * n, False),
    ("trees", lambda n: "a" * n, True),
    ("lengths", lambda n: "a" * n, True),
]


@pytest.mark.parametrize("name, text, expected", TEXTS)
def test_memory_grows_with_the_text_only(name: str, text: Callable[[int], str], expected: bool):
    data = text(1_000).encode()
    machine, start = compile_cfg(GRAMMARS[name])
    state = machine.run(start, data)
    assert (state >= 0 and machine.accepting(state)) == expected
    assert machine.header[H_NODES] < 100 * len(data)


@pytest.mark.parametrize("name", ["pairs", "pairs, triples, nothing", "one operator"])
def test_equal_sets_of_stacks_are_one_state(name: str):
    machine, start = compile_cfg(GRAMMARS[name])
    text = b"1+" if name == "one operator" else b"aa"
    assert machine.run(start, text * 10) == machine.run(start, text * 2_000)


def test_every_interval_of_heights_is_a_set_of_its_own():
    """After k times "b", the stacks have every height from n - k to n: nodes are quadratic, as in Earley's algorithm."""
    machine, start = compile_cfg(GRAMMARS["hidden left recursion"])
    state = machine.run(start, b"n" * 300 + b"a" + b"b" * 299)
    assert not machine.accepting(state)
    assert machine.accepting(machine.run(state, b"b"))
    assert machine.header[H_NODES] < 5 * 300 * 300


def test_more_kinds_of_stacks_than_the_budget_are_an_error():
    """Which of the last twelve closers were bound is one of 2^12 sets: no merging helps."""
    rules = "\n".join(f'r{i} ::= "a" r{i + 1} "x" | [ab] r{i + 1} "y"' for i in range(12))
    grammar = parse_gbnf(f'root ::= r0\n{rules}\nr12 ::= "a" r "x"\nr ::= "a" r "x" | [ab] r "y" | "a" r | "z"')
    machine, start = compile_cfg(grammar, Limits(max_nodes=100_000))
    with pytest.raises(LimitError, match="max_nodes"):
        machine.run(start, b"a" * 200)
