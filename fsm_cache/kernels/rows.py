"""Rows of bits: int32 [ceil(V / 32)], bit (t & 31) of word (t >> 5) set where token t is allowed."""

from __future__ import annotations

import numpy as np
from numba import types

from ...grammar.kernel_cache import kernel
from ...grammar.kernels.memory import at_address, i4_1

i4_2 = types.Array(types.int32, 2, "C")
i8_2 = types.Array(types.int64, 2, "C")


@kernel(types.void(i4_1, i4_1))
def set_bits(mask, tokens):
    """Sets the bits of all `tokens`."""
    for t in tokens:
        mask[t >> 5] |= np.int32(1) << (t & 31)


@kernel(types.void(i4_1, i4_1, i4_1))
def fill_row(mask, base, tokens):
    """Overwrites `mask` with `base` (no words: zero) and the bits of `tokens`."""
    if base.shape[0] == 0:
        for w in range(mask.shape[0]):
            mask[w] = 0
    else:
        for w in range(mask.shape[0]):
            mask[w] = base[w]
    for t in tokens:
        mask[t >> 5] |= np.int32(1) << (t & 31)


@kernel(types.void(i4_2, i8_2))
def fill_rows(rows, places):
    """Overwrites rows [R, W] with masks. `places` [R, 4] is for each the row of `rows`, the address of a base row (0: none), the
    address of ids and their number."""
    for k in range(places.shape[0]):
        r = places[k, 0]
        base, ids = at_address(places[k, 1]), at_address(places[k, 2])
        if places[k, 1] == 0:
            for w in range(rows.shape[1]):
                rows[r, w] = 0
        else:
            for w in range(rows.shape[1]):
                rows[r, w] = base[w]
        for j in range(places[k, 3]):
            rows[r, ids[j] >> 5] |= np.int32(1) << (ids[j] & 31)
