"""The step as it is defined, one row at a time."""

from __future__ import annotations

import torch

from ....fsm_cache.mask_pool import LOOP, MASK, NONE, STATE, TARGET, TOKEN, bucket_of
from .layout import FREE, UNKNOWN, FsmStep, FsmTables


def fsm_step(states: torch.Tensor, token_ids: torch.Tensor, tables: FsmTables) -> FsmStep:
    """See `fsm_step` of the package."""
    targets = [_target(state, token, tables) for state, token in zip(states.tolist(), token_ids.tolist(), strict=True)]
    rows = [_mask_row(target, tables) for target in targets]
    return FsmStep(states=torch.tensor(targets, dtype=torch.int32), mask_rows=torch.tensor(rows, dtype=torch.int32))


def _target(state: int, token: int, tables: FsmTables) -> int:
    if state < 0:
        return state
    loop = int(tables.states[state, LOOP])
    if loop != NONE and int(tables.masks[loop, token >> 5]) >> (token & 31) & 1:
        return state
    bucket = tables.steps[bucket_of(state, token, tables.steps.shape[0])]
    hits = bucket[TARGET][(bucket[STATE] == state) & (bucket[TOKEN] == token)]
    return int(hits[0]) if len(hits) else UNKNOWN


def _mask_row(state: int, tables: FsmTables) -> int:
    if state < 0:
        return FREE if state == FREE else UNKNOWN
    row = int(tables.states[state, MASK])
    return UNKNOWN if row == NONE else row
