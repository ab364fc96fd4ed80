"""The step on a GPU: one program per row, a bucket of transitions is one load."""

# pyright: reportCallIssue=false, reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# Triton's decorators change what a call means.

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .layout import FsmStep, FsmTables

NUM_WARPS = 1


@triton.jit
def fsm_step_kernel(
    states_ptr, token_ids_ptr, masks_ptr, table_ptr, steps_ptr, targets_ptr, mask_rows_ptr, mask_width, num_buckets, WAYS: tl.constexpr
):
    """One row; the pointers are the states and tokens, the fields of `FsmTables` and those of `FsmStep`."""
    row = tl.program_id(0)
    state = tl.load(states_ptr + row)
    token = tl.load(token_ids_ptr + row)
    target = state
    if state >= 0:
        loop = tl.load(table_ptr + state.to(tl.int64) * 2 + 1)
        returns = tl.zeros((), tl.int32)
        if loop >= 0:
            word = tl.load(masks_ptr + loop.to(tl.int64) * mask_width + (token >> 5))
            returns = (word >> (token & 31)) & 1
        if returns == 0:
            # `mask_pool.bucket_of`: products of 32 bits are cut off
            mixed = (state.to(tl.uint32) * 0x9E3779B1) ^ (token.to(tl.uint32) * 0x85EBCA77)
            bucket = ((mixed * 0x2C1B3C6D) >> 12) & (num_buckets - 1)
            ways = steps_ptr + bucket.to(tl.int64) * (3 * WAYS) + tl.arange(0, WAYS)
            hit = (tl.load(ways) == state) & (tl.load(ways + WAYS) == token)
            target = tl.max(tl.where(hit, tl.load(ways + 2 * WAYS), -2), axis=0)
    mask_row = target
    if target >= 0:
        mask_row = tl.load(table_ptr + target.to(tl.int64) * 2)
        mask_row = tl.where(mask_row == -1, -2, mask_row)
    tl.store(targets_ptr + row, target)
    tl.store(mask_rows_ptr + row, mask_row)


def fsm_step(states: torch.Tensor, token_ids: torch.Tensor, tables: FsmTables, step: FsmStep) -> None:
    """See `fsm_step` of the package; fills `step`."""
    num_rows, num_buckets, ways = states.shape[0], tables.steps.shape[0], tables.steps.shape[2]
    if num_rows:
        fsm_step_kernel[(num_rows,)](
            states, token_ids, tables.masks, tables.states, tables.steps, step.states, step.mask_rows,
            tables.masks.shape[1], num_buckets, WAYS=ways, num_warps=NUM_WARPS,
        )  # fmt: skip
