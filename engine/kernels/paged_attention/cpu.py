"""Paged attention of short chunks on a CPU: one pass over the blocks of each row, straight from the cache.

A row's result depends on that row alone, never on what else is in the batch. Caches are float32, or bfloat16 passed as
its bits in uint16.
"""

# pyright: reportCallIssue=false, reportArgumentType=false, reportReturnType=false, reportPrivateImportUsage=false
# Numba's decorators change what a call means.

from __future__ import annotations

import numba
import numpy as np
import torch
from numba import types
from numba.extending import overload

from ..cpu_math import exp_negative
from ..parallel import KERNEL, bits_of, claim, float_of, pointer, run
from .layout import AttentionBatch, AttentionScale, LayerCache

_WORTH_A_TEAM = 200_000
"""Multiplications from which several threads are worth their start, some 20 microseconds."""


def _widen(value):
    """A stored element as float32."""
    raise NotImplementedError("only inside compiled code")


@overload(_widen, inline="always")
def _widen_overload(value):
    if isinstance(value, types.Float):
        return lambda value: value
    return lambda value: np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)


# With numpy's error model a row of NaN keys comes out as NaN, which ends that request; Numba's own would raise where nobody catches.
@numba.njit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy", cache=True)
def _attend_row(query, keys, values, table, position, kv_head, scaling, window, softcap, out):
    """One row and one key head; a softcap of 0 means none: query [G, D], keys and values [num_blocks, Hkv, block_size, D], out [G, Dv]."""
    groups, key_dim = query.shape
    value_dim = out.shape[1]
    block_size = keys.shape[2]
    num_keys = position + 1
    first = max(0, num_keys - window)
    scores = np.empty((groups, block_size), np.float32)
    highest = np.full(groups, -np.inf, np.float32)
    total = np.zeros(groups, np.float32)
    out[:, :] = np.float32(0.0)
    for index in range(first // block_size, (num_keys + block_size - 1) // block_size):
        block = table[index]
        low = max(first - index * block_size, 0)
        high = min(num_keys - index * block_size, block_size)
        for t in range(low, high):
            for g in range(groups):
                score = np.float32(0.0)
                for d in range(key_dim):
                    score += query[g, d] * _widen(keys[block, kv_head, t, d])
                scores[g, t] = score * scaling
        for g in range(groups):
            if softcap > 0:
                for t in range(low, high):
                    scores[g, t] = softcap * np.tanh(scores[g, t] / softcap)
            best = highest[g]
            for t in range(low, high):
                best = max(best, scores[g, t])
            if best > highest[g]:
                shrink = exp_negative(highest[g] - best) if total[g] > 0 else np.float32(0.0)
                total[g] *= shrink
                for d in range(value_dim):
                    out[g, d] *= shrink
                highest[g] = best
            weight_sum = np.float32(0.0)
            for t in range(low, high):
                scores[g, t] = exp_negative(scores[g, t] - best)
                weight_sum += scores[g, t]
            total[g] += weight_sum
        for t in range(low, high):
            for g in range(groups):
                weight = scores[g, t]
                for d in range(value_dim):
                    out[g, d] += weight * _widen(values[block, kv_head, t, d])
    for g in range(groups):
        for d in range(value_dim):
            out[g, d] /= total[g]


@numba.njit(cache=True)
def _attend(words, sizes, keys, values):
    """Claims tasks, each a row and a key head, until there are none left. The words are those of `attend`."""
    num_rows, num_heads, num_kv_heads, key_dim, value_dim, num_sequences, max_blocks = sizes
    out = numba.carray(pointer(words[5]), (num_rows, num_heads, value_dim), np.float32)
    block_tables = numba.carray(pointer(words[6]), (num_sequences, max_blocks), np.int32)
    row_sequences = numba.carray(pointer(words[7]), (num_rows,), np.int32)
    positions = numba.carray(pointer(words[8]), (num_rows,), np.int32)
    scaling, window, softcap = float_of(words[9]), words[10], float_of(words[11])
    groups = num_heads // num_kv_heads
    while True:
        task = claim(words)
        if task >= words[1]:
            return
        row, kv_head = task // num_kv_heads, task % num_kv_heads
        heads = slice(kv_head * groups, (kv_head + 1) * groups)
        table = block_tables[row_sequences[row]]
        queries = numba.carray(pointer(words[4] + row * words[21] * 4), (num_heads, key_dim), np.float32)
        _attend_row(queries[heads], keys, values, table, positions[row], kv_head, scaling, window, softcap, out[row, heads])


@numba.njit(inline="always")
def _sizes(words):
    """Rows, heads, key heads, key and value dimension, sequences and blocks per sequence."""
    return words[12], words[13], words[14], words[15], words[16], words[17], words[18]


@numba.cfunc(KERNEL, cache=True)
def _attend_float32(words):
    keys = numba.carray(pointer(words[2]), (words[19], words[14], words[20], words[15]), np.float32)
    values = numba.carray(pointer(words[3]), (words[19], words[14], words[20], words[16]), np.float32)
    _attend(words, _sizes(words), keys, values)


@numba.cfunc(KERNEL, cache=True)
def _attend_bfloat16(words):
    keys = numba.carray(pointer(words[2]), (words[19], words[14], words[20], words[15]), np.uint16)
    values = numba.carray(pointer(words[3]), (words[19], words[14], words[20], words[16]), np.uint16)
    _attend(words, _sizes(words), keys, values)


def attend(queries: torch.Tensor, cache: LayerCache, batch: AttentionBatch, scale: AttentionScale, *, first_row: int = 0) -> torch.Tensor:
    """Attention of a batch's rows from `first_row` on, queries [N, H, D] -> [N, H, Dv] in the dtype of the queries."""
    num_rows, num_heads, key_dim = queries.shape
    num_blocks, num_kv_heads, block_size, value_dim = cache.values.shape
    rows = _whole_heads(queries.float())
    out = torch.empty(num_rows, num_heads, value_dim, dtype=torch.float32)
    words = (
        cache.keys.data_ptr(), cache.values.data_ptr(), rows.data_ptr(), out.data_ptr(),
        batch.block_tables.data_ptr(), batch.row_sequences[first_row:].data_ptr(), batch.positions[first_row:].data_ptr(),
        bits_of(scale.scaling), scale.window, bits_of(scale.softcap or 0.0),
        num_rows, num_heads, num_kv_heads, key_dim, value_dim, *batch.block_tables.shape, num_blocks, block_size, rows.stride(0),
    )  # fmt: skip
    kernel = _attend_bfloat16 if cache.keys.dtype == torch.bfloat16 else _attend_float32
    work = batch.num_scores * num_heads * (key_dim + value_dim)
    run(kernel, num_rows * num_kv_heads, words, parallel=work > _WORTH_A_TEAM)
    return out.to(queries.dtype)


@numba.njit(cache=True)
def _copy(source, target, size):
    target = numba.carray(pointer(target), (size,), np.uint8)
    target[:] = numba.carray(pointer(source), (size,), np.uint8)


@numba.cfunc(KERNEL, cache=True)
def _write(words):
    keys, values, key_cache, value_cache = words[2], words[3], words[4], words[5]
    num_rows, num_heads, key_bytes, value_bytes, key_row_bytes, value_row_bytes = (
        words[1], words[9], words[10], words[11], words[12], words[13],
    )  # fmt: skip
    max_blocks, block_size = words[14], words[15]
    row_sequences = numba.carray(pointer(words[7]), (num_rows,), np.int32)
    positions = numba.carray(pointer(words[8]), (num_rows,), np.int32)
    while True:
        row = claim(words)
        if row >= num_rows:
            return
        table = numba.carray(pointer(words[6] + row_sequences[row] * max_blocks * 4), (max_blocks,), np.int32)
        block, offset = np.int64(table[positions[row] // block_size]), positions[row] % block_size
        for head in range(num_heads):
            slot = (block * num_heads + head) * block_size + offset
            _copy(keys + row * key_row_bytes + head * key_bytes, key_cache + slot * key_bytes, key_bytes)
            _copy(values + row * value_row_bytes + head * value_bytes, value_cache + slot * value_bytes, value_bytes)


def write(keys: torch.Tensor, values: torch.Tensor, cache: LayerCache, batch: AttentionBatch) -> None:
    """Stores keys [T, Hkv, D] and values [T, Hkv, Dv] at the rows' positions."""
    stored = cache.keys.dtype
    keys, values = _whole_heads(keys.to(stored)), _whole_heads(values.to(stored))
    size = stored.itemsize
    words = (
        keys.data_ptr(), values.data_ptr(), cache.keys.data_ptr(), cache.values.data_ptr(),
        batch.block_tables.data_ptr(), batch.row_sequences.data_ptr(), batch.positions.data_ptr(),
        keys.shape[1], keys.shape[2] * size, values.shape[2] * size, keys.stride(0) * size, values.stride(0) * size,
        batch.block_tables.shape[1], cache.block_size,
    )  # fmt: skip
    run(_write, keys.shape[0], words, parallel=keys.numel() + values.numel() > _WORTH_A_TEAM)


def _whole_heads(rows: torch.Tensor) -> torch.Tensor:
    """Rows [T, H, D] whose heads lie one behind the other, as they do in a part of a merged product."""
    _, _, dim = rows.shape
    return rows if rows.stride(1) == dim and rows.stride(2) == 1 else rows.contiguous()
