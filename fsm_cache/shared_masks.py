"""Masks by content: most states of most grammars have masks that others have too."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from .alive import Alive
from .mask import NO_ROW, Mask

_ENTRY_BYTES = 400  # of a mask that is found by its content, besides its ids


class SharedMasks:
    """The masks of one vocabulary that are in use. Thread-safe."""

    def __init__(self) -> None:
        self._masks: Alive[Hashable, Mask] = Alive()

    @property
    def num_bytes(self) -> int:
        """Memory of all masks of all automata, each counted once."""
        return self._masks.num_bytes

    def get(self, base_at: int, ids: np.ndarray, row_at: Callable[[int], np.ndarray], *, is_end: bool) -> Mask:
        """The mask of a shared row and ids.

        Args:
            base_at: address of the row, 0 for none.
            ids: int32, copied if need be.
            row_at: the row at an address. A known mask holds its row, so that no other can lie there.
        """
        key = base_at, is_end, ids.tobytes()
        mask = self._masks.get(key)
        if mask is None:
            mask = Mask.of(row_at(base_at) if base_at else NO_ROW, ids.copy(), ids.nbytes, is_end=is_end, base_at=base_at)
            mask = self._masks.put(key, mask, mask.num_bytes + ids.nbytes + _ENTRY_BYTES)
        return mask

    def own(self, row: np.ndarray, *, is_end: bool) -> Mask:
        """A mask that is a row of its own."""
        mask = Mask.of(row, NO_ROW, row.nbytes, is_end=is_end)
        return self._masks.put(id(mask), mask, mask.num_bytes + _ENTRY_BYTES)
