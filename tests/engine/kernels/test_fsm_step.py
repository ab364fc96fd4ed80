from __future__ import annotations

import pytest
import torch
from fsm_step_cases import SIZES, random_case

from formcast.engine.kernels.fsm_step import FREE, UNKNOWN, FsmTables, fsm_step, reference


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_cpu_kernel_agrees_with_the_reference(sizes):
    for seed in range(20):
        states, tokens, tables = random_case(*sizes, seed=seed)
        expected, actual = reference.fsm_step(states, tokens, tables), fsm_step(states, tokens, tables)
        assert actual.states.tolist() == expected.states.tolist()
        assert actual.mask_rows.tolist() == expected.mask_rows.tolist()


def test_loops_come_first_then_known_transitions_and_all_else_is_a_fault():
    masks = torch.zeros(2, 1, dtype=torch.int32)
    masks[1, 0] = 0b1000  # token 3 leads back
    states = torch.tensor([[0, 1], [-1, -1]], dtype=torch.int32)
    steps = torch.full((1, 3, 16), -1, dtype=torch.int32)
    steps[0, :, 5] = torch.tensor([0, 4, 1])
    tables = FsmTables(masks=masks, states=states, steps=steps)
    rows = torch.tensor([0, 0, 0, FREE, UNKNOWN], dtype=torch.int32)
    step = fsm_step(rows, torch.tensor([3, 4, 5, 3, 3], dtype=torch.int32), tables)
    assert step.states.tolist() == [0, 1, UNKNOWN, FREE, UNKNOWN]
    assert step.mask_rows.tolist() == [0, UNKNOWN, UNKNOWN, FREE, UNKNOWN]


def test_wrong_shapes_and_types_are_caught():
    states, tokens, tables = random_case(*SIZES[1], seed=0)
    with pytest.raises(AssertionError):
        fsm_step(states.long(), tokens, tables)
    with pytest.raises(AssertionError):
        fsm_step(states[:1], tokens, tables)
