from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from sampling_cases import SIZES, assert_same, plain_settings, random_case

from formcast.engine.kernels.masked_sample import RowStatus, masked_sample, reference
from formcast.engine.kernels.masked_sample.philox import philox4x32, uniforms


@pytest.mark.parametrize(("num_rows", "num_tokens"), SIZES)
def test_the_cpu_kernel_agrees_with_the_reference(num_rows, num_tokens):
    for seed in range(20):
        logits, settings = random_case(num_rows, num_tokens, seed)
        edited = logits.clone()
        expected = reference.masked_sample(edited, settings)
        actual = masked_sample(logits, settings)
        assert_same(expected, actual)
        torch.testing.assert_close(logits, edited)


def _counts(logits: torch.Tensor, num_draws: int, **settings) -> np.ndarray:
    draws = torch.from_numpy(uniforms(np.full(num_draws, 7, np.uint64), np.arange(num_draws)))
    rows = logits.repeat(num_draws, 1)
    result = masked_sample(rows, plain_settings(num_draws, len(logits), uniforms=draws, **settings))
    assert (result.statuses == RowStatus.SAMPLED).all()
    return np.bincount(result.token_ids.numpy(), minlength=len(logits))


def _assert_distribution(counts: np.ndarray, expected: np.ndarray) -> None:
    """Chi-squared with a bound that a correct sampler exceeds once in more than a million runs."""
    possible = expected > 0
    assert counts[~possible].sum() == 0
    total, freedom = counts.sum(), possible.sum() - 1
    statistic = ((counts[possible] - total * expected[possible]) ** 2 / (total * expected[possible])).sum()
    assert statistic < freedom + 5 * np.sqrt(2 * freedom) + 15


def test_a_constraint_keeps_the_renormalised_distribution():
    logits = torch.linspace(-1, 2, 40)
    allowed = [1, 3, 8, 20, 31, 32, 39]
    expected = np.zeros(40)
    expected[allowed] = logits[allowed].softmax(-1).numpy()
    _assert_distribution(_counts(logits, 20_000, allowed=allowed), expected)


def test_temperature_and_top_p_shape_the_distribution():
    logits, temperature, top_p = torch.linspace(-2, 2, 30), 0.7, 0.8
    probabilities = (logits / temperature).softmax(-1).numpy()
    order = np.argsort(-probabilities)
    kept = order[: int((np.cumsum(probabilities[order]) < top_p).sum()) + 1]
    expected = np.zeros(30)
    expected[kept] = probabilities[kept] / probabilities[kept].sum()
    draws = 20_000
    counts = _counts(logits, draws, temperatures=torch.full((draws,), temperature), top_ps=torch.full((draws,), top_p))
    _assert_distribution(counts, expected)


@pytest.mark.parametrize("typical_p", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("allowed", [None, [0, 2, 3, 7, 11, 20, 28, 29]], ids=["free", "constrained"])
def test_typical_p_keeps_what_is_near_the_entropy(typical_p, allowed):
    logits, temperature = torch.linspace(-3, 3, 30), 0.8
    ids = np.arange(30) if allowed is None else np.array(allowed)
    probabilities = (logits[ids] / temperature).softmax(-1).double().numpy()
    surprise = np.abs(np.log(probabilities) - (probabilities * np.log(probabilities)).sum())
    order = np.argsort(surprise)
    kept = order[: int((np.cumsum(probabilities[order]) < typical_p).sum()) + 1]
    expected = np.zeros(30)
    expected[ids[kept]] = probabilities[kept] / probabilities[kept].sum()
    draws = 8_000
    settings = {"temperatures": torch.full((draws,), temperature), "typical_ps": torch.full((draws,), typical_p)}
    _assert_distribution(_counts(logits, draws, allowed=allowed, **settings), expected)


@pytest.mark.parametrize("cut", [{"top_ps": 0.7}, {"min_ps": 0.2}, {"top_ks": 3}], ids=str)
def test_a_constrained_row_is_the_free_row_of_the_allowed_tokens(cut):
    """Whatever truncates, what is not allowed might as well not exist."""
    logits, allowed, draws = torch.linspace(2, -2, 40), [1, 3, 8, 20, 31, 32, 39], 2_000
    columns = {
        name: torch.full((draws,), value) if name != "top_ks" else torch.full((draws,), value, dtype=torch.int32)
        for name, value in cut.items()
    }
    constrained = _counts(logits, draws, allowed=allowed, **columns)
    free = _counts(logits[allowed].contiguous(), draws, **columns)
    assert constrained[allowed].tolist() == free.tolist() and constrained.sum() == free.sum()


def test_the_mask_comes_before_truncation():
    """The likeliest token is masked; truncating first would leave nothing."""
    logits = torch.tensor([[9.0, 1.0, 0.5, -9.0]])
    settings = plain_settings(1, 4, allowed=[1, 2], top_ks=torch.tensor([1], dtype=torch.int32), top_ps=torch.tensor([0.1]))
    result = masked_sample(logits, settings)
    assert result.token_ids.tolist() == [1]
    assert result.logprobs[0] == pytest.approx(float(torch.tensor([1.0, 0.5]).log_softmax(-1)[0]), abs=1e-6)


def test_greedy_takes_the_lowest_of_equal_ids():
    result = masked_sample(torch.tensor([[0.0, 2.0, 2.0]]), plain_settings(1, 3, temperatures=torch.zeros(1)))
    assert result.token_ids.tolist() == [1]


def test_equal_logits_at_a_cut_stay_together():
    logits, draws = torch.tensor([1.0, 1.0, 1.0, 0.0]), 3_000
    counts = _counts(logits, draws, top_ks=torch.full((draws,), 2, dtype=torch.int32))
    _assert_distribution(counts, np.array([1, 1, 1, 0]) / 3)


@pytest.mark.parametrize(
    ("row", "allowed", "status"),
    [
        ([0.0, float("nan"), 0.0], None, RowStatus.NOT_A_NUMBER),
        ([0.0, float("inf"), 0.0], None, RowStatus.NOT_A_NUMBER),
        ([0.0, float("nan"), 0.0], [0, 2], RowStatus.SAMPLED),
        ([0.0, float("-inf"), 0.0], None, RowStatus.SAMPLED),
        ([float("-inf")] * 3, None, RowStatus.NO_TOKEN),
        ([0.0, float("-inf"), 0.0], [1], RowStatus.NO_TOKEN),
        ([0.0, 0.0, 0.0], [], RowStatus.NO_TOKEN),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_without_a_token_says_why_and_leaves_its_neighbours_alone(row, allowed, status, temperature):
    logits = torch.tensor([[0.0, 0.0, 5.0], row, [0.0, 0.0, 5.0]])
    settings = plain_settings(3, 3, allowed=allowed, temperatures=torch.full((3,), temperature), uniforms=torch.full((3,), 0.9))
    mask_rows = torch.tensor([-1, -1 if allowed is None else 0, -1], dtype=torch.int32)
    result = masked_sample(logits, dataclasses.replace(settings, mask_rows=mask_rows))
    assert result.statuses.tolist() == [RowStatus.SAMPLED, status, RowStatus.SAMPLED]
    assert result.token_ids[[0, 2]].tolist() == [2, 2]


@pytest.mark.parametrize("uniform", [0.0, 1 - 2.0**-24])
def test_the_ends_of_the_unit_interval_give_possible_tokens(uniform):
    logits = torch.full((1, 50_000), float("-inf"))
    logits[0, 100:30_000] = 0.0
    result = masked_sample(logits, plain_settings(1, 50_000, uniforms=torch.tensor([uniform])))
    assert 100 <= int(result.token_ids[0]) < 30_000


def test_a_row_does_not_depend_on_its_neighbours():
    logits, settings = random_case(7, 3000, 5)
    settings = dataclasses.replace(settings, edits=None)
    together = masked_sample(logits, settings)
    for row in range(7):
        columns = {
            field.name: getattr(settings, field.name)[row : row + 1]
            for field in dataclasses.fields(settings)
            if field.name not in ("edits", "masks")
        }
        alone = masked_sample(logits[row : row + 1].contiguous(), dataclasses.replace(settings, **columns))
        assert (alone.token_ids[0], alone.logprobs[0]) == (together.token_ids[row], together.logprobs[row])


def test_wrong_shapes_are_caught():
    settings = plain_settings(2, 40)
    with pytest.raises(AssertionError):
        masked_sample(torch.zeros(2, 70), settings)
    with pytest.raises(AssertionError):
        masked_sample(torch.zeros(40, 2).t(), settings)


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_published_vectors(counter, key, words):
    """Known answers that come with the authors' Random123."""
    keys = np.array([key[0] | key[1] << 32], np.uint64)
    assert philox4x32(np.array([counter], np.uint32), keys)[0].tolist() == words


def test_draws_depend_on_seed_and_position_only():
    seeds, positions = np.array([1, 2, 1, 1 << 63], np.uint64), np.array([0, 0, 1, 0])
    draws = uniforms(seeds, positions)
    assert len(set(draws.tolist())) == 4 and ((draws >= 0) & (draws < 1)).all()
    assert uniforms(seeds[2:3], positions[2:3])[0] == draws[2]
