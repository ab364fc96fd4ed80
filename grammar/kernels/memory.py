"""How kernels reach the memory of a machine: one array of addresses, and the requests they answer with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from ..kernel_cache import kernel
from ..machine_layout import H_NEED, H_NEED_A, H_NEED_B, NEED

i4 = types.int32
i4_1 = types.Array(types.int32, 1, "C")
u1_1 = types.Array(types.uint8, 1, "C", readonly=True)
# Addresses of nodes, buckets, rows, table, values, frames, transitions, header: unpacking one array costs a call from Python
# 0.2 us, unpacking eight of them 2 us.
MEMORY = types.Array(types.int64, 1, "C")
P = types.CPointer(types.int32)
BYTES = types.CPointer(types.uint8)
SHORTS = types.CPointer(types.int16)
LONGS = types.CPointer(types.int64)


def _pointer(_typing, array):
    """Address of the first element. Inner functions take addresses: an array argument costs seven machine words a call."""

    def codegen(context, builder, signature, args):
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), codegen


def _array_at(kind: Any) -> Any:
    """Makes of an address the array of `kind` that lies there."""

    def at(_typing, address):
        def codegen(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(address), codegen

    return intrinsic(at)


pointer: Any = intrinsic(_pointer)
at_address = _array_at(types.int32)
bytes_at = _array_at(types.uint8)
shorts_at = _array_at(types.int16)
longs_at = _array_at(types.int64)


@kernel(types.UniTuple(P, 8)(MEMORY))
def addresses(memory):
    return (
        at_address(memory[0]), at_address(memory[1]), at_address(memory[2]), at_address(memory[3]),
        at_address(memory[4]), at_address(memory[5]), at_address(memory[6]), at_address(memory[7]),
    )  # fmt: skip


@kernel(i4(P, i4, i4, i4))
def ask(header, what, a, b):
    header[H_NEED] = what
    header[H_NEED_A] = a
    header[H_NEED_B] = b
    return np.int32(NEED)
