"""One mask in compact form."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

NO_ROW = np.zeros(0, np.int32)
_OBJECT_BYTES = 600  # of a mask, besides its arrays


class Mask(NamedTuple):
    """Allowed tokens: those of a row (of no words: none) and more ids.

    Attributes:
        base, ids: int32 arrays.
        place: their addresses (0: no row) and the number of ids, as `fill_rows` wants them. Valid while the mask is held.
        num_bytes: what only this mask holds.
    """

    base: np.ndarray
    ids: np.ndarray
    place: array[int]
    num_bytes: int

    @staticmethod
    def of(base: np.ndarray, ids: np.ndarray, own_bytes: int) -> Mask:
        place = array("q", (base.ctypes.data if len(base) else 0, ids.ctypes.data, len(ids)))
        return Mask(base, ids, place, own_bytes + _OBJECT_BYTES)
