"""The GPU kernel without a GPU: its meaning in the interpreter, its code by compiling it for real targets."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from triton_cases import CHECK_COMPILED, run_python

_INTERPRET = """
import torch
from fsm_step_cases import SIZES, random_case
from formcast.engine.kernels.fsm_step import FsmStep, reference, triton

for sizes in SIZES:
    for seed in range(3):
        states, tokens, tables = random_case(*sizes, seed=seed)
        step = FsmStep(states=torch.empty_like(states), mask_rows=torch.empty_like(states))
        triton.fsm_step(states, tokens, tables, step)
        expected = reference.fsm_step(states, tokens, tables)
        assert step.states.tolist() == expected.states.tolist() and step.mask_rows.tolist() == expected.mask_rows.tolist()
"""

_COMPILE = (
    CHECK_COMPILED
    + """
from formcast.engine.kernels.fsm_step.triton import NUM_WARPS, fsm_step_kernel as kernel
from formcast.fsm_cache.mask_pool import WAYS

def kind(name):
    return "*i32" if name.endswith("_ptr") else "constexpr" if name.isupper() else "i32"

for capability in (80, 90):
    check_compiled(kernel, kind, {"WAYS": WAYS}, capability, NUM_WARPS)
"""
)


def test_the_kernel_agrees_with_the_reference_in_the_interpreter():
    run_python(_INTERPRET, TRITON_INTERPRET="1")


@pytest.mark.slow
def test_the_kernel_compiles_for_gpus_without_spilling():
    run_python(_COMPILE)
