"""The automaton of a pattern ends its match exactly where `re.match` does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formcast import GrammarError, Limits
from formcast.grammar.cfg.guards import FREE, Guards
from formcast.grammar.cfg.ordered import OrderedMatcher, parse_ordered

PATTERNS = [
    "a|ab", "(a|ab)(c|bcd)", "(a|ab)(bc|c)?", "a*?b", "a*", "[ab]{1,3}", "[ab]{2,}?b?", "(a?)(ab)?", "(a|b)*?c?", "a.*b", "(?:ab|a)(?:bc)?$",
    r'".*?(?<!\\)(\\\\)*?"', '"(?!"").*?"', r"a\b", r"a\Bb", "(?!ab)[abc]+", r"(?!ab\b)[abc]+", "a+(?=b)", "a(?!bc)", "((?!bb).)+",
    "(?i:Ab)+", "(?s:a.)+?c", "[^a]+?(?=a)", "(a*)*b?", "(a|b|)+c", "((a)|b){2}?a", r"a(?:(?<=a)b)*", r"a+(?m:$)\n?b?",
]  # fmt: skip


class Matcher:
    """Answers where a match ends by trying every end: at most one may be right."""

    def __init__(self, pattern: str):
        self._matcher = OrderedMatcher(parse_ordered(pattern, Limits()), Limits())
        self._guards = Guards(Limits())

    def ends(self, text: str) -> list[int]:
        found: list[int] = []
        state = self._matcher.start
        for at in range(len(text) + 1):
            condition = self._matcher.condition(state)
            if condition is not None and self._may_follow(condition, text[at:]):
                found.append(at)
            target = next((target for cell, target in self._matcher.row(state) if at < len(text) and ord(text[at]) in cell), None)
            if target is None:
                break
            state = target
        return found

    def _may_follow(self, condition, text: str) -> bool:
        guard = self._guards.both(FREE, condition)
        for char in text:
            guard = None if guard is None else self._guards.step(guard, ord(char))
        return guard is not None and self._guards.allows_end(guard)


def expected_ends(pattern: str, text: str) -> list[int]:
    match = re.match(pattern, text)
    return [] if match is None else [match.end()]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_match_ends_where_re_ends_it(pattern: str):
    matcher = Matcher(pattern)

    @settings(max_examples=60, deadline=None)
    @given(st.text('abcA"\\ \n', max_size=7))
    def check(text: str) -> None:
        assert matcher.ends(text) == expected_ends(pattern, text)
        quoted = f'"{text}'
        assert matcher.ends(quoted) == expected_ends(pattern, quoted)

    check()


def patterns() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(["a", "b", "[ab]", ".", "ab", "[^a]", ""])

    def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        marks = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}", "{0,2}?"])
        return st.one_of(
            st.tuples(inner, inner).map("".join),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
            st.tuples(inner, marks).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
            st.tuples(inner, inner, st.sampled_from(["(?={})", "(?!{})"])).map(lambda three: three[0] + three[2].format(three[1])),
        )

    return st.recursive(atoms, combined, max_leaves=6)


@settings(max_examples=80, deadline=None)
@given(patterns(), st.lists(st.text("ab", max_size=6), min_size=1, max_size=12))
def test_random_patterns_end_where_re_ends_them(pattern: str, texts: list[str]):
    try:
        matcher = Matcher(pattern)
        for text in texts:
            assert matcher.ends(text) == expected_ends(pattern, text), text
    except GrammarError as error:
        assert "not supported" in str(error)


@pytest.mark.parametrize("pattern", ["^a", r"\ba", "(?<=a)b", "(?<!a)b", r"\Aa", "a(?<=xya)b", "(?>a|ab)c", "a++", "(?!\\b)a"])
def test_what_depends_on_the_text_before_is_refused(pattern: str):
    with pytest.raises(GrammarError):
        Matcher(pattern).ends("a")
