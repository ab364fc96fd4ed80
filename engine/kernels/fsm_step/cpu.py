"""The step on a CPU."""

# pyright: reportCallIssue=false, reportPrivateImportUsage=false
# Numba's decorators change what a call means.

from __future__ import annotations

import numba
import numpy as np
from numba import int32, int64, void

from ....fsm_cache.mask_pool import LOOP, MASK, NONE, STATE, TARGET, TOKEN
from .layout import FREE, UNKNOWN


@numba.njit(int64(int64, int64, int64), nogil=True, cache=True)
def _bucket_of(state, token, num_buckets):
    """`mask_pool.bucket_of`"""
    mixed = ((state * 0x9E3779B1) ^ (token * 0x85EBCA77)) & 0xFFFFFFFF
    return (((mixed * 0x2C1B3C6D) & 0xFFFFFFFF) >> 12) & (num_buckets - 1)


@numba.njit(int32(int32, int32, int32[:, ::1], int32[:, ::1], int32[:, :, ::1]), nogil=True, cache=True)
def _target(state, token, masks, states, steps):
    loop = states[state, LOOP]
    if loop != NONE and (masks[loop, token >> 5] >> (token & 31)) & 1:
        return state
    bucket = steps[_bucket_of(state, token, steps.shape[0])]
    for way in range(bucket.shape[1]):
        if bucket[STATE, way] == state and bucket[TOKEN, way] == token:
            return bucket[TARGET, way]
    return np.int32(UNKNOWN)


@numba.njit(
    void(int32[::1], int32[::1], int32[:, ::1], int32[:, ::1], int32[:, :, ::1], int32[::1], int32[::1]),
    nogil=True,
    cache=True,
)
def fsm_step(states, token_ids, masks, table, steps, targets, mask_rows):
    """See `fsm_step` of the package; fills `targets` and `mask_rows`."""
    for row in range(states.shape[0]):
        target = states[row]
        if target >= 0:
            target = _target(target, token_ids[row], masks, table, steps)
        targets[row] = target
        if target >= 0:
            mask_row = table[target, MASK]
            mask_rows[row] = UNKNOWN if mask_row == NONE else mask_row
        else:
            mask_rows[row] = FREE if target == FREE else UNKNOWN
