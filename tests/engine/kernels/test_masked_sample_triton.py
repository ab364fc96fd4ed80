"""The GPU kernel without a GPU: its meaning in the interpreter, its code by compiling it for real targets."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from triton_cases import CHECK_COMPILED, run_python

_INTERPRET = """
import torch
from sampling_cases import SIZES, assert_same, plain_settings, random_case
from formcast.engine.kernels.masked_sample import reference, triton

for num_rows, num_tokens in SIZES[:-1]:
    for seed in range(2):
        logits, settings = random_case(num_rows, num_tokens, seed)
        edited = logits.clone()
        expected = reference.masked_sample(edited, settings)
        assert_same(expected, triton.masked_sample(logits, settings))
        torch.testing.assert_close(logits, edited)

nan = torch.tensor([[0.0, float("nan")], [float("-inf")] * 2, [0.0, 9.0]])
assert triton.masked_sample(nan, plain_settings(3, 2)).statuses.tolist() == [2, 1, 0]
held = plain_settings(2, 2, mask_rows=torch.tensor([-2, -1], dtype=torch.int32))
assert triton.masked_sample(torch.zeros(2, 2), held).statuses.tolist() == [3, 0]
"""

_COMPILE = (
    CHECK_COMPILED
    + """
from formcast.engine.kernels.masked_sample.triton import BLOCK, EDIT_BLOCK, NUM_WARPS, masked_sample_kernel as kernel

FLOATS = {"logits", "temperatures", "min_ps", "top_ps", "typical_ps", "uniforms", "biases", "repetition", "frequency", "presence", "logprobs"}

def kind(name):
    if not name.endswith("_ptr"):
        return "constexpr" if name.isupper() else "i32"
    field = name.removesuffix("_ptr")
    return "*fp32" if field in FLOATS else "*i1" if field == "seen" else "*i32"

for capability, has_edits in ((80, True), (90, True), (90, False)):
    check_compiled(kernel, kind, {"HAS_EDITS": has_edits, "BLOCK": BLOCK, "EDIT_BLOCK": EDIT_BLOCK}, capability, NUM_WARPS)
"""
)


def test_the_kernel_agrees_with_the_reference_in_the_interpreter():
    run_python(_INTERPRET, TRITON_INTERPRET="1")


def test_the_kernel_compiles_for_gpus_without_spilling():
    run_python(_COMPILE)
