"""Products of a few rows with a large weight matrix on a CPU: bound by reading the weights once.

Libraries are built for many rows: with few they read the weights slower than memory delivers them. Here tiles of rows by outputs are
kept in vector registers while the weights stream by, in the layout in which they are stored, and the next tile's weights are fetched
ahead. Sums are formed in one order whatever the number of rows, so a row's result depends on that row alone.
"""

# pyright: reportCallIssue=false, reportArgumentType=false, reportPrivateImportUsage=false, reportReturnType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false
# Numba's decorators change what a call means, and llvmlite is not typed.

from __future__ import annotations

from typing import Any, Protocol

import numba
import torch
from llvmlite import binding, ir
from numba import int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from .parallel import KERNEL, claim, run

MAX_ROWS = 32
"""Rows beyond which a library is faster."""

_FEATURES = binding.get_host_cpu_features()
_WIDE = _FEATURES.get("avx512f", False)
VECTOR_BYTES = 64 if _WIDE else 32
"""Rows and rows of weights are multiples of this."""
_TILE_ROWS = 4
TILE_OUTPUTS = 4 if _WIDE else 2
"""Outputs are multiples of this. Rows times outputs sums stay in registers: 32 of 64 bytes, or 16 of 32."""
_TASK_OUTPUTS = 16
_WORTH_A_TEAM = 200_000
"""Bytes of weights from which several threads are worth their start."""
_FLOAT32, _INT8 = 0, 1
_NO_OFFSETS = 0

_BYTE, _HALF, _WORD, _LONG, _FLOAT = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
_BYTES = ir.VectorType(_BYTE, VECTOR_BYTES)
_FLOATS = ir.VectorType(_FLOAT, VECTOR_BYTES // 4)
_INTEGERS = ir.VectorType(_WORD, VECTOR_BYTES // 4)
_READ, _KEEP_IN_ALL_CACHES, _DATA = _WORD(0), _WORD(3), _WORD(1)


def supports(weights: torch.Tensor) -> bool:
    """Whether float32 weights [N, K] have the form that `multiply` takes."""
    num_outputs, width = weights.shape
    plain = weights.dtype == torch.float32 and weights.device.type == "cpu" and weights.is_contiguous()
    return plain and width * 4 % VECTOR_BYTES == 0 and num_outputs % TILE_OUTPUTS == 0


def multiply(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """rows [T, K] times the transposed weights [N, K] -> [T, N], all float32 and contiguous, on a CPU."""
    assert supports(weights) and rows.dtype == torch.float32
    return _run(_FLOAT32, rows, weights, torch.float32, _NO_OFFSETS)


def multiply_int8(rows: torch.Tensor, weights: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Exact products of 8-bit integers: rows [T, K] times the transposed weights [N, K] -> [T, N] int32.

    Args:
        rows: uint8, the integers plus `ROW_OFFSET`, modulo 256; contiguous, on a CPU; K a multiple of `VECTOR_BYTES`.
        weights: int8, likewise; N a multiple of `TILE_OUTPUTS`.
        offsets: `int8_offsets(weights)`
    """
    assert rows.dtype == torch.uint8 and weights.dtype == torch.int8 and offsets.dtype == torch.int32
    assert weights.shape[1] % VECTOR_BYTES == 0 and weights.shape[0] % TILE_OUTPUTS == 0 and weights.is_contiguous()
    return _run(_INT8, rows, weights, torch.int32, offsets.data_ptr())


def int8_offsets(weights: torch.Tensor) -> torch.Tensor:
    """What `ROW_OFFSET` adds to the sums over weights [N, K]: [N] int32."""
    return weights.sum(dim=1, dtype=torch.int32) * ROW_OFFSET


def _run(kind: int, rows: torch.Tensor, weights: torch.Tensor, dtype: torch.dtype, offsets: int) -> torch.Tensor:
    assert rows.shape[1] == weights.shape[1] and rows.is_contiguous()
    num_rows, num_outputs = rows.shape[0], weights.shape[0]
    out = torch.empty(num_rows, num_outputs, dtype=dtype)
    row_bytes = rows.shape[1] * rows.itemsize
    words = (rows.data_ptr(), weights.data_ptr(), out.data_ptr(), num_rows, num_outputs, row_bytes, kind, offsets)
    run(_multiply, -(-num_outputs // _TASK_OUTPUTS), words, parallel=num_outputs * row_bytes > _WORTH_A_TEAM)
    return out


class _Arithmetic(Protocol):
    """What a tile does with vectors of `VECTOR_BYTES`."""

    loaded: ir.VectorType
    summed: ir.VectorType

    def add_product(self, builder: ir.IRBuilder, total: ir.Value, row: ir.Value, weight: ir.Value) -> ir.Value: ...

    def result(self, builder: ir.IRBuilder, total: ir.Value, offset_at: ir.Value) -> ir.Value:
        """The sum of the lanes, as it is stored in 4 bytes."""
        ...


class _Float32Arithmetic:
    loaded = summed = _FLOATS

    def add_product(self, builder: ir.IRBuilder, total: ir.Value, row: ir.Value, weight: ir.Value) -> ir.Value:
        multiply_add = _function(builder, f"llvm.fmuladd.v{_FLOATS.count}f32", _FLOATS, [_FLOATS] * 3)
        return builder.call(multiply_add, [row, weight, total])

    def result(self, builder: ir.IRBuilder, total: ir.Value, offset_at: ir.Value) -> ir.Value:
        add_lanes = _function(builder, f"llvm.vector.reduce.fadd.v{_FLOATS.count}f32", _FLOAT, [_FLOAT, _FLOATS])
        return builder.call(add_lanes, [_FLOAT(-0.0), total], fastmath=("reassoc",))


class _WidenedInt8Arithmetic:
    """Bytes widened to 16 bits and multiplied in pairs, or to 32 bits where there is no such instruction."""

    loaded = _BYTES
    summed = _INTEGERS
    row_offset = 0

    def add_product(self, builder: ir.IRBuilder, total: ir.Value, row: ir.Value, weight: ir.Value) -> ir.Value:
        # A vector of bytes is 4 parts with one byte for each lane.
        for part in range(4):
            lanes = ir.Constant(ir.VectorType(_WORD, _INTEGERS.count), list(range(part * _INTEGERS.count, (part + 1) * _INTEGERS.count)))
            wide = [builder.sext(builder.shuffle_vector(value, value, lanes), _INTEGERS) for value in (row, weight)]
            total = builder.add(total, builder.mul(*wide))
        return total

    def result(self, builder: ir.IRBuilder, total: ir.Value, offset_at: ir.Value) -> ir.Value:
        add_lanes = _function(builder, f"llvm.vector.reduce.add.v{self.summed.count}i32", _WORD, [self.summed])
        return builder.call(add_lanes, [total])


class _Avx2Int8Arithmetic(_WidenedInt8Arithmetic):
    """With `vpmaddwd`: products of 16-bit integers, added in pairs."""

    summed = ir.VectorType(_WORD, 8)

    def add_product(self, builder: ir.IRBuilder, total: ir.Value, row: ir.Value, weight: ir.Value) -> ir.Value:
        halves = ir.VectorType(_HALF, 16)
        multiply_pairs = _function(builder, "llvm.x86.avx2.pmadd.wd", self.summed, [halves, halves])
        for part in range(VECTOR_BYTES // 16):
            lanes = ir.Constant(ir.VectorType(_WORD, 16), list(range(part * 16, (part + 1) * 16)))
            wide = [builder.sext(builder.shuffle_vector(value, value, lanes), halves) for value in (row, weight)]
            total = builder.add(total, builder.call(multiply_pairs, wide))
        return total


class _VnniInt8Arithmetic(_WidenedInt8Arithmetic):
    """With `vpdpbusd`: unsigned times signed bytes, added in fours."""

    row_offset = 128

    def add_product(self, builder: ir.IRBuilder, total: ir.Value, row: ir.Value, weight: ir.Value) -> ir.Value:
        name = f"llvm.x86.avx512.vpdpbusd.{VECTOR_BYTES * 8}"
        add_product = _function(builder, name, _INTEGERS, [_INTEGERS] * 3)
        return builder.call(add_product, [total, builder.bitcast(row, _INTEGERS), builder.bitcast(weight, _INTEGERS)])

    def result(self, builder: ir.IRBuilder, total: ir.Value, offset_at: ir.Value) -> ir.Value:
        return builder.sub(super().result(builder, total, offset_at), builder.load(builder.inttoptr(offset_at, _WORD.as_pointer())))


def _function(builder: ir.IRBuilder, name: str, result: ir.Type, arguments: list[ir.Type]) -> ir.Value:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def _int8_arithmetic() -> _WidenedInt8Arithmetic:
    if _WIDE and _FEATURES.get("avx512vnni", False):
        return _VnniInt8Arithmetic()
    return _Avx2Int8Arithmetic() if _FEATURES.get("avx2", False) else _WidenedInt8Arithmetic()


_FLOAT32_ARITHMETIC = _Float32Arithmetic()
_INT8_ARITHMETIC = _int8_arithmetic()
ROW_OFFSET = _INT8_ARITHMETIC.row_offset
"""Added to rows of 8-bit integers, since some machines multiply unsigned rows only."""


def _tile(num_rows: int, arithmetic: _Arithmetic) -> Any:
    """An intrinsic: `num_rows` rows by `TILE_OUTPUTS` rows of weights, each of `row_bytes`, to 4 bytes an output."""

    @intrinsic
    def multiply_tile(typing_context, rows, weights, row_bytes, out, out_bytes, offsets):
        def generate(context, builder, signature, arguments):
            _Tile(builder, arithmetic, num_rows, *arguments).emit()
            return context.get_dummy_value()

        return types.void(int64, int64, int64, int64, int64, int64), generate

    return multiply_tile


class _Tile:
    """The code of one tile.

    Args:
        rows, weights, out, offsets: addresses in 64-bit registers.
        row_bytes, out_bytes: from one row to the next.
    """

    def __init__(
        self,
        builder: ir.IRBuilder,
        arithmetic: _Arithmetic,
        num_rows: int,
        rows: ir.Value,
        weights: ir.Value,
        row_bytes: ir.Value,
        out: ir.Value,
        out_bytes: ir.Value,
        offsets: ir.Value,
    ):
        self._builder = builder
        self._arithmetic = arithmetic
        self._row_bytes = row_bytes
        self._rows = [self._ahead(rows, row_bytes, m) for m in range(num_rows)]
        self._weights = [self._ahead(weights, row_bytes, n) for n in range(TILE_OUTPUTS)]
        self._next_weights = [self._ahead(weights, row_bytes, n + TILE_OUTPUTS) for n in range(TILE_OUTPUTS)]
        self._out = [self._ahead(out, out_bytes, m) for m in range(num_rows)]
        self._offsets = offsets

    def emit(self) -> None:
        builder, arithmetic = self._builder, self._arithmetic
        zero = ir.Constant(arithmetic.summed, None)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(TILE_OUTPUTS)] for _ in self._rows]
        with cgutils.for_range_slice(builder, _LONG(0), self._row_bytes, _LONG(VECTOR_BYTES), intp=_LONG) as (position, _):
            weights = [self._load(address, position) for address in self._weights]
            for address in self._next_weights:
                self._prefetch(address, position)
            for address, row_sums in zip(self._rows, sums, strict=True):
                row = self._load(address, position)
                for weight, total in zip(weights, row_sums, strict=True):
                    builder.store(arithmetic.add_product(builder, builder.load(total), row, weight), total)
        for address, row_sums in zip(self._out, sums, strict=True):
            for n, total in enumerate(row_sums):
                result = arithmetic.result(builder, builder.load(total), builder.add(self._offsets, _LONG(4 * n)))
                builder.store(result, self._at(address, _LONG(4 * n), result.type))

    def _load(self, address: ir.Value, position: ir.Value) -> ir.Value:
        return self._builder.load(self._at(address, position, self._arithmetic.loaded), align=1)

    def _prefetch(self, address: ir.Value, position: ir.Value) -> None:
        """A line of the next tile. Beyond the last tile nothing is read: prefetching never faults."""
        prefetch = _function(self._builder, "llvm.prefetch.p0", ir.VoidType(), [_BYTE.as_pointer(), _WORD, _WORD, _WORD])
        self._builder.call(prefetch, [self._at(address, position, _BYTE), _READ, _KEEP_IN_ALL_CACHES, _DATA])

    def _ahead(self, address: ir.Value, row_bytes: ir.Value, count: int) -> ir.Value:
        return self._builder.add(address, self._builder.mul(row_bytes, _LONG(count)))

    def _at(self, address: ir.Value, position: ir.Value, kind: ir.Type) -> ir.Value:
        return self._builder.inttoptr(self._builder.add(address, position), kind.as_pointer())


_float32_1, _float32_2, _float32_3, _float32_4 = (_tile(num_rows, _FLOAT32_ARITHMETIC) for num_rows in range(1, _TILE_ROWS + 1))
_int8_1, _int8_2, _int8_3, _int8_4 = (_tile(num_rows, _INT8_ARITHMETIC) for num_rows in range(1, _TILE_ROWS + 1))


@numba.njit(cache=True)
def _multiply_float32(num_rows, rows, weights, row_bytes, out, out_bytes):
    for m in range(0, num_rows, _TILE_ROWS):
        x, y, left = rows + m * row_bytes, out + m * out_bytes, num_rows - m
        if left >= 4:
            _float32_4(x, weights, row_bytes, y, out_bytes, 0)
        elif left == 3:
            _float32_3(x, weights, row_bytes, y, out_bytes, 0)
        elif left == 2:
            _float32_2(x, weights, row_bytes, y, out_bytes, 0)
        else:
            _float32_1(x, weights, row_bytes, y, out_bytes, 0)


@numba.njit(cache=True)
def _multiply_int8(num_rows, rows, weights, row_bytes, out, out_bytes, offsets):
    for m in range(0, num_rows, _TILE_ROWS):
        x, y, left = rows + m * row_bytes, out + m * out_bytes, num_rows - m
        if left >= 4:
            _int8_4(x, weights, row_bytes, y, out_bytes, offsets)
        elif left == 3:
            _int8_3(x, weights, row_bytes, y, out_bytes, offsets)
        elif left == 2:
            _int8_2(x, weights, row_bytes, y, out_bytes, offsets)
        else:
            _int8_1(x, weights, row_bytes, y, out_bytes, offsets)


@numba.cfunc(KERNEL, cache=True)
def _multiply(words):
    rows, weights, out, num_rows, num_outputs, row_bytes, kind, offsets = (
        words[2], words[3], words[4], words[5], words[6], words[7], words[8], words[9],
    )  # fmt: skip
    while True:
        task = claim(words)
        if task >= words[1]:
            return
        for n in range(task * _TASK_OUTPUTS, min((task + 1) * _TASK_OUTPUTS, num_outputs), TILE_OUTPUTS):
            w, y = weights + n * row_bytes, out + n * 4
            if kind == _FLOAT32:
                _multiply_float32(num_rows, rows, w, row_bytes, y, num_outputs * 4)
            else:
                _multiply_int8(num_rows, rows, w, row_bytes, y, num_outputs * 4, offsets + n * 4)
