"""GPU kernels without a GPU: in the interpreter, and compiled for real targets. Both need a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECK_COMPILED = """
import pathlib, subprocess, tempfile
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

cuobjdump = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"

def check_compiled(kernel, kind, constants, capability, num_warps):
    source = ASTSource(kernel, {name: kind(name) for name in kernel.arg_names}, constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": num_warps})
    assert compiled.metadata.shared <= 48 * 1024
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage = subprocess.run([cuobjdump, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True).stdout
    # Spilled registers would lie on the stack.
    assert "REG:" in usage and "STACK:0 " in usage, usage
"""
"""Defines `check_compiled(kernel, kind of an argument by name, constants, capability, num_warps)`."""


def run_python(code: str, **environment: str) -> None:
    """Runs code that can import from this folder."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "TRITON_DEFAULT_FP_FUSION": "1", "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
