"""Set algebra, literals, lengths, emptiness and equality of `Language`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formcast.grammar.errors import GrammarError, LimitError
from formcast.grammar.limits import Limits
from formcast.grammar.regex import Language


def test_literals():
    language = Language.literals(["", "a", "ab", "b", "\U0001f600"])
    for text in ["", "a", "ab", "b", "\U0001f600"]:
        assert language.matches(text)
    for text in ["aa", "ba", "c", "\U0001f601"]:
        assert not language.matches(text)
    assert Language.literals([]) == Language.nothing()
    assert Language.literals([""]) == Language.empty_string() == Language.literal("")


@given(st.lists(st.text("abc", max_size=4), max_size=12), st.text("abc", max_size=4))
def test_literals_are_exactly_the_given_strings(strings: list[str], text: str):
    assert Language.literals(strings).matches(text) == (text in strings)


def test_a_literal_with_a_lone_surrogate_is_refused():
    with pytest.raises(GrammarError) as caught:
        Language.literal("a\ud800")
    assert caught.value.position == 1


def test_no_language_holds_a_surrogate():
    assert not Language.anything().matches("\ud800")
    assert not Language.pattern("[^a]").matches("\udfff")


def test_length_counts_code_points():
    language = Language.length(1, 2)
    assert [text for text in ["", "a", "\U0001f600\U0001f600", "abc"] if language.matches(text)] == ["a", "\U0001f600\U0001f600"]
    assert Language.length(0, None) == Language.anything()
    assert Language.length(2, 1) == Language.nothing()
    assert ~Language.length(1, None) == Language.empty_string()
    assert ~Language.length(3, 5) == Language.length(0, 2) | Language.length(6, None)


def test_equality_is_by_structure():
    assert Language.pattern("a+b") == Language.pattern("a+b")
    assert hash(Language.pattern("a+b")) == hash(Language.pattern("a+b"))
    assert Language.pattern("a") != Language.pattern("b")
    assert Language.pattern("a|b") == Language.pattern("[ab]")
    assert Language.pattern("(?:a|b)|c") == Language.pattern("c|(?:b|a)")
    assert Language.pattern("a{2}a{3,4}") == Language.pattern("a{5,6}")
    assert Language.pattern("(?:a*)*") == Language.pattern("a*")
    assert Language.literal("x") != "x"


def test_length_rules_are_exact_where_they_simplify():
    assert Language.pattern("[a-z]{1,10}") & Language.length(0, 10) == Language.pattern("[a-z]{1,10}")
    assert Language.pattern("[a-z]{1,10}") & Language.length(3, 50) == Language.pattern("[a-z]{3,10}")
    assert Language.pattern("(ab){3}") & Language.length(7, 9) == Language.nothing()
    assert Language.pattern("(ab){3}") & Language.length(6, 6) == Language.pattern("(ab){3}")


@pytest.mark.parametrize(
    ("left", "right", "empty"),
    [
        ("(aa)*", "a(aa)*", True),
        ("(aaa)+", "(aaaaa)+", False),
        ("a*b", "ab*", False),
        (".*foo.*", "[^o]*", True),
        (".*foo.*", "[^o]*o[^o]*", True),
        ("(?!foo).*", "foo.*", True),
        ("[a-f]+", "[g-z]+", True),
        (r"\w+", r"\W+", True),
        ("(a|b)*abb", "(a|b)*bba", True),
        ("(a|b)*abb", "a(a|b)*bb", False),
    ],
)
def test_emptiness_of_intersections(left: str, right: str, empty: bool):
    assert (Language.pattern(left) & Language.pattern(right)).is_empty() == empty


@pytest.mark.parametrize(
    ("pattern", "minimum", "maximum", "empty"),
    [
        ("(abc)*", 4, 5, True),
        ("(abc)*", 4, 6, False),
        ("(aa|aaaaa)*", 3, 3, True),
        ("(aa|aaaaa)*", 1000, 1000, False),
        ("(.{7}){3,}", 0, 20, True),
        ("(.{7}){3,}", 22, 27, True),
        ("[a-z]+@[a-z]+", 60000, 60000, False),
        ("(ab){3,5}|x{7}", 7, 7, False),
        ("(ab){3,5}|x{9}", 7, 7, True),
    ],
)
def test_lengths_decide_without_exploring(pattern: str, minimum: int, maximum: int, empty: bool):
    assert (Language.pattern(pattern) & Language.length(minimum, maximum)).is_empty(Limits(max_states=1, max_steps=2000)) == empty


def test_assertions_do_not_look_across_a_seam():
    word = Language.pattern(r"\bx")
    assert Language.literal("a").concat(word).matches("ax")
    assert not Language.pattern(r"a\bx").matches("ax")
    assert Language.pattern("^x").repeat(2, 2).matches("xx")


def test_chars_and_unions():
    digit = Language.chars([(0x30, 0x39)])
    assert digit == Language.pattern("[0-9]")
    assert Language.union([digit, Language.literal("-")]).matches("-")
    assert Language.intersection([digit, Language.pattern("[5-9a]")]).matches("7")
    assert Language.intersection([]) == Language.anything()
    assert Language.union([]) == Language.nothing()


def test_an_emptiness_test_ends_at_its_budget():
    hard = Language.intersection([Language.pattern(f".*a.{{{distance}}}b.*") for distance in range(2, 14)]) & Language.length(0, 4)
    assert hard.is_empty()
    with pytest.raises(LimitError):
        (Language.pattern(".*a.{12}") & ~Language.pattern(".*a.{12}|.*b.{25}")).is_empty(Limits(max_states=50))
