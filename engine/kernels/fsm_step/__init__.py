"""Where tokens lead in the automata of their grammars, for states that are resident: the one entry for all devices."""

from __future__ import annotations

import torch

from .layout import FREE, UNKNOWN, FsmStep, FsmTables

__all__ = ["FREE", "UNKNOWN", "FsmStep", "FsmTables", "fsm_step"]


def fsm_step(states: torch.Tensor, token_ids: torch.Tensor, tables: FsmTables) -> FsmStep:
    """One token per row. What is not in the tables is UNKNOWN, which is never wrong and says nothing about whether the token is allowed.

    Args:
        states: [N] int32: resident states, FREE or UNKNOWN.
        token_ids: [N] int32, from 0 to V - 1.
        tables: on the same device.
    """
    _check(states, token_ids, tables)
    step = FsmStep(states=torch.empty_like(states), mask_rows=torch.empty_like(states))
    if states.device.type == "cpu":
        from . import cpu

        arrays = (states, token_ids, tables.masks, tables.states, tables.steps, step.states, step.mask_rows)
        cpu.fsm_step(*(array.numpy() for array in arrays))
    else:
        from . import triton

        triton.fsm_step(states, token_ids, tables, step)
    return step


def _check(states: torch.Tensor, token_ids: torch.Tensor, tables: FsmTables) -> None:
    assert states.dim() == 1 and states.shape == token_ids.shape
    assert tables.masks.dim() == 2 and tables.states.shape[1:] == (2,)
    num_buckets, width, ways = tables.steps.shape
    assert width == 3 and num_buckets & (num_buckets - 1) == 0 and ways & (ways - 1) == 0
    for tensor in (states, token_ids, tables.masks, tables.states, tables.steps):
        assert tensor.dtype == torch.int32 and tensor.is_contiguous()
