"""Random tables for the versions of `fsm_step`."""

from __future__ import annotations

import numpy as np
import torch

from formcast.engine.kernels.fsm_step import FsmTables
from formcast.fsm_cache.mask_pool import STATE, TARGET, TOKEN, WAYS, bucket_of

SIZES = ((1, 1, 1, 1), (5, 3, 33, 4), (37, 40, 1000, 64), (16, 500, 4097, 256))
"""(N rows, S states, V tokens, B buckets)."""


def random_case(
    num_rows: int, num_states: int, num_tokens: int, num_buckets: int, seed: int
) -> tuple[torch.Tensor, torch.Tensor, FsmTables]:
    """States, tokens and tables: a mix of free rows, faults, loops, known and unknown transitions, and rows that are gone."""
    rng = np.random.default_rng(seed)
    masks = rng.integers(-(2**31), 2**31, (7, -(-num_tokens // 32))).astype(np.int32)
    states = rng.integers(-1, 7, (num_states, 2)).astype(np.int32)
    steps = np.full((num_buckets, 3, WAYS), -1, np.int32)
    pairs = {(int(rng.integers(num_states)), int(rng.integers(num_tokens))) for _ in range(3 * num_rows)}
    filled = [0] * num_buckets
    for state, token in sorted(pairs):
        bucket = bucket_of(state, token, num_buckets)
        if filled[bucket] < WAYS:
            steps[bucket, [STATE, TOKEN, TARGET], filled[bucket]] = state, token, rng.integers(num_states)
            filled[bucket] += 1
    known = sorted(pairs)
    rows, tokens = np.zeros(num_rows, np.int32), np.zeros(num_rows, np.int32)
    for row in range(num_rows):
        rows[row], tokens[row] = (
            known[rng.integers(len(known))] if rng.random() < 0.6 else (rng.integers(-2, num_states), rng.integers(num_tokens))
        )
    tables = FsmTables(masks=torch.from_numpy(masks), states=torch.from_numpy(states), steps=torch.from_numpy(steps))
    return torch.from_numpy(rows), torch.from_numpy(tokens), tables
