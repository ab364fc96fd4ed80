"""Products of a few rows with a large weight matrix on a CPU: bound by reading the weights once.

Libraries are built for many rows: with 4 to 16 they read the weights slower than memory delivers them. Here tiles of rows by outputs
are kept in vector registers while the weights stream by, in the layout in which they are stored, and the next tile's weights are
fetched ahead. Sums are formed in one order whatever the number of rows, so a row's result depends on that row alone.
"""

# pyright: reportCallIssue=false, reportArgumentType=false, reportPrivateImportUsage=false, reportReturnType=false
# Numba's decorators change what a call means.

from __future__ import annotations

from typing import Any

import numba
import torch
from llvmlite import binding, ir
from numba import int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from .parallel import KERNEL, claim, run

MAX_ROWS = 32
"""Rows from which a library is faster."""

_WIDE = binding.get_host_cpu_features().get("avx512f", False)
_LANES = 16 if _WIDE else 8
_TILE_ROWS = 4
_TILE_OUTPUTS = 4 if _WIDE else 2
"""Rows times outputs sums stay in registers: 32 of 16 lanes, or 16 of 8."""
_TASK_OUTPUTS = 16
_WORTH_A_TEAM = 60_000
"""Weights from which several threads are worth their start."""

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, _LANES)
_BYTES = ir.IntType(8).as_pointer()
_WORD = ir.IntType(64)
_FLAG = ir.IntType(32)
_READ, _KEEP_IN_ALL_CACHES, _DATA = _FLAG(0), _FLAG(3), _FLAG(1)


def supports(weights: torch.Tensor) -> bool:
    """Whether weights [N, K] have the form that `multiply` takes."""
    num_outputs, width = weights.shape
    plain = weights.dtype == torch.float32 and weights.device.type == "cpu" and weights.is_contiguous()
    return plain and width % _LANES == 0 and num_outputs % _TILE_OUTPUTS == 0


def multiply(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """rows [T, K] times the transposed weights [N, K] -> [T, N], all float32 and contiguous, on a CPU."""
    num_rows, width = rows.shape
    num_outputs = weights.shape[0]
    assert supports(weights) and width == weights.shape[1] and rows.dtype == torch.float32 and rows.is_contiguous()
    out = torch.empty(num_rows, num_outputs)
    words = (rows.data_ptr(), weights.data_ptr(), out.data_ptr(), num_rows, num_outputs, width)
    run(_multiply, -(-num_outputs // _TASK_OUTPUTS), words, parallel=weights.numel() > _WORTH_A_TEAM)
    return out


def _tile(num_rows: int) -> Any:
    """An intrinsic (rows, weights, width, out, out_width): `num_rows` rows of `width` floats by `_TILE_OUTPUTS` rows of weights."""

    @intrinsic
    def multiply_tile(typing_context, rows, weights, width, out, out_width):
        def generate(context, builder, signature, arguments):
            _Tile(builder, num_rows, *arguments).emit()
            return context.get_dummy_value()

        return types.void(int64, int64, int64, int64, int64), generate

    return multiply_tile


class _Tile:
    """The code of one tile.

    Args:
        rows, weights, out: addresses in 64-bit registers.
        width, out_width: floats from one row to the next.
    """

    def __init__(
        self,
        builder: ir.IRBuilder,
        num_rows: int,
        rows: ir.Value,
        weights: ir.Value,
        width: ir.Value,
        out: ir.Value,
        out_width: ir.Value,
    ):
        self._builder = builder
        self._num_rows = num_rows
        self._width = width
        self._rows = [self._ahead(rows, width, m) for m in range(num_rows)]
        self._weights = [self._ahead(weights, width, n) for n in range(_TILE_OUTPUTS)]
        self._next_weights = [self._ahead(weights, width, n + _TILE_OUTPUTS) for n in range(_TILE_OUTPUTS)]
        self._out = [self._ahead(out, out_width, m) for m in range(num_rows)]

    def emit(self) -> None:
        builder = self._builder
        zero = ir.Constant(_VECTOR, [0.0] * _LANES)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(_TILE_OUTPUTS)] for _ in range(self._num_rows)]
        fma = self._function(f"llvm.fma.v{_LANES}f32", _VECTOR, [_VECTOR] * 3)
        with cgutils.for_range_slice(builder, _WORD(0), self._width, _WORD(_LANES), intp=_WORD) as (column, _):
            weights = [builder.load(self._at(address, column, _VECTOR), align=4) for address in self._weights]
            for address in self._next_weights:
                self._prefetch(address, column)
            for address, row_sums in zip(self._rows, sums, strict=True):
                x = builder.load(self._at(address, column, _VECTOR), align=4)
                for w, total in zip(weights, row_sums, strict=True):
                    builder.store(builder.call(fma, [x, w, builder.load(total)]), total)
        self._store(sums)

    def _store(self, sums: list[list[ir.Value]]) -> None:
        builder = self._builder
        add_lanes = self._function(f"llvm.vector.reduce.fadd.v{_LANES}f32", _FLOAT, [_FLOAT, _VECTOR])
        for address, row_sums in zip(self._out, sums, strict=True):
            for n, total in enumerate(row_sums):
                lanes = builder.load(total)
                builder.store(builder.call(add_lanes, [_FLOAT(-0.0), lanes], fastmath=("reassoc",)), self._at(address, _WORD(n), _FLOAT))

    def _prefetch(self, address: ir.Value, column: ir.Value) -> None:
        """A line of the next tile. Beyond the last tile nothing is read: prefetching never faults."""
        prefetch = self._function("llvm.prefetch.p0", ir.VoidType(), [_BYTES, _FLAG, _FLAG, _FLAG])
        self._builder.call(prefetch, [self._at(address, column, ir.IntType(8)), _READ, _KEEP_IN_ALL_CACHES, _DATA])

    def _ahead(self, address: ir.Value, width: ir.Value, count: int) -> ir.Value:
        return self._builder.add(address, self._builder.mul(width, _WORD(4 * count)))

    def _at(self, address: ir.Value, column: ir.Value, kind: ir.Type) -> ir.Value:
        return self._builder.inttoptr(self._builder.add(address, self._builder.mul(column, _WORD(4))), kind.as_pointer())

    def _function(self, name: str, result: ir.Type, arguments: list[ir.Type]) -> ir.Value:
        return cgutils.get_or_insert_function(self._builder.module, ir.FunctionType(result, arguments), name)


_tile_1, _tile_2, _tile_3, _tile_4 = (_tile(num_rows) for num_rows in range(1, _TILE_ROWS + 1))


@numba.cfunc(KERNEL, cache=True)
def _multiply(words):
    rows, weights, out, num_rows, num_outputs, width = words[2], words[3], words[4], words[5], words[6], words[7]
    while True:
        task = claim(words)
        if task >= words[1]:
            return
        for n in range(task * _TASK_OUTPUTS, min((task + 1) * _TASK_OUTPUTS, num_outputs), _TILE_OUTPUTS):
            w = weights + n * width * 4
            for m in range(0, num_rows, _TILE_ROWS):
                x, y, left = rows + m * width * 4, out + (m * num_outputs + n) * 4, num_rows - m
                if left >= 4:
                    _tile_4(x, w, width, y, num_outputs)
                elif left == 3:
                    _tile_3(x, w, width, y, num_outputs)
                elif left == 2:
                    _tile_2(x, w, width, y, num_outputs)
                else:
                    _tile_1(x, w, width, y, num_outputs)
