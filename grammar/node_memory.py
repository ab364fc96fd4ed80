"""Memory for the first nodes of machines.

A step may make many nodes, so each machine has room for more than most ever use. The room is reserved in slabs that serve nothing else and
take memory only where they are used: among other objects, what machines leave free would fill up with what is left behind there.
"""

from __future__ import annotations

import mmap
from collections import deque

import numpy as np

from .machine_layout import NODE
from .row_store import reserved

FIRST_NODES = 1 << 14
KEPT_NODES = 1 << 11  # whose memory stays when a machine ends: 12 pages
_SLAB = 32  # machines

_free: deque[FirstNodes] = deque()


class FirstNodes:
    """Attributes:
    array: int32 [FIRST_NODES, NODE], with anything in it.
    """

    __slots__ = ("_at", "_memory", "array")

    def __init__(self, memory: mmap.mmap | None, at: int, array: np.ndarray):
        self._memory = memory
        self._at = at
        self.array = array

    def release(self) -> None:
        """Others may have it from now on."""
        if self._memory is not None and self.array[KEPT_NODES].any():
            start = KEPT_NODES * self.array.strides[0]
            self._memory.madvise(mmap.MADV_DONTNEED, self._at + start, self.array.nbytes - start)
        _free.append(self)


def take_first_nodes() -> FirstNodes:
    """Memory that its new owner has to release."""
    try:
        return _free.pop()
    except IndexError:
        slab, memory = reserved((_SLAB * FIRST_NODES, NODE))
        arrays = slab.reshape(_SLAB, FIRST_NODES, NODE)
        _free.extend(FirstNodes(memory, i * arrays.strides[0], arrays[i]) for i in range(1, _SLAB))
        return FirstNodes(memory, 0, arrays[0])
