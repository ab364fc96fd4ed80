"""The GPU kernels without a GPU: their meaning in the interpreter, their code by compiling it for real targets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

_SUPPORT = Path(__file__).parents[2] / "support"

_INTERPRET = """
import itertools, sys
import torch
from attention_cases import BATCHES, SCALES, SHAPES, case
from formcast.engine.kernels.paged_attention import reference, triton

triton.SPLIT_KEYS = 64  # parts of short sequences; those of real ones would take the interpreter minutes
dtype = getattr(torch, sys.argv[1])
tolerance = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
cases = list(itertools.product(BATCHES.values(), SHAPES, SCALES))
# Odd steps, so that each batch meets each shape and each scale. The interpreter takes its time.
for chunks, shape, scale in cases[:: 9 if dtype == torch.float32 else 17]:
    queries, keys, values, cache, batch = case(chunks, dtype=dtype, **shape)
    triton.write(keys, values, cache, batch)
    expected_cache = case(chunks, dtype=dtype, **shape)[3]
    reference.write(keys, values, expected_cache, batch)
    assert torch.equal(cache.keys.nan_to_num(9), expected_cache.keys.nan_to_num(9))
    assert torch.equal(cache.values.nan_to_num(9), expected_cache.values.nan_to_num(9))
    strided = queries.transpose(0, 1).contiguous().transpose(0, 1)
    actual = triton.attend(strided, cache, batch, scale)
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.float(), reference.attend(queries, cache, batch, scale), atol=tolerance, rtol=tolerance)
"""

_COMPILE = """
import itertools, pathlib, subprocess, tempfile
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from formcast.engine.kernels.paged_attention.triton import TileShape, attend_kernel, combine_kernel, write_kernel

SHARED_BYTES = {80: 163 * 1024, 90: 227 * 1024}
cuobjdump = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"

def check(kernel, stored, floats, constants, capability, num_warps):
    def kind(name):
        if name.isupper():
            return "constexpr"
        if not name.endswith("_ptr"):
            return "fp32" if name in floats else "i32"
        name = name.removesuffix("_ptr")
        return "*fp32" if name in {"partial", "logs"} else "*i32" if "_" in name or name in {"tables", "positions"} else f"*{stored}"

    source = ASTSource(kernel, {name: kind(name) for name in kernel.arg_names}, constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": num_warps})
    assert compiled.metadata.shared <= SHARED_BYTES[capability], compiled.metadata.shared
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage = subprocess.run([cuobjdump, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True).stdout
    # Spilled registers would lie on the stack.
    assert "REG:" in usage and "STACK:0 " in usage, (stored, constants, capability, usage)

for capability, stored, (longest, groups, dim) in itertools.product(
    (80, 90), ("bf16", "fp16"), ((1, 4, 128), (512, 4, 128), (512, 3, 64), (512, 2, 256))
):
    shape = TileShape.of(longest, groups, dim, dim)
    constants = {name.upper(): value for name, value in shape._asdict().items()}
    constants |= {"SHARERS": groups, "KEY_WIDTH": dim, "VALUE_WIDTH": dim, "BLOCK_SIZE": 16}
    constants |= {"HAS_SOFTCAP": dim == 256, "DOT": {"bf16": tl.bfloat16, "fp16": tl.float16}[stored]}
    for split in (0, 512) if longest == 1 else (0,):
        check(attend_kernel, stored, {"scaling", "softcap"}, constants | {"SPLIT": split}, capability, shape.num_warps)
    for splits in (2, 64):
        check(combine_kernel, stored, set(), {"SPLITS": splits, "VALUE_DIM": dim, "VALUE_WIDTH": dim}, capability, 4)
check(write_kernel, "bf16", set(), {"DIM": 128}, 90, 1)
"""


def _run(code: str, *arguments: str, **environment: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(_SUPPORT), "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("dtype", ["float32", *(pytest.param(name, marks=pytest.mark.slow) for name in ("float16", "bfloat16"))])
def test_the_kernels_agree_with_the_reference_in_the_interpreter(dtype):
    _run(_INTERPRET, dtype, TRITON_INTERPRET="1")


def test_the_kernels_compile_for_gpus_without_spilling():
    _run(_COMPILE)
