"""Generated patterns: against `re`, against an independent automata library, and against the laws of sets."""

from __future__ import annotations

import random
import re
import sys
from typing import Any

import interegular
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formcast.grammar.errors import GrammarError
from formcast.grammar.regex import Language

TEXT_ALPHABET = "ab1_ \nKk\u017fsé-"

texts = st.text(TEXT_ALPHABET, max_size=7)

_LITERALS = st.sampled_from(["a", "b", "ab", "1", "_", "k", "s", "-", " ", "é"])
_CLASSES = st.sampled_from(
    [".", r"\w", r"\d", r"\s", r"\W", r"\D", r"\S", "[ab]", "[^a]", "[a-k]", r"[^\w]", r"[\d_]", r"[\W1]", "[]a]", "[^-a]"]
)
_ANCHORS = st.sampled_from(["^", "$", r"\b", r"\B", r"\A", r"\Z"])
_COMMON_QUANTIFIERS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?", "+?", "??", "{1,2}?"])
_QUANTIFIERS = _COMMON_QUANTIFIERS | st.just("{,2}")
_LOOKBEHINDS = st.sampled_from(["a", "b", "ab", "^", r"\s", r"\w", "[ab]b", "(?<!a)b", "(?<=a)b", "^a"])

_plain_atoms = _LITERALS | _CLASSES


def _joined(parts: list[str]) -> str:
    return "".join(parts)


def _alternatives(atom: st.SearchStrategy[str], quantifiers: st.SearchStrategy[str] = _QUANTIFIERS) -> st.SearchStrategy[str]:
    repeated = st.one_of(atom, st.builds("(?:{}){}".format, atom, quantifiers))
    sequence = st.lists(repeated, max_size=4).map(_joined)
    return st.lists(sequence, min_size=1, max_size=3).map("|".join)


# No assertions, nothing that depends on a dialect: the subset that automata libraries agree on.
plain_patterns = st.recursive(
    st.sampled_from(["a", "b", "ab", "[ab]", "[^a]", "c", "[a-c]"]),
    lambda inner: _alternatives(inner, _COMMON_QUANTIFIERS).map("(?:{})".format),
    max_leaves=6,
)

_grouped = st.recursive(
    _plain_atoms | _ANCHORS,
    lambda inner: st.one_of(
        _alternatives(inner).map("(?:{})".format),
        _alternatives(inner).map("({})".format),
        _alternatives(inner).map("(?={})".format),
        _alternatives(inner).map("(?!{})".format),
        _LOOKBEHINDS.map("(?<={})".format),
        _LOOKBEHINDS.map("(?<!{})".format),
        st.builds("(?{}:{})".format, st.sampled_from(["i", "s", "m", "i-s", "ai"]), _alternatives(inner)),
    ),
    max_leaves=10,
)

python_patterns = st.builds(
    "{}{}".format,
    st.sampled_from(["", "", "", "(?i)", "(?m)", "(?s)", "(?im)"]),
    st.lists(_grouped, min_size=1, max_size=4).map(_joined),
)


def _language(pattern: str) -> Language:
    try:
        return Language.pattern(pattern, "python")
    except GrammarError:
        return Language.literal("ab")


languages = st.one_of(
    python_patterns.map(_language),
    st.lists(texts, max_size=4).map(Language.literals),
    st.builds(lambda lo, more: Language.length(lo, lo + more), st.integers(0, 3), st.integers(0, 3)),
    st.sampled_from([Language.anything(), Language.nothing(), Language.empty_string()]),
)


@settings(max_examples=100)
@given(python_patterns, st.lists(texts, min_size=1, max_size=4))
def test_generated_patterns_agree_with_re(pattern: str, candidates: list[str]):
    try:
        compiled = re.compile(pattern)
    except re.error:
        with pytest.raises(GrammarError):
            Language.pattern(pattern, "python")
        return
    whole = Language.pattern(pattern, "python", "full")
    anywhere = Language.pattern(pattern, "python", "search")
    for text in candidates:
        assert whole.matches(text) == bool(compiled.fullmatch(text))
        assert anywhere.matches(text) == bool(compiled.search(text))


def _all_texts(alphabet: str, most: int) -> list[str]:
    result = [""]
    level = [""]
    for _ in range(most):
        level = [text + char for text in level for char in alphabet]
        result.extend(level)
    return result


@settings(max_examples=40)
@given(plain_patterns)
def test_accepts_the_same_as_an_independent_automaton(pattern: str):
    oracle = interegular.parse_pattern(pattern).to_fsm()
    language = Language.pattern(pattern)
    for text in _all_texts("abcd", 3):
        assert language.matches(text) == oracle.accepts(text)


@settings(max_examples=30)
@given(plain_patterns, plain_patterns)
def test_equality_of_sets_agrees_with_an_independent_automaton(left: str, right: str):
    first, second = Language.pattern(left), Language.pattern(right)
    same = ((first - second) | (second - first)).is_empty()
    first_fsm, second_fsm = (interegular.parse_pattern(pattern).to_fsm() for pattern in (left, right))
    assert same == first_fsm.equivalent(second_fsm)


@settings(max_examples=30)
@given(plain_patterns, plain_patterns)
def test_disjointness_agrees_with_an_independent_automaton(left: str, right: str):
    first, second = Language.pattern(left), Language.pattern(right)
    first_fsm, second_fsm = (interegular.parse_pattern(pattern).to_fsm() for pattern in (left, right))
    assert (first & second).is_empty() == (first_fsm & second_fsm).empty()
    assert first.is_empty() == first_fsm.empty()


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from([".*{}.*", "{}", ".*(?:{})", "(?:{})*"]), plain_patterns, st.booleans()), min_size=2, max_size=4),
    st.sampled_from(["[a-c]", "[ab]", "."]),
    st.integers(0, 6),
    st.integers(0, 3),
)
def test_conjunctions_of_a_bounded_length_agree_with_an_independent_automaton(
    parts: list[tuple[str, str, bool]], char: str, lo: int, more: int
):
    window = f"{char}{{{lo},{lo + more}}}"
    language, oracle = Language.pattern(window), interegular.parse_pattern(window).to_fsm()
    for around, pattern, wanted in parts:
        other, fsm = Language.pattern(around.format(pattern)), interegular.parse_pattern(around.format(pattern)).to_fsm()
        language = language & other if wanted else language - other
        oracle = oracle & fsm if wanted else oracle - fsm
    assert language.is_empty() == oracle.empty()
    automaton = language.automaton()
    lengths = [len(text) for text in _all_texts("abcd", 4) if oracle.accepts(text)]
    if lengths:
        assert automaton.min_length(automaton.start) == min(lengths)
    moves: dict[Any, Any] = oracle.map
    pairs: list[tuple[int, Any]] = [(automaton.start, oracle.initial)]
    for _ in range(3):
        following: list[tuple[int, Any]] = []
        for q, state in pairs:
            for char in "abcd":
                target = automaton.step(q, ord(char))
                after = moves.get(state, {}).get(oracle.alphabet[char])
                assert (target is not None) == (after is not None and oracle.islive(after))
                if target is not None and after is not None:
                    following.append((target, after))
        pairs = following[:16]


_possessive = st.recursive(
    st.sampled_from(["a", "b", "ab", "[ab]", "a|ab", "1"]),
    lambda inner: st.one_of(
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{1,2}", "*+", "++", "?+", "{1,2}+", "{2}+"])),
        inner.map("(?>{})".format),
        st.builds("(?:{}){}".format, inner, inner),
    ),
    max_leaves=5,
)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="possessive quantifiers came with Python 3.11")
@settings(max_examples=80)
@given(_possessive)
def test_possessive_forms_mean_the_same_or_are_refused(pattern: str):
    try:
        language = Language.pattern(pattern, "python", "full")
    except GrammarError as error:
        assert error.position is not None
        return
    compiled = re.compile(pattern)
    for text in _all_texts("ab1", 4):
        assert language.matches(text) == bool(compiled.fullmatch(text))


@settings(max_examples=60)
@given(languages, languages, st.lists(texts, min_size=1, max_size=3))
def test_operators_are_those_of_sets(left: Language, right: Language, candidates: list[str]):
    for text in candidates:
        in_left, in_right = left.matches(text), right.matches(text)
        assert (left & right).matches(text) == (in_left and in_right)
        assert (left | right).matches(text) == (in_left or in_right)
        assert (~left).matches(text) == (not in_left)
        assert (left - right).matches(text) == (in_left and not in_right)
        assert (~(left & right)).matches(text) == (~left | ~right).matches(text)
        assert (~(left | right)).matches(text) == (~left & ~right).matches(text)


@settings(max_examples=40)
@given(languages, languages, texts)
def test_concatenation_splits_the_text_in_two(left: Language, right: Language, text: str):
    expected = any(left.matches(text[:cut]) and right.matches(text[cut:]) for cut in range(len(text) + 1))
    assert left.concat(right).matches(text) == expected


@settings(max_examples=30)
@given(languages, texts)
def test_repetition_is_repeated_concatenation(part: Language, text: str):
    twice_or_less = Language.empty_string() | part | part.concat(part)
    assert part.repeat(0, 2).matches(text) == twice_or_less.matches(text)
    assert part.repeat(2, 2).matches(text) == part.concat(part).matches(text)


@settings(max_examples=40)
@given(languages)
def test_algebra_is_consistent_about_emptiness(language: Language):
    assert (language & ~language).is_empty()
    assert (~(language | ~language)).is_empty()
    assert ~~language == language
    assert (language & Language.nothing()).is_empty()
    assert language | Language.anything() == Language.anything()
    assert language & Language.anything() == language
    assert language | Language.nothing() == language


@settings(max_examples=60)
@given(python_patterns, st.sampled_from(["full", "search"]), st.randoms(use_true_random=False))
def test_random_walks_never_end_dead_and_always_match(pattern: str, mode, rng: random.Random):
    try:
        language = Language.pattern(pattern, "python", mode)
    except GrammarError:
        return
    automaton = language.automaton()
    state, text = automaton.start, ""
    assert bool(automaton.edges(state)) or automaton.accepting(state) or language.is_empty()
    if language.is_empty():
        return
    for _ in range(20):
        edges = automaton.edges(state)
        assert edges or automaton.accepting(state)
        if not edges:
            break
        low, high, state = rng.choice(edges)
        text += chr(rng.choice([low, high]))
    remaining = automaton.min_length(state)
    assert remaining is not None
    for left in range(remaining, 0, -1):
        low, _, state = min(automaton.edges(state), key=lambda edge: automaton.min_length(edge[2]) or 0)
        text += chr(low)
        assert automaton.min_length(state) == left - 1
    assert automaton.accepting(state)
    assert language.matches(text)


@settings(max_examples=40)
@given(python_patterns)
def test_edges_are_sorted_disjoint_and_without_surrogates(pattern: str):
    try:
        automaton = Language.pattern(pattern, "python", "search").automaton()
    except GrammarError:
        return
    for state in {automaton.start, *[target for _, _, target in automaton.edges(automaton.start)]}:
        previous = -1
        for low, high, target in automaton.edges(state):
            assert previous < low <= high <= 0x10FFFF
            assert high < 0xD800 or low > 0xDFFF
            assert automaton.step(state, low) == automaton.step(state, high) == target
            previous = high


@settings(max_examples=40)
@given(python_patterns, st.integers(0, 5))
def test_lengths_agree_with_what_a_walk_finds(pattern: str, cap: int):
    try:
        automaton = (Language.pattern(pattern, "python") & ~Language.literal("ab")).automaton()
    except GrammarError:
        return
    expected = 0
    level = {automaton.start}
    for size in range(cap + 1):
        expected |= any(automaton.accepting(state) for state in level) << size
        level = {target for state in level for _, _, target in automaton.edges(state)}
    assert automaton.tail_lengths(automaton.start, cap) == expected
