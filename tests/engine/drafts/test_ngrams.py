from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formcast.engine.drafts.ngrams import NgramIndex


def index_of(tokens, shortest=1, longest=3) -> NgramIndex:
    made = NgramIndex(shortest, longest)
    made.extend(tokens)
    return made


@pytest.mark.parametrize(
    ("tokens", "ahead", "count", "expected"),
    [
        ([], [], 3, []),
        ([1], [], 3, []),
        ([1, 2, 3, 1], [], 3, [2, 3, 1]),
        ([1, 2, 3, 1], [2], 3, [3, 1]),
        ([1, 2, 9, 5, 2, 8, 1, 2], [], 1, [9]),  # the longer match wins over the later one
        ([1, 2, 1, 3, 1], [], 1, [3]),  # of equal ones, the last
        ([1, 2, 3, 1], [], 0, []),
        ([1, 2, 3], [4], 3, []),
    ],
)
def test_what_followed_the_last_tokens(tokens, ahead, count, expected):
    assert index_of(tokens).follow(ahead, count) == expected


def test_short_matches_do_not_count_when_too_short():
    assert index_of([1, 2, 3, 1], shortest=2).follow([], 3) == []


def _slow(tokens, ahead, count, shortest, longest):
    text = [*tokens, *ahead]
    for size in range(longest, shortest - 1, -1):
        for end in range(len(tokens) - 1, size - 1, -1):
            if len(text) >= size and tokens[end - size : end] == text[len(text) - size :]:
                return tokens[end : end + count]
    return []


@given(
    tokens=st.lists(st.integers(0, 2), max_size=20),
    ahead=st.lists(st.integers(0, 2), max_size=3),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 4)).map(sorted),
    count=st.integers(0, 4),
)
def test_against_a_search_of_the_whole_text(tokens, ahead, sizes, count):
    assert index_of(tokens, *sizes).follow(ahead, count) == _slow(tokens, ahead, count, *sizes)
