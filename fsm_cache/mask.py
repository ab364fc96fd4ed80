"""One mask in compact form, and many of them written out."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .kernels.rows import fill_rows

NO_ROW = np.zeros(0, np.int32)
_OBJECT_BYTES = 600  # of a mask, besides its arrays


class _Referable:
    """What weak references may lead to though it has slots."""

    __slots__ = ("__weakref__",)


@dataclass(slots=True, eq=False)
class Mask(_Referable):
    """Allowed tokens: those of a row (of no words: none) and more ids.

    Attributes:
        base, ids: int32 arrays.
        place: their addresses (0: no row) and the number of ids, as `fill_rows` wants them. Valid while the mask is held.
        num_bytes: memory of the mask without its row, if that is shared.
        is_end: the text may end, and no token may follow but an end token.
    """

    base: np.ndarray
    ids: np.ndarray
    place: array[int]
    num_bytes: int
    is_end: bool

    @staticmethod
    def of(base: np.ndarray, ids: np.ndarray, own_bytes: int, *, is_end: bool = False, base_at: int | None = None) -> Mask:
        """A mask of these arrays; `base_at` is the address of the row where it is known."""
        if base_at is None:
            base_at = base.ctypes.data if len(base) else 0
        place = array("q", (base_at, ids.ctypes.data, len(ids)))
        return Mask(base, ids, place, own_bytes + _OBJECT_BYTES, is_end)

    def row(self, num_words: int) -> np.ndarray:
        """int32 [num_words], of its own."""
        rows = np.empty((1, num_words), np.int32)
        write_masks([self], rows)
        return rows[0]


def write_masks(masks: Sequence[Mask | None], rows: np.ndarray) -> None:
    """Overwrites one row per mask, all in one call without the GIL; rows of None are left alone.

    Args:
        rows: int32 [len(masks), ceil(V / 32)], contiguous.
    """
    places = array("q")
    for index, mask in enumerate(masks):
        if mask is not None:
            places.append(index)
            places.extend(mask.place)
    if places:
        fill_rows(rows, np.frombuffer(places, np.int64).reshape(-1, 4))
