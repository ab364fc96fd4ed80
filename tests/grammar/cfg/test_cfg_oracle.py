"""Random small grammars against an independent recogniser, for every text up to six characters."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from formcast import GrammarError
from formcast.grammar.cfg import ContextFreeGrammar, compile_cfg, parse_ebnf, parse_gbnf

NAMES = ("root", "x", "y", "z")
Productions = dict[str, list[tuple[str, ...]]]
TEXTS = ["".join(chars) for size in range(7) for chars in product("ab", repeat=size)]


@st.composite
def productions(draw: st.DrawFn) -> Productions:
    """Rules whose symbols are names or single characters; recursion of every form, nullable and unproductive rules included."""
    names = NAMES[: draw(st.integers(1, 4))]
    symbols = st.sampled_from([*names, *"ab", *"ab"])
    bodies = st.lists(st.lists(symbols, max_size=3).map(tuple), min_size=1, max_size=4)
    return {name: draw(bodies) for name in names}


def written(rules: Productions) -> str:
    lines = []
    for name, bodies in rules.items():
        alternatives = [" ".join(symbol if symbol in rules else f'"{symbol}"' for symbol in body) or '""' for body in bodies]
        lines.append(f"{name} ::= {' | '.join(alternatives)}")
    return "\n".join(lines)


def derived(rules: Productions, longest: int) -> set[str]:
    """Texts up to a length that the root derives: sets of texts are grown until nothing is added."""
    found: dict[str, set[str]] = {name: set() for name in rules} | {char: {char} for char in "ab"}
    grown = True
    while grown:
        grown = False
        for name, bodies in rules.items():
            for body in bodies:
                texts = {""}
                for symbol in body:
                    texts = {left + right for left in texts for right in found[symbol] if len(left) + len(right) <= longest}
                if not texts <= found[name]:
                    found[name] |= texts
                    grown = True
    return found["root"]


def check_verdicts(grammar: ContextFreeGrammar, expected: set[str]) -> None:
    """Compares all short texts."""
    machine, start = compile_cfg(grammar)
    for text in TEXTS:
        state = machine.run(start, text.encode())
        assert (state >= 0 and machine.accepting(state)) == (text in expected), text


@settings(max_examples=60, deadline=None)
@given(productions())
def test_every_short_text_has_the_verdict_of_its_derivations(rules: Productions):
    expected = derived(rules, 6)
    try:
        grammar = parse_gbnf(written(rules))
    except GrammarError:
        assert expected == set()
        return
    check_verdicts(grammar, expected)


@settings(max_examples=40, deadline=None)
@given(productions())
def test_a_state_is_left_only_where_no_text_goes_on(rules: Productions):
    longest = 6
    expected = derived(rules, longest)
    try:
        machine, start = compile_cfg(parse_gbnf(written(rules)))
    except GrammarError:
        return
    prefixes = {text[:end] for text in expected for end in range(len(text) + 1)}
    for text in TEXTS:
        assert machine.run(start, text.encode()) >= 0 or text not in prefixes


@st.composite
def repetitions(draw: st.DrawFn) -> tuple[str, Productions]:
    """One rule with quantified groups, and the same written out."""
    low = draw(st.integers(0, 2))
    high = draw(st.one_of(st.none(), st.integers(low, 3)))
    inner = draw(st.sampled_from(["a", "ab", "x", "xb", ""]))
    rules: Productions = {"root": [], "x": [("b",), ("a", "x")]}
    body = tuple(inner)
    counts = range(low, 7 if high is None else high + 1)
    rules["root"] = [(*body * count, "b") for count in counts] + [("a", "root")]
    group = " ".join(symbol if symbol == "x" else f"'{symbol}'" for symbol in inner) or "''"
    bound = f"{{{low},{'' if high is None else high}}}"
    return f"root ::= ({group}){bound} 'b' | 'a' root\nx ::= 'b' | 'a' x", rules


@settings(max_examples=30, deadline=None)
@given(repetitions())
def test_quantifiers_mean_the_same_as_written_out(pair: tuple[str, Productions]):
    text, rules = pair
    check_verdicts(parse_ebnf(text), derived(rules, 6))
