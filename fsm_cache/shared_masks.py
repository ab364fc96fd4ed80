"""Masks by content: most states of most grammars have masks that others have too."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from .mask import NO_ROW, Mask
from .memo import Memo

_MAX_BYTES = 16 << 20


class SharedMasks:
    """The masks of one vocabulary, those not asked for longest forgotten first. Thread-safe."""

    def __init__(self) -> None:
        self._masks: Memo[tuple[int, bool, bytes], Mask] = Memo(_MAX_BYTES)
        self._lock = threading.Lock()

    def get(self, base_at: int, ids: np.ndarray, row_at: Callable[[int], np.ndarray], *, is_end: bool) -> Mask:
        """The mask of a shared row and ids.

        Args:
            base_at: address of the row, 0 for none.
            ids: int32, copied if need be.
            row_at: the row at an address. A known mask holds its row, so that no other can lie there.
        """
        key = base_at, is_end, ids.tobytes()
        with self._lock:
            mask = self._masks.get(key)
            if mask is None:
                mask = Mask.of(row_at(base_at) if base_at else NO_ROW, ids.copy(), ids.nbytes, is_end=is_end, base_at=base_at)
                self._masks.put(key, mask, mask.num_bytes + ids.nbytes)
            return mask
