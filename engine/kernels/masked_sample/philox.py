"""Philox4x32-10, a counter-based random number generator: the draw of (seed, position) needs no state.

J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import numpy as np

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10


def philox4x32(counter: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Random words of many counters at once.

    Args:
        counter: [N, 4] uint32
        key: [N, 2] uint32

    Returns:
        [N, 4] uint32
    """
    c0, c1, c2, c3 = (counter[:, i].astype(np.uint64) for i in range(4))
    k0, k1 = (key[:, i].astype(np.uint64) for i in range(2))
    for _ in range(_ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (product1 >> _HALF) ^ c1 ^ k0, product1 & _LOW, (product0 >> _HALF) ^ c3 ^ k1, product0 & _LOW
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return np.stack((c0, c1, c2, c3), axis=1).astype(np.uint32)


def uniforms(seeds: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """One number in [0, 1) for each (seed, position), multiples of 2**-24.

    Args:
        seeds: [N] uint64
        positions: [N] int, the index of the token that is drawn.

    Returns:
        [N] float32
    """
    counter = np.zeros((len(seeds), 4), np.uint32)
    counter[:, 0] = positions
    key = np.stack((seeds & _LOW, seeds >> _HALF), axis=1).astype(np.uint32)
    return (philox4x32(counter, key)[:, 0] >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
