"""Memory of all byte rows of the process.

Rows belong to leaf automata, and grammars share leaves, so rows live outside of both. The memory is reserved once and never
moves: kernels of other threads read it while rows are added. It is 1.1 GB of address space, of which only what is used takes memory.
"""

from __future__ import annotations

import gc
import mmap
import threading
import weakref
from collections import deque
from typing import Protocol

import numpy as np

from .errors import LimitError
from .machine_layout import DEAD, F_ACCEPT, F_EXPANDED, FINAL_ROW, FLAGS, MAX_ROWS, ROW, ROW_SERIAL

UNIT = 8  # rows that are taken together and stay zero, and so take no memory, until they are filled
_FIRST_UNIT = MAX_ROWS // 2  # units lie behind all single rows


class RowMaker(Protocol):
    """Whoever fills rows, each when a step first needs it."""

    def fill(self, row: int, key: object) -> None: ...

    def look_ahead(self, row: int, key: object, count: int) -> None: ...


def reserved(shape: tuple[int, int]) -> tuple[np.ndarray, mmap.mmap | None]:
    """Zeros that take memory only where they are used, a small page at a time, and the mapping they lie in where the system has such pages.
    NumPy asks for huge ones: the first use of each would take milliseconds."""
    if not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(shape, np.int32), None
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    memory = mmap.mmap(-1, shape[0] * shape[1] * 4, flags=flags)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.int32).reshape(shape), memory


class RowStore:
    """Attributes:
    rows: int32 [MAX_ROWS, ROW], see `machine_layout`. Row 0 is FINAL_ROW.
    """

    def __init__(self) -> None:
        self.rows, _ = reserved((MAX_ROWS, ROW))
        self.rows[FINAL_ROW, :256] = DEAD
        self.rows[FINAL_ROW, FLAGS] = F_EXPANDED | F_ACCEPT
        self._lock = threading.Lock()
        self._used = FINAL_ROW + 1
        self._serial = 0
        self._free: list[int] = []
        self._used_units = _FIRST_UNIT
        self._free_units: list[int] = []
        self._released: deque[list[int]] = deque()
        self._makers: dict[int, tuple[weakref.ref[RowMaker], object]] = {}  # by row, or by the first row of a unit

    @property
    def row_bytes(self) -> int:
        return self.rows.strides[0]

    def own(self, owner: object) -> list[int]:
        """A list for the rows of `owner`; they are free again when it is no more."""
        rows: list[int] = []
        weakref.finalize(owner, self._released.append, rows).atexit = False
        return rows

    def allocate(self, rows: list[int], flags: int, maker: RowMaker | None = None, key: object = None) -> int:
        """A row, appended to an owner's `rows`, which `maker` fills when it is needed; with no maker the caller fills it now.

        Raises:
            LimitError: too many rows are in use.
        """
        with self._lock:
            row = self._take()
            rows.append(row)
            self._serial = (self._serial + 1) & 0x7FFFFFFF
            line = self.rows[row]
            line[FLAGS] = 0  # before anything else: nobody may take it for its predecessor
            line[FLAGS + 1 :] = 0
            line[ROW_SERIAL] = self._serial
            line[FLAGS] = flags
            if maker is not None:
                self._makers[row] = (weakref.ref(maker), key)
            return row

    def allocate_many(self, rows: list[int], count: int) -> np.ndarray:
        """Rows without targets, appended to an owner's `rows`, which the caller fills now."""
        with self._lock:
            taken: list[int] = []
            try:
                for _ in range(count):
                    taken.append(self._take())
            except LimitError:
                self._free.extend(taken)
                raise
            rows.extend(taken)
            found = np.array(taken, np.int64)
            self.rows[found, FLAGS] = 0
            self.rows[found, :FLAGS] = DEAD
            self.rows[found, FLAGS + 1 :] = 0
            self.rows[found, ROW_SERIAL] = np.arange(self._serial + 1, self._serial + 1 + count) & 0x7FFFFFFF
            self._serial = (self._serial + count) & 0x7FFFFFFF
            return found

    def allocate_units(self, rows: list[int], count: int) -> tuple[int, ...]:
        """Units for `count` rows without flags: the first row of each, which is appended to an owner's `rows`."""
        with self._lock:
            first = len(rows)
            for _ in range(0, count, UNIT):
                rows.append(self._take_unit())
            return tuple(rows[first:])

    def fill_later(self, units: tuple[int, ...], maker: RowMaker, key: object) -> None:
        """Has `maker` fill the rows of units, each when it is needed."""
        entry = weakref.ref(maker), key
        with self._lock:
            for first in units:
                self._makers[first] = entry

    def _take(self) -> int:
        self._reclaim(no_more=not self._free and self._used == _FIRST_UNIT)
        if self._free:
            return self._free.pop()
        if self._used == _FIRST_UNIT:
            raise LimitError(f"all constraints in use need more than {_FIRST_UNIT} leaf states")
        self._used += 1
        return self._used - 1

    def _take_unit(self) -> int:
        self._reclaim(no_more=not self._free_units and self._used_units == MAX_ROWS)
        if self._free_units:
            return self._free_units.pop()
        if self._used_units == MAX_ROWS:
            raise LimitError(f"all constraints in use need more than {MAX_ROWS - _FIRST_UNIT} leaf states inside characters")
        self._used_units += UNIT
        return self._used_units - UNIT

    def _reclaim(self, *, no_more: bool) -> None:
        """Makes rows free again whose owners are no more; looks for more of these if there are no others."""
        if no_more and not self._released:
            gc.collect()  # grammars that ended may still be in cycles
        while self._released:
            for row in self._released.popleft():
                self._makers.pop(row, None)
                if row < _FIRST_UNIT:
                    self._free.append(row)
                else:
                    self._empty_unit(row)
                    self._free_units.append(row)

    def _empty_unit(self, first: int) -> None:
        for row in range(first, first + UNIT):
            line = self.rows[row]
            if line[FLAGS:].any():
                serial = (line[ROW_SERIAL] + 1) & 0x7FFFFFFF
                line[FLAGS:] = 0
                line[ROW_SERIAL] = serial

    def fill(self, row: int) -> None:
        """Fills a row, unless another thread just did."""
        maker = self._makers.get(row if row < _FIRST_UNIT else row - row % UNIT)
        if maker is None:
            return
        lowering = maker[0]()
        assert lowering is not None  # whoever can reach the row holds its maker
        lowering.fill(row, maker[1])

    def look_ahead(self, row: int, count: int) -> None:
        """Notes where `count` characters of the even run at a filled row lead."""
        maker, key = self._makers[row]
        lowering = maker()
        assert lowering is not None
        lowering.look_ahead(row, key, count)

    def filled(self, row: int) -> None:
        """`row` has its targets and flags, and its maker is not asked for it again."""
        if row < _FIRST_UNIT:
            self._makers.pop(row, None)

    def targets(self, row: int) -> np.ndarray:
        """The 256 targets of a row, filled if need be."""
        if not self.rows[row, FLAGS] & F_EXPANDED:
            self.fill(row)
        return self.rows[row, :256]


STORE = RowStore()
