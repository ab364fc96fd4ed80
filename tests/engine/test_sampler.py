from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from formcast.engine.kernels.masked_sample import RowStatus
from formcast.engine.request import SamplingParams
from formcast.engine.row_edits import RowEdits
from formcast.engine.sampler import Sampler, SampleRow
from formcast.fsm_cache.mask import NO_ROW, Mask

V = 50


def row(*, mask=None, seed=0, position=0, prompt=(), answer=(), **params) -> SampleRow:
    settings = SamplingParams(**params)
    edits = RowEdits(settings, prompt)
    for token in answer:
        edits.append(token)
    return SampleRow(
        params=settings,
        seed=seed,
        position=position,
        mask=None if mask is None else Mask.of(NO_ROW, np.array(mask, np.int32), 0),
        edits=edits.arrays(),
    )


def test_rows_of_all_kinds_share_a_batch():
    logits = torch.zeros(4, V)
    logits[:, 7] = 5.0
    rows = [
        row(temperature=0.0),
        row(temperature=0.0, mask=[3, 4]),
        row(temperature=0.0, logit_bias={9: 20.0}),
        row(temperature=0.0, mask=[]),
    ]
    tokens = Sampler(V).sample(logits, rows)
    assert [token.token_id for token in tokens[:3]] == [7, 3, 9]
    assert [token.status for token in tokens] == [RowStatus.SAMPLED] * 3 + [RowStatus.NO_TOKEN]


@pytest.mark.parametrize(
    ("params", "prompt", "answer", "expected"),
    [
        ({"presence_penalty": 1.0}, (1,), (2, 2), {1: 2.0, 2: 1.0}),
        ({"frequency_penalty": 1.0}, (1,), (2, 2), {1: 2.0, 2: 0.0}),
        ({"repetition_penalty": 4.0}, (1,), (2, 2), {1: 0.5, 2: 0.5}),
        ({"repetition_penalty": 2.0, "presence_penalty": 0.5, "logit_bias": {2: 3.0}}, (1,), (2,), {1: 1.0, 2: 3.5}),
    ],
)
def test_penalties_follow_their_definition(params, prompt, answer, expected):
    logits = torch.full((1, V), 2.0)
    Sampler(V).sample(logits, [row(prompt=prompt, answer=answer, **params)])
    changed = {index: value for index, value in enumerate(logits[0].tolist()) if index in expected or value != 2.0}
    assert changed == pytest.approx(expected)


def test_edits_grow_with_the_answer():
    edits = RowEdits(SamplingParams(frequency_penalty=1.0), [])
    for token in range(100):
        edits.append(token % 40)
    token_ids, counts, seen, biases = edits.arrays()
    assert token_ids.tolist() == list(range(40)) and counts.tolist() == [3] * 20 + [2] * 20
    assert seen.all() and not biases.any()


def test_forbidden_tokens_get_their_own_bias_back():
    edits = RowEdits(SamplingParams(logit_bias={3: 2.0}), [])
    edits.forbid(frozenset({3, 4}))
    assert edits.arrays()[3].tolist() == [-float("inf")] * 2
    edits.allow(frozenset({3, 4}))
    assert dict(zip(edits.arrays()[0].tolist(), edits.arrays()[3].tolist(), strict=True)) == {3: 2.0, 4: 0.0}


def test_the_likeliest_tokens_are_listed_under_the_mask():
    logits = torch.arange(V, dtype=torch.float32).repeat(2, 1)
    free, constrained = Sampler(V).sample(logits, [row(temperature=0.0, logprobs=2), row(temperature=0.0, logprobs=3, mask=[1, 2])])
    assert [token for token, _ in free.top] == [49, 48]
    assert [token for token, _ in constrained.top] == [2, 1]
    assert constrained.logprob == pytest.approx(float(torch.tensor([1.0, 2.0]).log_softmax(-1)[1]))


def test_a_draw_depends_on_seed_and_position():
    logits = torch.zeros(1, V)

    def draw(seed: int, position: int) -> int:
        return Sampler(V).sample(logits.clone(), [row(seed=seed, position=position)])[0].token_id

    assert draw(1, 0) == draw(1, 0)
    assert len({draw(1, position) for position in range(30)} | {draw(seed, 0) for seed in range(30)}) > 15


def test_edits_hold_any_number_of_tokens():
    params = SamplingParams(repetition_penalty=2.0, logit_bias={token: float(token) / 10 for token in range(40)})
    edits = RowEdits(params, range(30, 90))
    edits.forbid(frozenset(range(85, 140)))
    order = edits.arrays()[0].argsort()
    token_ids, counts, seen, biases = (array[order] for array in edits.arrays())
    assert token_ids.tolist() == list(range(140)) and not counts.any()
    assert seen.tolist() == [30 <= token < 90 for token in range(140)]
    assert biases.tolist() == pytest.approx([token / 10 if token < 40 else 0 if token < 85 else -math.inf for token in range(140)])


def test_edits_ahead_are_those_of_the_longer_answer_and_change_nothing():
    edits = RowEdits(SamplingParams(frequency_penalty=0.5), [1, 2])
    edits.append(7)
    ahead = edits.along([8, 7, *range(20, 40), 8])
    assert (ahead[0].token_ids.tolist(), ahead[0].counts.tolist()) == ([7], [1])
    assert (ahead[2].token_ids.tolist(), ahead[2].counts.tolist()) == ([7, 8], [2, 1])
    assert ahead[-1].token_ids.tolist() == [7, 8, *range(20, 40)] and ahead[-1].counts.tolist() == [2, 2] + [1] * 20
    assert (edits.arrays().token_ids.tolist(), edits.arrays().counts.tolist()) == ([7], [1])
    assert edits.arrays().seen.tolist() == [True]
