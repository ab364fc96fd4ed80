"""The GPU kernel without a GPU: its meaning in the interpreter, its code by compiling it for real targets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

_SUPPORT = Path(__file__).parents[2] / "support"

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
"""

_COMPILE = """
import pathlib, subprocess, tempfile
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from formcast.engine.kernels.masked_sample.triton import BLOCK, EDIT_BLOCK, NUM_WARPS, masked_sample_kernel as kernel

FLOATS = {"logits", "temperatures", "min_ps", "top_ps", "typical_ps", "uniforms", "biases", "repetition", "frequency", "presence", "logprobs"}
BOOLS = {"constrained", "seen"}

def kind(name):
    if not name.endswith("_ptr"):
        return "constexpr" if name.isupper() else "i32"
    field = name.removesuffix("_ptr")
    return "*fp32" if field in FLOATS else "*i1" if field in BOOLS else "*i32"

signature = {name: kind(name) for name in kernel.arg_names}
cuobjdump = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
for capability, has_edits in ((80, True), (90, True), (90, False)):
    constants = {"HAS_EDITS": has_edits, "BLOCK": BLOCK, "EDIT_BLOCK": EDIT_BLOCK}
    target = GPUTarget("cuda", capability, 32)
    compiled = triton.compile(ASTSource(kernel, signature, constants), target=target, options={"num_warps": NUM_WARPS})
    assert compiled.metadata.shared <= 48 * 1024
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage = subprocess.run([cuobjdump, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True).stdout
    # Spilled registers would lie on the stack.
    assert "REG:" in usage and "STACK:0 " in usage, usage
"""


def _run(code: str, **environment: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(_SUPPORT), "TRITON_DEFAULT_FP_FUSION": "1", "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def test_the_kernel_agrees_with_the_reference_in_the_interpreter():
    _run(_INTERPRET, TRITON_INTERPRET="1")


def test_the_kernel_compiles_for_gpus_without_spilling():
    _run(_COMPILE)
