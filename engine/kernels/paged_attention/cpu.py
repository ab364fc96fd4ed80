"""Paged attention of short chunks on a CPU: one pass over the blocks of each row, straight from the cache.

A row's result depends on that row alone, never on what else is in the batch. Caches are float32, or bfloat16 passed as
its bits in uint16.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import float32, int32, types, uint16, void
from numba.extending import overload

from ..cpu_math import exp_negative


def _widen(value):
    """A stored element as float32."""
    raise NotImplementedError("only inside compiled code")


@overload(_widen, inline="always")
def _widen_overload(value):
    if isinstance(value, types.Float):
        return lambda value: value
    return lambda value: np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)


@numba.njit(fastmath={"contract", "nsz", "reassoc"}, cache=True)
def _attend_row(query, keys, values, table, position, kv_head, scaling, window, softcap, out):
    """One row and one key head: query [G, D], keys and values [num_blocks, Hkv, block_size, D], out [G, Dv]."""
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


def _signature(stored: types.Type) -> types.Type:
    """queries [N, H, D], keys, values, block_tables [S, B], row_sequences [N], positions [N], scaling, window, softcap, out [N, H, Dv]"""
    return void(float32[:, :, ::1], stored[:, :, :, ::1], stored[:, :, :, ::1], int32[:, ::1], int32[::1], int32[::1],
                float32, int32, float32, float32[:, :, ::1])  # fmt: skip


@numba.njit([_signature(float32), _signature(uint16)], nogil=True, parallel=True, cache=True)
def attend(queries, keys, values, block_tables, row_sequences, positions, scaling, window, softcap, out):
    """Fills `out`. A softcap of 0 means none, `NO_WINDOW` means no window. Work is split over rows and key heads."""
    num_kv_heads = keys.shape[1]
    groups = queries.shape[1] // num_kv_heads
    for task in numba.prange(queries.shape[0] * num_kv_heads):
        row = task // num_kv_heads
        kv_head = task % num_kv_heads
        heads = slice(kv_head * groups, (kv_head + 1) * groups)
        table = block_tables[row_sequences[row]]
        _attend_row(queries[row, heads], keys, values, table, positions[row], kv_head, scaling, window, softcap, out[row, heads])


def _write_signature(stored: types.Type) -> types.Type:
    return void(stored[:, :, :], stored[:, :, :], stored[:, :, :, ::1], stored[:, :, :, ::1], int32[:, ::1], int32[::1], int32[::1])


@numba.njit([_write_signature(float32), _write_signature(uint16)], nogil=True, cache=True)
def write(new_keys, new_values, keys, values, block_tables, row_sequences, positions):
    """Stores keys [T, Hkv, D] and values [T, Hkv, Dv], of any strides, at the rows' positions."""
    block_size = keys.shape[2]
    for row in range(new_keys.shape[0]):
        block = block_tables[row_sequences[row], positions[row] // block_size]
        offset = positions[row] % block_size
        for head in range(new_keys.shape[1]):
            for d in range(keys.shape[3]):
                keys[block, head, offset, d] = new_keys[row, head, d]
            for d in range(values.shape[3]):
                values[block, head, offset, d] = new_values[row, head, d]
