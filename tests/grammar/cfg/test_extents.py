"""Which characters make a match longer, and that terminals which such characters cannot follow cost no states of their own."""

from __future__ import annotations

import re

import pytest

from formcast import Grammar, Limits
from formcast.grammar.cfg.extents import extent_of
from formcast.grammar.cfg.ordered import parse_ordered

LONGEST = [
    ("abc", ""),
    ("[a-z]+", "az"),
    ("[a-z]{1,80}", "az"),
    ('"[^"]*"', ""),
    ("'([^']|''){0,80}'", "'"),
    (r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", "09.eE"),
    (r" [^ |]{1,30}( [^ |]{1,30}){0,11} ", "a"),
    ("ab|a", "b"),
    ("(?!if)[a-z]+", "if"),
    ("(?i:ab)c?", "c"),
    ("(a|b){2,3}c?", "abc"),
]

SHORTER = ["a|ab", "a*?b??", "/[*](.|\n)*?[*]/", "(a|ab)(c|)", r"a\b", "(?<!a)b", "a$", "(a?)+b", "(|a)b*", "(b|ba|a)+"]


@pytest.mark.parametrize(("pattern", "extending"), LONGEST)
def test_the_characters_that_extend_a_match(pattern: str, extending: str):
    found = extent_of(parse_ordered(pattern, Limits()))
    assert found is not None
    assert [char for char in extending if ord(char) not in found.extending] == []
    assert bool(found.extending) == bool(extending)


@pytest.mark.parametrize("pattern", SHORTER)
def test_patterns_that_may_prefer_a_shorter_match(pattern: str):
    assert extent_of(parse_ordered(pattern, Limits())) is None


@pytest.mark.parametrize(("pattern", "extending"), LONGEST)
def test_what_extends_nothing_leaves_the_match_alone(pattern: str, extending: str):
    found = extent_of(parse_ordered(pattern, Limits()))
    assert found is not None
    harmless = next(char for char in "#;|~" if ord(char) not in found.extending)
    for text in ("abc", "a", "ab", '"x"', "'a''b'", "-12.5e3", " a b ", "iffy", "ABc", "abc"):
        if re.fullmatch(pattern, text):
            match = re.match(pattern, text + harmless)
            assert match is not None and match.group() == text


def test_counted_terminals_that_nothing_extends_take_no_states_in_advance():
    grammar = Grammar.lark('start: S ("," S)*\nS: /"([^"]){0,1500}"/')
    grammar.compile(Limits(max_states=200))
    assert grammar.accepts('"' + "a" * 1500 + '"') and not grammar.accepts('"' + "a" * 1501 + '"')
