"""Compiled CPU kernels on PyTorch's own threads.

Between two matrix products, PyTorch's OpenMP threads spin for a while, waiting for more. A kernel with threads of its own
would fight them for the cores, which costs more than it gains. So kernels are run by the same team: libgomp's entry for
parallel regions is called with the address of a compiled function. Where PyTorch has another runtime, and in forked processes, kernels
run on the calling thread alone.

A kernel is a `numba.cfunc` over a block of 64-bit words. Word 0 counts the tasks that were claimed, word 1 says how many
there are; the rest is up to the kernel: addresses, sizes, and floats as their bits.
"""

from __future__ import annotations

import ctypes
import functools
import os
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
import torch
from llvmlite import ir
from numba import int64, types
from numba.extending import intrinsic

KERNEL = types.void(types.CPointer(int64))
"""Signature of a kernel."""


@intrinsic
def claim(typing_context, words):
    """The next task, counted atomically in word 0: task numbers from 0 on, also beyond the last."""

    def generate(context, builder, signature, arguments):
        return builder.atomic_rmw("add", arguments[0], ir.Constant(ir.IntType(64), 1), "monotonic")

    return int64(types.CPointer(int64)), generate


@intrinsic
def pointer(typing_context, address):
    """The pointer of an address, for `numba.carray`."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(int64), generate


@numba.njit(types.float32(int64), inline="always")
def float_of(word):
    """The float32 whose bits a word has."""
    return np.int32(word).view(np.float32)


@functools.lru_cache(256)
def bits_of(number: float) -> int:
    """The bits of a number as float32."""
    return int(np.float32(number).view(np.int32))


def run(kernel: Any, num_tasks: int, words: Sequence[int], *, parallel: bool) -> None:
    """Runs all tasks of a kernel, without the interpreter's lock.

    Args:
        kernel: a `numba.cfunc` of signature `KERNEL`.
        words: what follows the header.
        parallel: whether the work is worth more than one thread.
    """
    block = array("q", (0, num_tasks, *words))
    address, _ = block.buffer_info()
    num_threads = min(torch.get_num_threads(), num_tasks) if parallel else 1
    start = _start_team() if num_threads > 1 else None
    if start is None:
        _function(kernel)(address)
    else:
        start(kernel.address, address, num_threads, 0)


def _run_alone() -> None:
    """A forked process has none of its parent's threads: a team would wait for them for ever, here and in PyTorch."""
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_run_alone)


@functools.cache
def _function(kernel: Any) -> Callable[[int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(kernel.address)


@functools.cache
def _start_team() -> Callable[[int, int, int, int], None] | None:
    """`GOMP_parallel(function, data, num_threads, flags)` of the libgomp that PyTorch runs on, if it does."""
    if not torch.backends.openmp.is_available():
        return None
    try:
        # PyTorch has loaded it already, under this name: no second copy is loaded.
        start = ctypes.CDLL("libgomp.so.1").GOMP_parallel
    except (OSError, AttributeError):
        return None
    start.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    start.restype = None
    return start
