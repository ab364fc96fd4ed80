"""The rows behind lead bytes of UTF-8 (RFC 3629), for characters beyond ASCII.

Few texts reach them, so all that one state needs are taken together, as units of rows that take no memory until they are filled. Which
bytes need rows of their own depends only on ranges of characters, not on where these lead: that is found once for the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np

from .languages import MAX_CODE_POINT, Edge
from .machine_layout import DEAD
from .row_store import UNIT

Segments = tuple[Edge, ...]  # like edges, relative to the first code point that the bytes read so far can begin

SURROGATES = (0xD800, 0xDFFF)
FIRST_LEAD = 0xC0
# lead byte -> (continuation bytes, first code point, last code point); RFC 3629 section 4
_LEADS = [
    *((0xC0 | k, 1, k << 6, (k << 6) | 0x3F) for k in range(2, 32)),
    *((0xE0 | k, 2, max(k << 12, 0x800), (k << 12) | 0xFFF) for k in range(16)),
    *((0xF0 | k, 3, max(k << 18, 0x10000), min((k << 18) | 0x3FFFF, MAX_CODE_POINT)) for k in range(5)),
]


def _alike(lead: tuple[int, int, int, int]) -> tuple[int, int, int, bool]:
    """What lead bytes have in common: bytes after them, code points relative to the first one that such a byte can begin, and whether
    these are characters only."""
    _, left, lo, hi = lead
    base = lo & -(1 << (6 * left))
    return left, lo - base, hi - base, hi < SURROGATES[0] or lo > SURROGATES[1]


# Leads side by side that are alike: where all their characters lead to one state, they need one row.
_LEAD_RUNS = [(alike[:3], list(run)) for alike, run in groupby(_LEADS, _alike)]


class Middle(NamedTuple):
    """Inside a UTF-8 sequence with `left` bytes to come."""

    left: int
    segments: Segments


@dataclass(frozen=True, eq=False)
class LeadShape:
    """How characters beyond ASCII are spelled, with numbers instead of the states they lead to.

    Attributes:
        numbers: int16 [64]: by byte from FIRST_LEAD on, the number of the row after it, -1 where none begins.
        middles: by number, what the row stands for.
        whole: by the number of a state and a length: the row from which all sequences of that length lead to the state.
    """

    numbers: np.ndarray
    middles: tuple[Middle, ...]
    whole: dict[tuple[int, int], int]


@lru_cache(maxsize=128)
def lead_shape(wide: Segments) -> LeadShape:
    """The shape of edges beyond ASCII."""
    numbers = np.full(0x100 - FIRST_LEAD, -1, np.int16)
    found: dict[Middle, int] = {}
    at = 0
    for (left, low, high), run in _LEAD_RUNS:
        while at < len(wide) and wide[at][1] < run[0][2]:
            at += 1
        if at == len(wide):
            break
        first, last, target = wide[at]
        if first <= run[0][2] and last >= run[-1][3]:
            number = found.setdefault(Middle(left, ((low, high, target),)), len(found))
            numbers[run[0][0] - FIRST_LEAD : run[-1][0] - FIRST_LEAD + 1] = number
            continue
        for lead, _, lo, hi in run:
            while at < len(wide) and wide[at][1] < lo:
                at += 1
            if at < len(wide) and wide[at][0] <= hi:
                base = lo - low
                segments = tuple((max(a, lo) - base, min(b, hi) - base, t) for a, b, t in wide[at:] if a <= hi)
                numbers[lead - FIRST_LEAD] = found.setdefault(Middle(left, segments), len(found))
    whole = {
        (segments[0][2], left): number
        for (left, segments), number in found.items()
        if len(segments) == 1 and segments[0][:2] == (0, (1 << (6 * left)) - 1)
    }
    return LeadShape(numbers, tuple(found), whole)


class LeadRows(NamedTuple):
    """The rows of one shape.

    Attributes:
        targets: the state of each number.
        units: the first row of each unit of UNIT rows, in the order of numbers.
    """

    shape: LeadShape
    targets: tuple[int, ...]
    units: tuple[int, ...]

    def write(self, line: np.ndarray) -> None:
        """Writes the targets of lead bytes into a row's."""
        rows = [first + k for first in self.units for k in range(UNIT)]
        rows.append(DEAD)  # which number -1 stands for
        line[FIRST_LEAD:] = np.array(rows, np.int32)[self.shape.numbers]

    def row(self, number: int) -> int:
        return self.units[number // UNIT] + number % UNIT

    def middle(self, row: int) -> Middle:
        """What a row stands for."""
        number = UNIT * self.units.index(row - row % UNIT) + row % UNIT
        left, segments = self.shape.middles[number]
        return Middle(left, tuple([(lo, hi, self.targets[target]) for lo, hi, target in segments]))

    def middles(self) -> Iterator[tuple[int, Middle]]:
        """Rows, and what they stand for."""
        rows = map(self.row, range(len(self.shape.middles)))
        return ((row, self.middle(row)) for row in rows)
