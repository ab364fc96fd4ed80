"""The algorithm of beam search by itself, against an exhaustive search."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formcast.engine.beams.search import BeamSearch, Candidate

END = 0
TOKENS = range(4)


class Table:
    """A model with a distribution after each text, some tokens of which are forbidden, and never all."""

    def __init__(self, seed: int):
        self.seed = seed

    def candidates(self, tokens: tuple[int, ...]) -> list[Candidate]:
        rng = random.Random(f"{self.seed} {tokens}")
        weights = [rng.random() ** 3 + 1e-9 for _ in TOKENS]
        allowed = [token for token in TOKENS if rng.random() < 0.7] or [END]
        return [Candidate(token, math.log(weights[token] / sum(weights))) for token in allowed]

    def texts(self, max_tokens: int) -> dict[tuple[int, ...], float]:
        """Every whole answer, and its log-probability."""
        found, beginnings = {}, {(): 0.0}
        for _ in range(max_tokens):
            grown = {
                (*tokens, candidate.token_id): logprob + candidate.logprob
                for tokens, logprob in beginnings.items()
                for candidate in self.candidates(tokens)
            }
            found |= {tokens: logprob for tokens, logprob in grown.items() if tokens[-1] == END}
            beginnings = {tokens: logprob for tokens, logprob in grown.items() if tokens[-1] != END}
        return found | beginnings


def run(table: Table, width: int, *, max_tokens: int, length_penalty: float = 0.0) -> list[tuple[tuple[int, ...], float]]:
    search = BeamSearch(width, max_tokens=max_tokens, length_penalty=length_penalty, end_ids=frozenset({END}))
    while search.beams:
        before = search.beams
        survivors = search.advance([table.candidates(tuple(beam.token_ids())) for beam in before])
        assert [survivor.hypothesis for survivor in survivors] == search.beams and len(survivors) <= width
        assert all(survivor.hypothesis.parent is before[survivor.parent] for survivor in survivors)
        logprobs = [beam.logprob for beam in search.beams]
        assert logprobs == sorted(logprobs, reverse=True)
    assert all(answer.ended == (answer.hypothesis.token_id == END) for answer in search.answers)
    return [(tuple(answer.hypothesis.token_ids()), answer.score) for answer in search.answers]


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_a_beam_as_wide_as_all_texts_finds_the_likeliest(seed: int, max_tokens: int):
    table = Table(seed)
    expected = sorted(table.texts(max_tokens).items(), key=lambda text: -text[1])
    found = run(table, 1024, max_tokens=max_tokens)
    assert [tokens for tokens, _ in found] == [tokens for tokens, _ in expected]
    assert [score for _, score in found] == pytest.approx([logprob for _, logprob in expected])


@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([0.0, 1.0, -1.0, 3.0]))
def test_whatever_the_width_answers_are_distinct_and_scored_right(seed: int, width: int, length_penalty: float):
    table = Table(seed)
    texts = table.texts(5)
    found = run(table, width, max_tokens=5, length_penalty=length_penalty)
    assert 0 < len({tokens for tokens, _ in found}) == len(found) <= width
    for (tokens, score), (_, following) in itertools.pairwise([*found, ((), -math.inf)]):
        assert score == pytest.approx(texts[tokens] / len(tokens) ** length_penalty) and score >= following
