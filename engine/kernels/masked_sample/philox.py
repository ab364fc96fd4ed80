"""Philox4x32-10, a counter-based random number generator: the draw of (seed, position) needs no state.

J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

# pyright: reportCallIssue=false
# Numba's decorators change what a call means.

from __future__ import annotations

import numba
import numpy as np
from numba import uint32, uint64, void

_FIRST_MULTIPLIER, _SECOND_MULTIPLIER = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_FIRST_WEYL, _SECOND_WEYL = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10


@numba.njit(void(uint32[:, ::1], uint64[::1], uint32[:, ::1]), nogil=True, cache=True)
def _rounds(counters, keys, words):
    """Fills words [N, 4] from counters [N, 4] and keys [N] of 64 bits."""
    for i in range(counters.shape[0]):
        c0, c1, c2, c3 = uint64(counters[i, 0]), uint64(counters[i, 1]), uint64(counters[i, 2]), uint64(counters[i, 3])
        k0, k1 = keys[i] & _LOW, keys[i] >> _HALF
        for _ in range(_ROUNDS):
            first, second = c0 * _FIRST_MULTIPLIER, c2 * _SECOND_MULTIPLIER
            c0, c1, c2, c3 = (second >> _HALF) ^ c1 ^ k0, second & _LOW, (first >> _HALF) ^ c3 ^ k1, first & _LOW
            k0, k1 = (k0 + _FIRST_WEYL) & _LOW, (k1 + _SECOND_WEYL) & _LOW
        words[i, 0], words[i, 1], words[i, 2], words[i, 3] = c0, c1, c2, c3


def philox4x32(counters: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Random words of many counters at once.

    Args:
        counters: [N, 4] uint32
        keys: [N] uint64

    Returns:
        [N, 4] uint32
    """
    words = np.empty_like(counters)
    _rounds(counters, keys, words)
    return words


def uniforms(seeds: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """One number in [0, 1) for each (seed, position), multiples of 2**-24.

    Args:
        seeds: [N] uint64
        positions: [N] int, the index of the token that is drawn.

    Returns:
        [N] float32
    """
    counters = np.zeros((len(seeds), 4), np.uint32)
    counters[:, 0] = positions
    return (philox4x32(counters, seeds)[:, 0] >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
