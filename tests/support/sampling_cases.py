"""Random inputs for the versions of `masked_sample`, and how their outcomes are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from formcast.engine.kernels.masked_sample import LogitEdits, RowStatus, SampleResult, SampleSettings

SIZES = ((1, 1), (1, 5), (7, 33), (3, 1000), (2, 4097), (2, 9000))
"""(R, V): below, at and above the words of a mask and the blocks of a kernel."""


def random_case(num_rows: int, num_tokens: int, seed: int) -> tuple[torch.Tensor, SampleSettings]:
    """Logits and settings that mix every feature."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((num_rows, num_tokens)).astype(np.float32) * np.float32(rng.choice([0.5, 3, 10]))
    if rng.random() < 0.3:
        logits = np.round(logits)  # ties
    masks = _random_words(rng, num_rows, num_tokens)
    for _ in range(rng.integers(0, 4)):
        masks &= _random_words(rng, num_rows, num_tokens)

    def choice(values: list[float]) -> torch.Tensor:
        return torch.from_numpy(rng.choice(values, num_rows).astype(np.float32))

    settings = SampleSettings(
        masks=torch.from_numpy(masks),
        mask_rows=torch.from_numpy(rng.choice([-2, *[-1] * num_rows, *range(num_rows)], num_rows).astype(np.int32)),
        temperatures=choice([0, 0.3, 1, 2]),
        min_ps=choice([0, 0, 0.05]),
        top_ks=torch.from_numpy(rng.choice([0, 0, 1, 5, 50, 2 * num_tokens], num_rows).astype(np.int32)),
        top_ps=choice([1, 1, 0.9, 0.3]),
        typical_ps=choice([1, 1, 0.9, 0.2]),
        uniforms=torch.from_numpy(rng.random(num_rows).astype(np.float32)),
        edits=_random_edits(rng, num_rows, num_tokens) if rng.random() < 0.7 else None,
    )
    return torch.from_numpy(logits), settings


def assert_same(expected: SampleResult, actual: SampleResult) -> None:
    """Equal statuses; equal tokens and close log-probabilities where there is a token."""
    assert actual.statuses.tolist() == expected.statuses.tolist()
    sampled = expected.statuses == RowStatus.SAMPLED
    assert actual.token_ids[sampled].tolist() == expected.token_ids[sampled].tolist()
    torch.testing.assert_close(actual.logprobs[sampled], expected.logprobs[sampled], atol=3e-5, rtol=1e-5)


def plain_settings(num_rows: int, num_tokens: int, *, allowed: list[int] | None = None, **overrides: torch.Tensor) -> SampleSettings:
    """Temperature 1 and nothing else; `allowed` constrains every row to these tokens."""
    masks = np.zeros((1, -(-num_tokens // 32)), np.uint32)
    for token in allowed or ():
        masks[:, token // 32] |= np.uint32(1 << (token % 32))
    fields: dict[str, Any] = {
        "masks": torch.from_numpy(masks.view(np.int32)),
        "mask_rows": torch.full((num_rows,), -1 if allowed is None else 0, dtype=torch.int32),
        "temperatures": torch.ones(num_rows),
        "min_ps": torch.zeros(num_rows),
        "top_ks": torch.zeros(num_rows, dtype=torch.int32),
        "top_ps": torch.ones(num_rows),
        "typical_ps": torch.ones(num_rows),
        "uniforms": torch.full((num_rows,), 0.5),
    }
    return SampleSettings(**{**fields, **overrides})


def _random_words(rng: np.random.Generator, num_rows: int, num_tokens: int) -> np.ndarray:
    return rng.integers(-(2**31), 2**31, (num_rows, -(-num_tokens // 32))).astype(np.int32)


def _random_edits(rng: np.random.Generator, num_rows: int, num_tokens: int) -> LogitEdits:
    sizes = rng.integers(0, min(num_tokens, 20) + 1, num_rows)
    counts = rng.integers(0, 4, sizes.sum()).astype(np.int32)
    rows = [rng.permutation(num_tokens)[:size] for size in sizes]
    return LogitEdits(
        offsets=torch.from_numpy(np.cumsum([0, *sizes]).astype(np.int32)),
        token_ids=torch.from_numpy(np.concatenate(rows).astype(np.int32)),
        counts=torch.from_numpy(counts),
        seen=torch.from_numpy((counts > 0) | (rng.random(len(counts)) < 0.5)),
        biases=torch.from_numpy(rng.choice([0, 1.5, -2, -np.inf], len(counts)).astype(np.float32)),
        repetition=torch.from_numpy(rng.choice([1, 1.3], num_rows).astype(np.float32)),
        frequency=torch.from_numpy(rng.choice([0, 0.7], num_rows).astype(np.float32)),
        presence=torch.from_numpy(rng.choice([0, 0.4], num_rows).astype(np.float32)),
    )
