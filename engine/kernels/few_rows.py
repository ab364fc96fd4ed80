"""Products of a few rows with a large weight matrix on a CPU: bound by reading the weights once.

Libraries are built for many rows: with 4 to 16 they read slower than memory delivers. Here tiles of 4 rows by 4 outputs are kept in
vector registers while the weights stream by, in the layout in which they are stored. Sums are formed in the same order whatever the
number of rows, so a row's result depends on that row alone.
"""

# pyright: reportCallIssue=false, reportArgumentType=false, reportPrivateImportUsage=false
# Numba's decorators change what a call means.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import torch
from llvmlite import ir
from numba import int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from .parallel import KERNEL, claim, run

import os
PF=int(os.environ.get('PF','0'))
LANES = 16
"""Weights that one step takes; the row length must be a multiple."""
MAX_ROWS = 32
"""Rows from which a library is faster."""
_TILE = 4
_TASK_OUTPUTS = 16
_WORTH_A_TEAM = 60_000
"""Weights from which several threads are worth their start."""
_NO_BIAS = 0

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_REASSOCIATE = ("reassoc", "nsz", "contract")


def _load(builder: ir.IRBuilder, address: ir.Value, offset: ir.Value, kind: ir.Type) -> ir.Value:
    pointer = builder.inttoptr(builder.add(address, offset), kind.as_pointer())
    return builder.load(pointer, align=1)


def _float32_weights(builder: ir.IRBuilder, address: ir.Value, offset: ir.Value) -> ir.Value:
    return _load(builder, address, builder.shl(offset, ir.Constant(offset.type, 2)), _VECTOR)


def _bfloat16_weights(builder: ir.IRBuilder, address: ir.Value, offset: ir.Value) -> ir.Value:
    stored = _load(builder, address, builder.shl(offset, ir.Constant(offset.type, 1)), ir.VectorType(ir.IntType(16), LANES))
    words = builder.zext(stored, ir.VectorType(ir.IntType(32), LANES))
    return builder.bitcast(builder.shl(words, ir.Constant(words.type, [16] * LANES)), _VECTOR)


def _tile(num_rows: int, num_outputs: int, load_weights: Callable[..., ir.Value], weight_bytes: int) -> Any:
    """An intrinsic: `num_rows` rows at `rows`, each of `width` floats, by `num_outputs` rows of weights -> `out`."""

    @intrinsic
    def multiply(typing_context, rows, weights, width, out, out_width):
        def generate(context, builder, signature, arguments):
            rows, weights, width, out, out_width = arguments
            i64 = width.type
            size = builder.mul(width, ir.Constant(i64, 4))
            weight_size = builder.mul(width, ir.Constant(i64, weight_bytes))
            row_at = [builder.add(rows, builder.mul(size, ir.Constant(i64, m))) for m in range(num_rows)]
            weight_at = [builder.add(weights, builder.mul(weight_size, ir.Constant(i64, n))) for n in range(num_outputs)]
            zero = ir.Constant(_VECTOR, [0.0] * LANES)
            sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(num_outputs)] for _ in range(num_rows)]
            fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fma.v{LANES}f32")
            step = ir.Constant(i64, LANES)
            with cgutils.for_range_slice(builder, ir.Constant(i64, 0), width, step, intp=i64) as (offset, _):
                w = [load_weights(builder, at, offset) for at in weight_at]
                for at in weight_at:
                    ahead = builder.add(builder.add(at, builder.mul(weight_size, ir.Constant(i64, PF))), builder.mul(offset, ir.Constant(i64, weight_bytes)))
                    p8 = ir.IntType(8).as_pointer()
                    i32 = ir.IntType(32)
                    pf = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [p8, i32, i32, i32]), "llvm.prefetch.p0")
                    if PF: builder.call(pf, [builder.inttoptr(ahead, p8), i32(0), i32(3), i32(1)])
                for m in range(num_rows):
                    x = _load(builder, row_at[m], builder.shl(offset, ir.Constant(i64, 2)), _VECTOR)
                    for n in range(num_outputs):
                        builder.store(builder.call(fma, [x, w[n], builder.load(sums[m][n])]), sums[m][n])
            reduce = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(_FLOAT, [_FLOAT, _VECTOR]), f"llvm.vector.reduce.fadd.v{LANES}f32"
            )
            for m in range(num_rows):
                target = builder.add(out, builder.mul(out_width, ir.Constant(i64, 4 * m)))
                for n in range(num_outputs):
                    total = builder.call(reduce, [ir.Constant(_FLOAT, -0.0), builder.load(sums[m][n])], fastmath=_REASSOCIATE)
                    place = builder.inttoptr(builder.add(target, ir.Constant(i64, 4 * n)), _FLOAT.as_pointer())
                    builder.store(total, place)
            return context.get_dummy_value()

        return types.void(int64, int64, int64, int64, int64), generate

    return multiply


def _kernel(load_weights: Callable[..., ir.Value], weight_bytes: int) -> Any:
    full = [_tile(rows, _TILE, load_weights, weight_bytes) for rows in (1, 2, 3, 4)]
    single = [_tile(rows, 1, load_weights, weight_bytes) for rows in (1, 2, 3, 4)]
    full_1, full_2, full_3, full_4 = full
    single_1, single_2, single_3, single_4 = single

    @numba.cfunc(KERNEL)
    def multiply(words):
        rows, weights, out, num_rows, num_outputs, width = words[2], words[3], words[4], words[5], words[6], words[7]
        while True:
            task = claim(words)
            if task >= words[1]:
                return
            stop = min((task + 1) * _TASK_OUTPUTS, num_outputs)
            n = task * _TASK_OUTPUTS
            while n < stop:
                w = weights + n * width * weight_bytes
                wide = n + _TILE <= stop
                for m in range(0, num_rows, _TILE):
                    x, y = rows + m * width * 4, out + (m * num_outputs + n) * 4
                    left = num_rows - m
                    if wide:
                        if left >= 4:
                            full_4(x, w, width, y, num_outputs)
                        elif left == 3:
                            full_3(x, w, width, y, num_outputs)
                        elif left == 2:
                            full_2(x, w, width, y, num_outputs)
                        else:
                            full_1(x, w, width, y, num_outputs)
                    elif left >= 4:
                        single_4(x, w, width, y, num_outputs)
                    elif left == 3:
                        single_3(x, w, width, y, num_outputs)
                    elif left == 2:
                        single_2(x, w, width, y, num_outputs)
                    else:
                        single_1(x, w, width, y, num_outputs)
                n += _TILE if wide else 1

    return multiply


_MULTIPLY_FLOAT32 = _kernel(_float32_weights, 4)


def multiply(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    num_rows, width = rows.shape
    num_outputs = weights.shape[0]
    out = torch.empty(num_rows, num_outputs)
    words = (rows.data_ptr(), weights.data_ptr(), out.data_ptr(), num_rows, num_outputs, width)
    run(_MULTIPLY_FLOAT32, -(-num_outputs // _TASK_OUTPUTS), words, parallel=weights.numel() > _WORTH_A_TEAM)
    return out
