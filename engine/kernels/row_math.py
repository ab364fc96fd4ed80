"""What lies between the matrix products of a decoder layer, compiled for a CPU: norms, rotary embedding, activation, quantisation.

Everything is float32 and works on rows: a row's result depends on that row alone. Tensors are contiguous and on the CPU.
"""

# pyright: reportCallIssue=false, reportArgumentType=false, reportPrivateImportUsage=false
# Numba's decorators change what a call means.

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numba
import numpy as np
import torch

from .cpu_math import exp_negative
from .parallel import KERNEL, bits_of, claim, float_of, pointer, run

_FAST = {"contract", "nsz", "reassoc"}
_WORTH_A_TEAM = 100_000
"""Elements from which several threads are worth their start."""
_ZERO_BELOW = np.float32(1e-30)
"""Rows whose magnitudes are all below this are quantised to zeros."""
_FINE_STEPS = 254
"""Steps between two integers that the second byte of a quantised value tells apart: its half is 127."""
_PADDING = 32
_MAGNITUDE, _INFINITY = np.int32(0x7FFFFFFF), np.int32(0x7F800000)
_NONE = 0
"""The address of a tensor that is not given."""


class Activation(IntEnum):
    """The function of the gate in a gated feed-forward block."""

    SILU = 0
    GELU_TANH = 1


@dataclass(frozen=True, kw_only=True)
class NormWeights:
    """A root mean square norm (Zhang and Sennrich 2019): x / sqrt(mean(x^2) + epsilon) * scale.

    Attributes:
        scale: [C] float32
    """

    scale: torch.Tensor
    epsilon: float


@numba.njit(inline="always")
def _floats(address, size):
    return numba.carray(pointer(address), (size,), np.float32)


@numba.njit(fastmath=_FAST, error_model="numpy", cache=True)
def _inverse_rms(row, epsilon):
    total = np.float32(0.0)
    for i in range(row.shape[0]):
        total += row[i] * row[i]
    return np.float32(1.0) / np.sqrt(total / np.float32(row.shape[0]) + epsilon)


@numba.njit(fastmath=_FAST, error_model="numpy", cache=True)
def _scale_row(row, scale, epsilon, out):
    factor = _inverse_rms(row, epsilon)
    for i in range(row.shape[0]):
        out[i] = row[i] * factor * scale[i]


@numba.cfunc(KERNEL, cache=True)
def _norm(words):
    rows, out, scale, width, epsilon = words[2], words[3], words[4], words[5], float_of(words[6])
    while True:
        row = claim(words)
        if row >= words[1]:
            return
        start = row * width * 4
        _scale_row(_floats(rows + start, width), _floats(scale, width), epsilon, _floats(out + start, width))


@numba.njit(fastmath=_FAST, error_model="numpy", cache=True)
def _add(row, change):
    for i in range(row.shape[0]):
        row[i] += change[i]


@numba.njit(fastmath=_FAST, error_model="numpy", cache=True)
def _add_scaled(row, change, scale, epsilon):
    factor = _inverse_rms(change, epsilon)
    for i in range(row.shape[0]):
        row[i] += change[i] * factor * scale[i]


@numba.cfunc(KERNEL, cache=True)
def _add_norm(words):
    rows, changes, width = words[2], words[3], words[4]
    change_scale, change_epsilon = words[5], float_of(words[6])
    scale, epsilon, out = words[7], float_of(words[8]), words[9]
    while True:
        index = claim(words)
        if index >= words[1]:
            return
        start = index * width * 4
        row, change = _floats(rows + start, width), _floats(changes + start, width)
        if change_scale == _NONE:
            _add(row, change)
        else:
            _add_scaled(row, change, _floats(change_scale, width), change_epsilon)
        if out != _NONE:
            _scale_row(row, _floats(scale, width), epsilon, _floats(out + start, width))


@numba.njit(fastmath=_FAST, error_model="numpy", cache=True)
def _rotate(head, cos, sin):
    """Rotary position embedding in the half-split layout (Su et al. 2021, as GPT-NeoX lays it out) of the first components."""
    half = cos.shape[0] // 2
    for i in range(half):
        low, high = head[i], head[half + i]
        head[i] = low * cos[i] - high * sin[i]
        head[half + i] = high * cos[half + i] + low * sin[half + i]


@numba.cfunc(KERNEL, cache=True)
def _rotary(words):
    rows, row_width, num_queries, num_keys, head_dim = words[2], words[3], words[4], words[5], words[6]
    cosines, sines, rotary_dim = words[7], words[8], words[9]
    query_scale, key_scale, epsilon = words[10], words[11], float_of(words[12])
    while True:
        row = claim(words)
        if row >= words[1]:
            return
        cos, sin = _floats(cosines + row * rotary_dim * 4, rotary_dim), _floats(sines + row * rotary_dim * 4, rotary_dim)
        for index in range(num_queries + num_keys):
            head = _floats(rows + (row * row_width + index * head_dim) * 4, head_dim)
            scale = query_scale if index < num_queries else key_scale
            if scale != _NONE:
                _scale_row(head, _floats(scale, head_dim), epsilon, head)
            _rotate(head, cos, sin)


@numba.njit(fastmath=_FAST, error_model="numpy", cache=True)
def _silu_gate(gate, up, out):
    for i in range(out.shape[0]):
        x = gate[i]
        e = exp_negative(-abs(x))
        out[i] = x * up[i] * (np.float32(1.0) if x >= 0 else e) / (np.float32(1.0) + e)


@numba.njit(fastmath=_FAST, error_model="numpy", cache=True)
def _gelu_gate(gate, up, out):
    """With the tanh approximation of Hendrycks and Gimpel 2016; x * (1 + tanh(y)) / 2 is x * sigmoid(2 * y)."""
    for i in range(out.shape[0]):
        x = gate[i]
        y = np.float32(1.5957691216057308) * (x + np.float32(0.044715) * x * x * x)
        e = exp_negative(-abs(y))
        out[i] = x * up[i] * (np.float32(1.0) if y >= 0 else e) / (np.float32(1.0) + e)


@numba.cfunc(KERNEL, cache=True)
def _gate(words):
    rows, out, width, activation = words[2], words[3], words[4], words[5]
    while True:
        row = claim(words)
        if row >= words[1]:
            return
        start = rows + row * width * 8
        gate, up, target = _floats(start, width), _floats(start + width * 4, width), _floats(out + row * width * 4, width)
        if activation == 0:
            _silu_gate(gate, up, target)
        else:
            _gelu_gate(gate, up, target)


@numba.njit(error_model="numpy", cache=True)
def _quantize_row(row, offset, coarse, fine):
    """Fills `coarse` and `fine`, and returns the scale: NaN for a row with a value that is not finite."""
    bits = row.view(np.int32)
    largest = np.int32(0)
    for i in range(bits.shape[0]):
        largest = max(largest, np.int32(bits[i] & _MAGNITUDE))
    magnitude = np.int32(largest).view(np.float32)
    if largest >= _INFINITY or magnitude < _ZERO_BELOW:
        coarse[:] = offset
        fine[:] = offset
        return np.float32(np.nan) if largest >= _INFINITY else np.float32(0.0)
    factor = np.float32(127.0) / magnitude
    for i in range(row.shape[0]):
        value = row[i] * factor
        whole = np.rint(value)
        coarse[i] = np.int8(whole) + offset
        fine[i] = np.int8(np.rint((value - whole) * np.float32(_FINE_STEPS))) + offset
    return magnitude / np.float32(127.0)


@numba.cfunc(KERNEL, cache=True)
def _quantize(words):
    num_rows, rows, num_values, out, width, scales, offset = words[1], words[2], words[3], words[4], words[5], words[6], words[7]
    while True:
        row = claim(words)
        if row >= num_rows:
            return
        coarse = numba.carray(pointer(out + row * width), (width,), np.uint8)
        fine = numba.carray(pointer(out + (num_rows + row) * width), (width,), np.uint8)
        values = _floats(rows + row * num_values * 4, num_values)
        _floats(scales, num_rows)[row] = _quantize_row(values, np.uint8(offset), coarse[:num_values], fine[:num_values])
        coarse[num_values:] = 0
        fine[num_values:] = 0


@numba.njit(fastmath={"contract"}, error_model="numpy", cache=True)
def _combine_row(coarse, fine, scales, scale, out):
    for i in range(out.shape[0]):
        out[i] = (np.float32(coarse[i]) + np.float32(fine[i]) * np.float32(1.0 / _FINE_STEPS)) * scales[i] * scale


@numba.cfunc(KERNEL, cache=True)
def _combine(words):
    num_rows, products, product_width, row_scales, scales, out, width = words[1], words[2], words[3], words[4], words[5], words[6], words[7]
    while True:
        row = claim(words)
        if row >= num_rows:
            return
        coarse = numba.carray(pointer(products + row * product_width * 4), (width,), np.int32)
        fine = numba.carray(pointer(products + (num_rows + row) * product_width * 4), (width,), np.int32)
        scale = _floats(row_scales, num_rows)[row]
        _combine_row(coarse, fine, _floats(scales, width), scale, _floats(out + row * width * 4, width))


def norm(rows: torch.Tensor, weights: NormWeights) -> torch.Tensor:
    """rows [T, C] -> [T, C]"""
    num_rows, width = rows.shape
    out = torch.empty_like(rows)
    words = (rows.data_ptr(), out.data_ptr(), weights.scale.data_ptr(), width, bits_of(weights.epsilon))
    run(_norm, num_rows, words, parallel=rows.numel() > _WORTH_A_TEAM)
    return out


def add(rows: torch.Tensor, changes: torch.Tensor, change_norm: NormWeights | None) -> None:
    """Adds changes [T, C], normed where that is asked for, to rows [T, C] in place."""
    _add_to(rows, changes, change_norm, _NONE, 0.0, _NONE)


def add_and_norm(rows: torch.Tensor, changes: torch.Tensor, change_norm: NormWeights | None, weights: NormWeights) -> torch.Tensor:
    """Like `add`; returns the norm of the sums, [T, C]."""
    out = torch.empty_like(rows)
    _add_to(rows, changes, change_norm, weights.scale.data_ptr(), weights.epsilon, out.data_ptr())
    return out


def _add_to(rows: torch.Tensor, changes: torch.Tensor, change_norm: NormWeights | None, scale: int, epsilon: float, out: int) -> None:
    num_rows, width = rows.shape
    change_scale, change_epsilon = (_NONE, 0.0) if change_norm is None else (change_norm.scale.data_ptr(), change_norm.epsilon)
    words = (
        rows.data_ptr(), changes.data_ptr(), width, change_scale, bits_of(change_epsilon), scale, bits_of(epsilon), out,
    )  # fmt: skip
    run(_add_norm, num_rows, words, parallel=rows.numel() > _WORTH_A_TEAM)


@dataclass(frozen=True, kw_only=True)
class HeadLayout:
    """How a row of merged queries, keys and values is divided: H query heads, then Hkv key heads, then Hkv value heads."""

    num_heads: int
    num_kv_heads: int
    head_dim: int

    @property
    def query_width(self) -> int:
        return self.num_heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.num_kv_heads * self.head_dim

    @property
    def width(self) -> int:
        return self.query_width + 2 * self.kv_width


def rotate(
    rows: torch.Tensor, layout: HeadLayout, cos: torch.Tensor, sin: torch.Tensor, head_norms: tuple[NormWeights, NormWeights] | None
) -> None:
    """Norms the queries and keys of each head where that is asked for, and turns them by their positions, in place.

    Args:
        rows: [T, layout.width]
        cos: [T, R] float32, R at most the head dimension; sin likewise.
        head_norms: of queries and of keys, with equal epsilon.
    """
    query_scale, key_scale, epsilon = _NONE, _NONE, 0.0
    if head_norms is not None:
        query_scale, key_scale, epsilon = head_norms[0].scale.data_ptr(), head_norms[1].scale.data_ptr(), head_norms[0].epsilon
    words = (
        rows.data_ptr(), rows.shape[1], layout.num_heads, layout.num_kv_heads, layout.head_dim,
        cos.data_ptr(), sin.data_ptr(), cos.shape[1], query_scale, key_scale, bits_of(epsilon),
    )  # fmt: skip
    run(_rotary, rows.shape[0], words, parallel=rows.numel() > _WORTH_A_TEAM)


def gate(rows: torch.Tensor, activation: Activation) -> torch.Tensor:
    """activation(gates) * ups, for rows [T, 2 * I] of gates and ups side by side -> [T, I]"""
    num_rows, width = rows.shape[0], rows.shape[1] // 2
    out = rows.new_empty(num_rows, width)
    words = (rows.data_ptr(), out.data_ptr(), width, int(activation))
    run(_gate, num_rows, words, parallel=rows.numel() > _WORTH_A_TEAM // 4)
    return out


class QuantizedRows(NamedTuple):
    """Rows [T, K] as integers: scale * (coarse + fine / 254).

    Attributes:
        integers: [P, L] uint8, numbers from -127 to 127 plus an offset, modulo 256: the coarse parts of all rows, then the fine ones.
            Columns beyond K are 0, rows beyond 2 * T anything: libraries prepare themselves for each number of rows they meet,
            so there are few large P.
        scales: [T] float32, NaN for a row that is not finite.
    """

    integers: torch.Tensor
    scales: torch.Tensor


def num_quantized_rows(num_rows: int) -> int:
    """P for T rows: 2 * T, but beyond 32 a multiple of 32."""
    return 2 * num_rows if 2 * num_rows <= _PADDING else -(-2 * num_rows // _PADDING) * _PADDING


def quantize_rows(rows: torch.Tensor, width: int, *, offset: int = 0) -> QuantizedRows:
    """Each row [K] to two bytes a value and one scale. The error is at most the row's largest magnitude / 64516.

    Args:
        width: L, at least K.
        offset: of the integers, from 0 to 128.
    """
    num_rows, num_values = rows.shape
    integers = torch.empty(num_quantized_rows(num_rows), width, dtype=torch.uint8)
    scales = torch.empty(num_rows)
    words = (rows.data_ptr(), num_values, integers.data_ptr(), width, scales.data_ptr(), offset)
    run(_quantize, num_rows, words, parallel=rows.numel() > _WORTH_A_TEAM)
    return QuantizedRows(integers, scales)


def combine_rows(products: torch.Tensor, row_scales: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """What products with `QuantizedRows.integers` stand for -> [T, N]

    Args:
        products: [P, M] int32, M at least N.
        row_scales: `QuantizedRows.scales`
        scales: [N] float32, of the other factors.
    """
    num_rows, width = row_scales.shape[0], scales.shape[0]
    out = torch.empty(num_rows, width)
    words = (
        products.data_ptr(), products.shape[1], row_scales.data_ptr(), scales.data_ptr(), out.data_ptr(), width,
    )  # fmt: skip
    run(_combine, num_rows, words, parallel=products.numel() > _WORTH_A_TEAM)
    return out
