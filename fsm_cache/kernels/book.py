"""Hash tables of a `Book`."""

from __future__ import annotations

import numpy as np
from numba import types

from ...grammar.kernel_cache import kernel
from ...grammar.kernels.memory import LONGS, at_address, i4, longs_at, pointer
from .kit import BOOK_CLOSINGS, BOOK_CLOSINGS_MASK, BOOK_LEAVES, BOOK_LEAVES_MASK, BOOK_NUM_CLOSINGS

i8_1 = types.Array(types.int64, 1, "C")


@kernel(types.int64(LONGS, i4))
def leaf_slot(book, row):
    """Where the leaf table of a row is in the table of leaves, or would be."""
    leaves, mask = longs_at(book[BOOK_LEAVES]), book[BOOK_LEAVES_MASK]
    slot = np.int64(np.uint32(row) * np.uint32(0x9E3779B1)) & mask
    while leaves[2 * slot] >= 0 and leaves[2 * slot] != row:
        slot = (slot + 1) & mask
    return 2 * slot


@kernel(types.int64(LONGS, i4))
def closing_slot(book, key):
    """Where the tokens of `key` are in the table of closings, or would be."""
    closings, mask = at_address(book[BOOK_CLOSINGS]), book[BOOK_CLOSINGS_MASK]
    slot = np.int64(np.uint32(key) * np.uint32(0x9E3779B1)) & mask
    while closings[3 * slot] >= 0 and closings[3 * slot] != key:
        slot = (slot + 1) & mask
    return 3 * slot


@kernel(types.void(i8_1, i4, types.int64))
def enter_leaf(book, row, leaf):
    """Enters the address of the table of a row; the caller keeps half of the slots free."""
    book_at = pointer(book)
    slot = leaf_slot(book_at, row)
    leaves = longs_at(book[BOOK_LEAVES])
    leaves[slot], leaves[slot + 1] = row, leaf


@kernel(types.void(i8_1, types.Array(types.int32, 2, "C")))
def enter_closings(book, entries):
    """Enters the used ones among the slots `entries` [n, 3] of another table."""
    book_at = pointer(book)
    closings = at_address(book[BOOK_CLOSINGS])
    for k in range(entries.shape[0]):
        if entries[k, 0] >= 0:
            slot = closing_slot(book_at, entries[k, 0])
            for column in range(3):
                closings[slot + column] = entries[k, column]
            book[BOOK_NUM_CLOSINGS] += 1
