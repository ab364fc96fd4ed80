"""Sets of Unicode scalar values as interned lists of intervals.

Equal sets are the same object, so set algebra and partitions are memoised by identity. Surrogates (U+D800..U+DFFF)
are in no set: they are dropped on construction.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeVar

from ..languages import MAX_CODE_POINT

Range = tuple[int, int]

SURROGATE_FIRST = 0xD800
SURROGATE_LAST = 0xDFFF

# Memo tables are emptied when they reach this size: hostile input must not grow them without end.
_MEMO_ENTRIES = 1 << 15

_Value = TypeVar("_Value")


class CharSet:
    """An immutable set of code points. Use `CharSet.of` and the operators, never the constructor.

    Attributes:
        ranges: inclusive intervals, sorted, disjoint and not adjacent.
        size: how many code points are in the set.
        uid: a number that no other set ever has, for ordering and memo keys.
    """

    __slots__ = ("__weakref__", "_starts", "ranges", "size", "uid")

    ranges: tuple[Range, ...]
    size: int
    uid: int
    _starts: list[int] | None

    @staticmethod
    def of(ranges: Iterable[Range]) -> CharSet:
        """The set of all code points in the inclusive `ranges`, which may overlap and come in any order."""
        return _intern(_normalise(ranges))

    @staticmethod
    def single(code_point: int) -> CharSet:
        found = _singles.get(code_point)
        if found is None:
            found = _remember(_singles, code_point, CharSet.of(((code_point, code_point),)))
        return found

    def __contains__(self, code_point: int) -> bool:
        starts = self._starts
        if starts is None:
            starts = self._starts = [low for low, _ in self.ranges]
        index = bisect_right(starts, code_point) - 1
        return index >= 0 and code_point <= self.ranges[index][1]

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __or__(self, other: CharSet) -> CharSet:
        if self is other:
            return self
        key = (self.uid, other.uid) if self.uid < other.uid else (other.uid, self.uid)
        found = _unions.get(key)
        if found is None:
            found = _remember(_unions, key, CharSet.of((*self.ranges, *other.ranges)))
        return found

    def __and__(self, other: CharSet) -> CharSet:
        if self is other:
            return self
        key = (self.uid, other.uid) if self.uid < other.uid else (other.uid, self.uid)
        found = _intersections.get(key)
        if found is None:
            found = _remember(_intersections, key, _intern(_intersect(self.ranges, other.ranges)))
        return found

    def __invert__(self) -> CharSet:
        found = _complements.get(self.uid)
        if found is None:
            found = _remember(_complements, self.uid, CharSet.of(_gaps(self.ranges)))
        return found

    def __sub__(self, other: CharSet) -> CharSet:
        return self & ~other

    def __repr__(self) -> str:
        return "CharSet[" + " ".join(f"{low:X}-{high:X}" if low != high else f"{low:X}" for low, high in self.ranges) + "]"


def partition(sets: tuple[CharSet, ...]) -> tuple[tuple[CharSet, int], ...]:
    """The coarsest cells that `sets` cut their union into.

    Returns:
        Pairs `(cell, mask)` in no particular order: bit i of `mask` tells that the cell lies inside `sets[i]`.
    """
    if len(sets) == 1:
        return ((sets[0], 1),)
    key = tuple([one.uid for one in sets])
    found = _partitions.get(key)
    if found is None:
        found = _remember(_partitions, key, _sweep(sets))
    return found


def joined(sets: list[CharSet]) -> CharSet:
    """The union of any number of sets."""
    if len(sets) <= 2:
        return NO_CHARS if not sets else sets[0] if len(sets) == 1 else sets[0] | sets[1]
    key = tuple([one.uid for one in sets])
    found = _joins.get(key)
    if found is None:
        found = _remember(_joins, key, CharSet.of([one for cell in sets for one in cell.ranges]))
    return found


@lru_cache(maxsize=1024)
def set_of(ranges: tuple[Range, ...]) -> CharSet:
    """`CharSet.of` for ranges that come again."""
    return CharSet.of(ranges)


def _sweep(sets: tuple[CharSet, ...]) -> tuple[tuple[CharSet, int], ...]:
    toggles: dict[int, int] = {}
    for index, one in enumerate(sets):
        bit = 1 << index
        for low, high in one.ranges:
            toggles[low] = toggles.get(low, 0) ^ bit
            toggles[high + 1] = toggles.get(high + 1, 0) ^ bit
    cells: dict[int, list[Range]] = {}
    mask = 0
    start = 0
    for position in sorted(toggles):
        if mask:
            cells.setdefault(mask, []).append((start, position - 1))
        mask ^= toggles[position]
        start = position
    return tuple([(CharSet.of(ranges), mask) for mask, ranges in cells.items()])


def _normalise(ranges: Iterable[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        elif low <= high:
            merged.append((low, high))
    if any(low <= SURROGATE_LAST and high >= SURROGATE_FIRST for low, high in merged):
        return _intersect(tuple(merged), _SCALAR_RANGES)
    return tuple(merged)


def _intersect(left: tuple[Range, ...], right: tuple[Range, ...]) -> tuple[Range, ...]:
    result: list[Range] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low = max(left[i][0], right[j][0])
        high = min(left[i][1], right[j][1])
        if low <= high:
            result.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(result)


def _gaps(ranges: tuple[Range, ...]) -> list[Range]:
    result: list[Range] = []
    next_free = 0
    for low, high in ranges:
        if next_free < low:
            result.append((next_free, low - 1))
        next_free = high + 1
    if next_free <= MAX_CODE_POINT:
        result.append((next_free, MAX_CODE_POINT))
    return result


_SCALAR_RANGES: tuple[Range, ...] = ((0, SURROGATE_FIRST - 1), (SURROGATE_LAST + 1, MAX_CODE_POINT))

_lock = threading.Lock()
_table: weakref.WeakValueDictionary[tuple[Range, ...], CharSet] = weakref.WeakValueDictionary()
_next_uid = 0
_singles: dict[int, CharSet] = {}
_unions: dict[tuple[int, int], CharSet] = {}
_intersections: dict[tuple[int, int], CharSet] = {}
_complements: dict[int, CharSet] = {}
_joins: dict[tuple[int, ...], CharSet] = {}
_partitions: dict[tuple[int, ...], tuple[tuple[CharSet, int], ...]] = {}


def _intern(ranges: tuple[Range, ...]) -> CharSet:
    global _next_uid
    with _lock:
        found = _table.get(ranges)
        if found is None:
            found = CharSet()
            found.ranges = ranges
            found.size = sum([high - low + 1 for low, high in ranges])
            found.uid = _next_uid
            found._starts = None
            _next_uid += 1
            _table[ranges] = found
        return found


def _remember(memo: dict[Any, _Value], key: Any, value: _Value) -> _Value:
    if len(memo) >= _MEMO_ENTRIES:
        memo.clear()
    memo[key] = value
    return value


NO_CHARS = CharSet.of(())
ALL_CHARS = CharSet.of(_SCALAR_RANGES)
