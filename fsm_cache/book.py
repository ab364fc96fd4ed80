"""What one token FSM keeps for its mask kernels: tables of leaves, tokens that close strings, and what may follow states."""

from __future__ import annotations

import numpy as np

from .kernels.book import enter_closings, enter_leaf
from .kernels.kit import (
    BOOK_ARENA,
    BOOK_ARENA_SIZE,
    BOOK_ARENA_USED,
    BOOK_CLOSINGS,
    BOOK_CLOSINGS_MASK,
    BOOK_LEAVES,
    BOOK_LEAVES_MASK,
    BOOK_NUM_CLOSINGS,
    BOOK_SIZE,
)
from .leaf_tables import LeafTable
from .mask import NO_ROW

_SLOTS = 16
_ARENA = 1 << 10


class Book:
    """Attributes:
    memory: for kernels, see `kernels.kit`.

    Args:
        max_bytes: memory for tokens that close strings or follow states; when it is used up, they are found again.
    """

    def __init__(self, max_bytes: int):
        self._max_bytes = max_bytes
        self._tables: dict[int, LeafTable] = {}
        self._bases: dict[int, np.ndarray] = {}
        self.memory = np.zeros(BOOK_SIZE, np.int64)
        self._set_leaves(_SLOTS)
        self._set_closings(_SLOTS)
        self._set_arena(np.empty(_ARENA, np.int32))

    @property
    def num_bytes(self) -> int:
        """Memory of this book alone."""
        return self._leaves.nbytes + self._closings.nbytes + self._arena.nbytes

    def add_leaf(self, row: int, table: LeafTable) -> None:
        """Enters the table of a row, which is held from now on."""
        self._tables[row] = table
        if table.base is not NO_ROW:
            self._bases[table.base.ctypes.data] = table.base
        if 2 * len(self._tables) > len(self._leaves):
            self._set_leaves(2 * len(self._leaves))
            for known, held in self._tables.items():
                enter_leaf(self.memory, known, held.memory.ctypes.data)
        else:
            enter_leaf(self.memory, row, table.memory.ctypes.data)

    def base(self, address: int) -> np.ndarray:
        """The row of a leaf table that lies at an address."""
        return self._bases[address]

    def make_space(self, count: int) -> None:
        """Makes space for another entry, of `count` tokens."""
        used = int(self.memory[BOOK_ARENA_USED])
        if 4 * (used + count) > self._max_bytes:
            self._set_closings(_SLOTS)
            self.memory[BOOK_ARENA_USED] = used = 0
        if used + count > len(self._arena):
            arena = np.empty(max(2 * len(self._arena), used + count), np.int32)
            arena[:used] = self._arena[:used]
            self._set_arena(arena)
        if 2 * int(self.memory[BOOK_NUM_CLOSINGS]) + 2 > len(self._closings):
            old = self._closings
            self._set_closings(2 * len(old))
            enter_closings(self.memory, old)

    def _set_leaves(self, slots: int) -> None:
        self._leaves = np.full((slots, 2), -1, np.int64)
        self.memory[BOOK_LEAVES], self.memory[BOOK_LEAVES_MASK] = self._leaves.ctypes.data, slots - 1

    def _set_closings(self, slots: int) -> None:
        self._closings = np.full((slots, 3), -1, np.int32)
        self.memory[BOOK_CLOSINGS], self.memory[BOOK_CLOSINGS_MASK] = self._closings.ctypes.data, slots - 1
        self.memory[BOOK_NUM_CLOSINGS] = 0

    def _set_arena(self, arena: np.ndarray) -> None:
        self._arena = arena
        self.memory[BOOK_ARENA], self.memory[BOOK_ARENA_SIZE] = arena.ctypes.data, len(arena)
