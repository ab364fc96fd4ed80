"""Character automata as byte rows: raw UTF-8, or the spellings of a JSON string (RFC 8259 section 7).

A row is made when a step first needs it. Rows between two characters belong to a state of the automaton; rows
inside a character are shared by what can still follow, so that a class such as "any letter" needs few of them.
A JSON string spells a character as itself, as a short escape, or as `\\uXXXX` (a surrogate pair above U+FFFF); lone
surrogates have no spelling because they are in no edge.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .errors import LimitError
from .languages import MAX_CODE_POINT, CharAutomaton, Edge, HasLengths, Run
from .lead_rows import SURROGATES, LeadRows, LeadShape, Middle, Segments, lead_shape
from .limits import Limits
from .machine_layout import (
    AHEAD,
    DEAD,
    F_ACCEPT,
    F_BOUNDARY,
    F_COUNTED,
    F_ESCAPE,
    F_EVEN,
    F_EXPANDED,
    F_KEY_END,
    F_LOOPS,
    F_OTHERS,
    F_PLAIN,
    F_RUN,
    F_RUN_ENDS,
    F_TEXT_LOOP,
    F_TIDY,
    FINAL_ROW,
    FLAGS,
    KEY_CLASSES,
    KEY_HI,
    KEY_LO,
    KEY_SET,
    KEY_TAILS,
    LEAST,
    LOOP,
    MAX_RUN,
    OTHER,
    OUTCOME,
    RUN,
)
from .row_store import STORE

_SHORT_ESCAPES = {0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, 0x62: 0x08, 0x66: 0x0C, 0x6E: 0x0A, 0x72: 0x0D, 0x74: 0x09}
_HEX = [*range(0x30, 0x3A), *range(0x41, 0x47), *range(0x61, 0x67)]
# What a tidy string spells with an escape: characters that must be escaped, and those beyond ASCII, which many encoders escape.
_TIDY_ESCAPES = ((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, MAX_CODE_POINT))
_SPECIAL = ((0x22, 0x22), (0x5C, 0x5C))  # what ends a JSON string, and what begins an escape
_PAIR = -1  # segment target: a high surrogate; the low one follows
_DEAD_LINE = np.full(256, DEAD, np.int32)
PUBLISH = threading.Lock()  # held while flags are written: they come last, also on machines that reorder writes


class _AnyString:
    """Every string of Unicode scalar values."""

    start = 0
    _edges: tuple[Edge, ...] = ((0, SURROGATES[0] - 1, 0), (SURROGATES[1] + 1, MAX_CODE_POINT, 0))

    def accepting(self, q: int) -> bool:
        return True

    def edges(self, q: int) -> tuple[Edge, ...]:
        return self._edges

    def universal(self, q: int) -> bool:
        return True

    def tail_count(self, q: int, cap: int) -> int | None:
        return None

    def min_length(self, q: int) -> int | None:
        return 0


ANY_STRING: CharAutomaton = _AnyString()


class _Boundary(NamedTuple):
    q: int


class _Escape(NamedTuple):
    q: int


class _Hex(NamedTuple):
    """Inside `\\uXXXX` with `left` digits to come; `base` is kept only where a surrogate pair may follow."""

    left: int
    segments: Segments
    q: int
    base: int


class _LowEscape(NamedTuple):
    """After a high surrogate: `at` characters of the `\\u` that must follow are read."""

    at: int
    segments: Segments


_Key = _Boundary | Middle | _Escape | _Hex | _LowEscape


@dataclass(frozen=True)
class KeyInfo:
    """What a state inside an object key can still become; see the columns in `machine_layout`."""

    lo: int
    hi: int
    classes: int
    tails: int  # -1 every string, 0 unbounded, else a count
    gaps: tuple[tuple[int, int], ...] = ()  # declared keys within [lo, hi) that cannot be reached

    @staticmethod
    def union(parts: Iterable[tuple[KeyInfo, int]]) -> KeyInfo:
        """Of several successors, each with the number of characters that lead to it."""
        classes, tails, unbounded, every = 0, 0, False, True
        ranges: list[tuple[int, int]] = []
        for info, width in parts:
            if info.hi > info.lo:
                ranges.append((info.lo, info.hi))
            classes |= info.classes
            if info.classes:
                unbounded |= info.tails <= 0
                tails += info.tails * width
            every &= info.tails == -1
        ranges.sort()
        gaps = tuple((before[1], after[0]) for before, after in pairwise(ranges) if before[1] < after[0])
        lo, hi = (ranges[0][0], ranges[-1][1]) if ranges else (0, 0)
        return KeyInfo(lo, hi, classes, (-1 if every else 0) if unbounded else tails, gaps)


class KeyAutomaton(CharAutomaton):
    """A character automaton that also says which key was read."""

    def outcome(self, q: int) -> int | None:
        """Outcome of ending the key in `q`, None if it may not end there."""
        raise NotImplementedError

    def info(self, q: int) -> KeyInfo:
        raise NotImplementedError


def _clip(segments: Iterable[Edge], lo: int, hi: int) -> Segments:
    """The part of the segments within [lo, hi], relative to lo."""
    return tuple((max(a, lo) - lo, min(b, hi) - lo, t) for a, b, t in segments if a <= hi and b >= lo)


class Lowering:
    """Byte rows of one automaton. Thread-safe.

    Args:
        automaton: what is spelled.
        json: JSON string spellings, ended by the closing quote, else raw UTF-8.
        tidy: printable ASCII characters are never escaped (but `"` and `\\`), so that known text has one spelling.
        keys: the automaton when it is a key automaton (implies `json`).
        counted: rows say how many characters must still come (`json`, of an automaton with lengths).
        limits: `max_states` bounds the rows.
        store_bits: stores a bit set of so many bits where KEY_SET finds it; for keys with declared names.
    """

    def __init__(
        self,
        automaton: CharAutomaton,
        *,
        json: bool,
        tidy: bool = False,
        keys: KeyAutomaton | None = None,
        counted: bool = False,
        limits: Limits | None = None,
        store_bits: Callable[[int, int], int] | None = None,
    ):
        self._automaton = automaton
        self._find_run: Callable[[int], Run | None] | None = getattr(automaton, "run", None)  # see `languages.HasRuns`
        self._find_ahead: Callable[[int, int], int] | None = getattr(automaton, "ahead", None)
        self._json = json
        self._tidy = tidy
        self._keys = keys
        self._lengths = automaton if counted and isinstance(automaton, HasLengths) else None
        self._max_rows = (limits or Limits()).max_states
        self._store_bits = store_bits
        self._lock = threading.RLock()
        self._owned = STORE.own(self)
        self._lead_rows: dict[tuple[LeadShape, tuple[int, ...]], LeadRows] = {}
        self._whole: dict[int, LeadRows] = {}  # by a state to which every character of some length leads
        self._rows: dict[tuple[type, _Key], int] = {}  # the kinds of key are tuples, equal across kinds
        self._key_ends: dict[int, int] = {}

    @property
    def num_rows(self) -> int:
        return len(self._owned)

    @property
    def is_worn(self) -> bool:
        """Whether half of a budget is used up, so that others should rather have a new one."""
        return 2 * self.num_rows > self._max_rows or getattr(self._automaton, "is_worn", False)

    def start_row(self) -> int:
        return self.boundary(self._automaton.start)

    def fill_all(self) -> None:
        """Fills all rows that can be reached, which must be finitely many."""
        found = {self.start_row()}
        pending = list(found)
        while pending:
            for target in set(STORE.targets(pending.pop()).tolist()):
                if target > FINAL_ROW and target not in found:
                    found.add(target)
                    pending.append(target)

    def boundary(self, q: int) -> int:
        """Row between two characters in state `q`."""
        if self._json and self._keys is None and self._automaton is not ANY_STRING and not self._tidy and self._automaton.universal(q):
            return GENERIC_STRING_ROW
        return self._row(_Boundary(q))

    def escape(self, q: int) -> int:
        """Row after the backslash of an escape that continues state `q`."""
        return self._row(_Escape(q))

    def _row(self, key: _Key) -> int:
        of_kind = type(key), key
        row = self._rows.get(of_kind)
        if row is None:
            with self._lock:
                row = self._rows.get(of_kind)
                if row is None:
                    row = self._new_row(self._early_flags(key), key)
                    if self._keys is not None:
                        self._write_info(row, self._info(key))
                    if self._lengths is not None:
                        STORE.rows[row, LEAST] = self._least(key, self._lengths)
                    self._rows[of_kind] = row
        return row

    def _new_row(self, flags: int, key: _Key | None) -> int:
        if len(self._owned) >= self._max_rows:
            raise LimitError(f"the constraint needs more than {self._max_rows} leaf states (max_states)")
        return STORE.allocate(self._owned, flags, None if key is None else self, key)

    def _key_end(self, outcome: int) -> int:
        """The row that ends a key with this outcome."""
        row = self._key_ends.get(outcome)
        if row is None:
            row = self._key_ends[outcome] = self._new_row(0, None)
            line = STORE.rows[row]
            line[:256] = DEAD
            line[OUTCOME] = outcome
            line[FLAGS] = F_EXPANDED | F_KEY_END
        return row

    @staticmethod
    def missing_bytes(key: object) -> int:
        """Bytes between the row of a key and the end of the character it is inside of."""
        return key.left if isinstance(key, Middle) else 0

    # --- what a row can become -------------------------------------------------------------------------------------

    def _targets_of(self, key: _Key) -> list[tuple[int, int]]:
        """States at the end of the character that a row is inside of, each with how many characters lead to it."""
        if isinstance(key, _Boundary):
            return [(key.q, 1)]
        segments = self._escapable(key.q) if isinstance(key, _Escape) else key.segments
        found: list[tuple[int, int]] = []
        for lo, hi, target in segments:
            if target == _PAIR:
                assert isinstance(key, _Hex)
                first = 0x10000 + ((key.base + lo - 0xD800) << 10)
                last = 0x10000 + ((key.base + hi - 0xD800) << 10) + 0x3FF
                found.extend((t, b - a + 1) for a, b, t in _clip(self._automaton.edges(key.q), first, last))
            else:
                found.append((target, hi - lo + 1))
        return found

    def _least(self, key: _Key, lengths: HasLengths) -> int:
        """Characters that must still come, that which was begun included."""
        least = min([lengths.min_length(target) or 0 for target, _ in self._targets_of(key)], default=0)
        return least if isinstance(key, _Boundary) else least + 1

    def _info(self, key: _Key) -> KeyInfo:
        keys = self._keys
        assert keys is not None
        if isinstance(key, _Boundary):
            return keys.info(key.q)
        return KeyInfo.union([(keys.info(target), count) for target, count in self._targets_of(key)])

    def _write_info(self, row: int, info: KeyInfo) -> None:
        rows = STORE.rows
        rows[row, KEY_LO] = info.lo
        rows[row, KEY_HI] = info.hi
        rows[row, KEY_CLASSES] = info.classes
        rows[row, KEY_TAILS] = info.tails
        if info.gaps:
            reachable = (1 << info.hi) - (1 << info.lo)
            for lo, hi in info.gaps:
                reachable &= ~((1 << hi) - (1 << lo))
            assert self._store_bits is not None
            rows[row, KEY_SET] = self._store_bits(reachable, info.hi)

    # --- filling rows ----------------------------------------------------------------------------------------------

    def fill(self, row: int, key: object) -> None:
        """Writes the 256 targets and the flags of `row`."""
        with self._lock:
            if not STORE.rows[row, FLAGS] & F_EXPANDED:
                self._fill(row, key.middle(row) if isinstance(key, LeadRows) else key)  # pyright: ignore[reportArgumentType]
                if not STORE.rows[row, FLAGS] & F_EVEN:
                    STORE.filled(row)

    def _fill(self, row: int, key: _Key) -> None:
        line = _DEAD_LINE.copy()
        flags = F_EXPANDED | (F_TIDY if self._tidy else 0) | (0 if self._lengths is None else F_COUNTED)
        if isinstance(key, _Boundary):
            flags |= self._fill_boundary(key.q, line)
        elif isinstance(key, Middle):
            self._fill_middle(key, line)
        else:
            flags |= F_ESCAPE
            if isinstance(key, _Escape):
                self._fill_escape(key, line)
            elif isinstance(key, _Hex):
                self._fill_hex(key, line)
            else:
                self._fill_low_escape(key, line)
        stored = STORE.rows[row]
        stored[:256] = line
        loops = line[:0x80] == row
        if loops.any():
            flags |= F_LOOPS
            stored[LOOP : LOOP + 4] = np.packbits(loops, bitorder="little").view(np.int32)
            if isinstance(key, _Boundary) and self._loops_over_text(key.q):
                flags |= F_TEXT_LOOP
        elif isinstance(key, _Boundary) and self._keys is None and self._lengths is None:
            flags |= self._store_run(key.q, stored)
        with PUBLISH:
            stored[FLAGS] = flags

    def _store_run(self, q: int, stored: np.ndarray) -> int:
        """Notes which characters can come many times over although each of them leads to another row. Answers flags."""
        run = self._find_run(q) if self._find_run is not None else None
        if run is None:
            return 0
        stored[LOOP : LOOP + 4] = _loop_bits(run.ranges, self._json)
        flags = F_LOOPS | (F_TEXT_LOOP if _covers_text(run.ranges) else 0)
        if run.count is None:
            return flags
        stored[RUN] = run.count
        others = run.others
        if others is None or not (self._json or run.may_end is not None):
            return flags | F_RUN
        if not flags & F_TEXT_LOOP and any(hi >= 0x80 for _, hi in (*run.ranges, *others)):
            return flags | F_RUN
        stored[OTHER : OTHER + 4] = _loop_bits((*others, *_SPECIAL) if self._json else others, json=False)
        if run.may_end is None:
            return flags | F_RUN | F_OTHERS
        stored[RUN] = min(run.count, MAX_RUN)
        return flags | F_RUN | F_OTHERS | F_EVEN | (F_RUN_ENDS if run.may_end and not self._json else 0)

    def look_ahead(self, row: int, key: object, count: int) -> None:
        """Notes the row after `count` characters of the even run at `row`."""
        assert isinstance(key, _Boundary) and self._find_ahead is not None
        with self._lock:
            rows = STORE.rows
            target = self._target(self._find_ahead(key.q, count))
            line = int(rows[row, AHEAD])
            if line == 0:
                line = self._new_row(0, None)
                rows[line, :256] = DEAD
            with PUBLISH:
                rows[line, count] = target
                rows[row, AHEAD] = line

    def _loops_over_text(self, q: int) -> bool:
        """Whether every character beyond ASCII leads from `q` back to `q`."""
        return _covers_text((lo, hi) for lo, hi, target in self._automaton.edges(q) if target == q)

    @staticmethod
    def _early_flags(key: _Key) -> int:
        """Flags that a step reads before the row is filled."""
        if isinstance(key, _Boundary):
            return F_BOUNDARY
        return 0 if isinstance(key, Middle) else F_ESCAPE

    def _target(self, q: int) -> int:
        if not self._json and self._automaton.accepting(q) and not self._automaton.edges(q):
            return FINAL_ROW
        return self.boundary(q)

    def _fill_boundary(self, q: int, targets: np.ndarray) -> int:
        edges = self._automaton.edges(q)
        flags = F_BOUNDARY
        found: dict[int, int] = {}
        for lo, hi, target in edges:
            if lo >= 0x80:
                break
            if target not in found:
                found[target] = self._target(target)
            targets[lo : min(hi, 0x7F) + 1] = found[target]
        if edges and edges[-1][1] >= 0x80:
            self._leads([edge for edge in edges if edge[1] >= 0x80]).write(targets)
        if not self._json:
            return flags | (F_ACCEPT if self._automaton.accepting(q) else 0)
        targets[:0x20] = DEAD
        targets[0x22] = targets[0x5C] = DEAD
        if self._escapable(q):
            targets[0x5C] = self._row(_Escape(q))
        if self._keys is not None:
            outcome = self._keys.outcome(q)
            if outcome is not None:
                targets[0x22] = self._key_end(outcome)
            if self._keys.info(q).tails == -1:
                flags |= F_PLAIN
        else:
            if self._automaton.accepting(q):
                targets[0x22] = FINAL_ROW
            if self._automaton.universal(q):
                flags |= F_PLAIN
        return flags

    def _leads(self, wide: Iterable[Edge]) -> LeadRows:
        """The rows behind lead bytes of UTF-8 that begin a character of `wide`."""
        numbers: dict[int, int] = {}
        shape = lead_shape(tuple([(max(lo, 0x80), hi, numbers.setdefault(target, len(numbers))) for lo, hi, target in wide]))
        targets = tuple(numbers)
        leads = self._lead_rows.get((shape, targets))
        return self._new_leads(shape, targets) if leads is None else leads

    def _new_leads(self, shape: LeadShape, targets: tuple[int, ...]) -> LeadRows:
        if len(self._owned) >= self._max_rows:
            raise LimitError(f"the constraint needs more than {self._max_rows} leaf states (max_states)")
        leads = LeadRows(shape, targets, STORE.allocate_units(self._owned, len(shape.middles)))
        STORE.fill_later(leads.units, self, leads)
        for number, _ in shape.whole:
            self._whole.setdefault(targets[number], leads)
        if self._keys is not None:
            for row, middle in leads.middles():
                self._write_info(row, self._info(middle))
        if self._lengths is not None:
            for row, middle in leads.middles():
                STORE.rows[row, LEAST] = self._least(middle, self._lengths)
        self._lead_rows[shape, targets] = leads
        return leads

    def _fill_middle(self, key: Middle, targets: np.ndarray) -> None:
        size = 1 << (6 * (key.left - 1))
        split: set[int] = set()  # bytes after which it depends on the next one where a character leads
        for lo, hi, target in key.segments:
            first, last = -(-lo // size), (hi + 1) // size
            if first < last:
                targets[0x80 + first : 0x80 + last] = self._target(target) if key.left == 1 else self._any_character(key.left - 1, target)
            split.update(k for k in (lo // size, hi // size) if not first <= k < last)
        for k in split:
            part = _clip(key.segments, k * size, (k + 1) * size - 1)
            targets[0x80 + k] = self._row(Middle(key.left - 1, part))

    def _any_character(self, left: int, target: int) -> int:
        """The row from which `left` bytes lead to `target`, whatever they are."""
        leads = self._whole.get(target)
        number = None if leads is None else leads.shape.whole.get((leads.targets.index(target), left))
        return self._row(Middle(left, ((0, (1 << (6 * left)) - 1, target),))) if leads is None or number is None else leads.row(number)

    def _escapable(self, q: int) -> Segments:
        """Edges of `q` that an escape may spell."""
        edges = self._automaton.edges(q)
        if not self._tidy:
            return edges
        return tuple((max(lo, a), min(hi, b), t) for lo, hi, t in edges for a, b in _TIDY_ESCAPES if lo <= b and a <= hi)

    def _fill_escape(self, key: _Escape, targets: np.ndarray) -> None:
        edges = self._escapable(key.q)
        for byte, char in _SHORT_ESCAPES.items():
            target = next((t for lo, hi, t in edges if lo <= char <= hi), None)
            if target is not None:
                targets[byte] = self._target(target)
        high = self._high_surrogates(edges)
        segments = sorted([*_clip(edges, 0, 0xFFFF), *high])
        targets[0x75] = self._row(_Hex(4, tuple(segments), key.q if high else -1, 0))

    @staticmethod
    def _high_surrogates(edges: Segments) -> list[Edge]:
        """High surrogates that begin some character above U+FFFF of the edges."""
        runs: list[Edge] = []
        for lo, hi, _ in edges:
            if hi > 0xFFFF:
                a = 0xD800 + ((max(lo, 0x10000) - 0x10000) >> 10)
                b = 0xD800 + ((hi - 0x10000) >> 10)
                if runs and a <= runs[-1][1] + 1:
                    runs[-1] = (runs[-1][0], b, _PAIR)
                else:
                    runs.append((a, b, _PAIR))
        return runs

    def _fill_hex(self, key: _Hex, targets: np.ndarray) -> None:
        size = 1 << (4 * (key.left - 1))
        for byte in _HEX:
            digit = int(chr(byte), 16)
            part = _clip(key.segments, digit * size, (digit + 1) * size - 1)
            if not part:
                continue
            pair = any(t == _PAIR for _, _, t in part)
            base = key.base + digit * size if key.q >= 0 and pair else 0
            if key.left > 1:
                targets[byte] = self._row(_Hex(key.left - 1, part, key.q if pair else -1, base))
            elif pair:
                first = 0x10000 + ((base - 0xD800) << 10)
                low = _clip(self._automaton.edges(key.q), first, first + 0x3FF)
                targets[byte] = self._row(_LowEscape(0, low))
            else:
                targets[byte] = self._target(part[0][2])

    def _fill_low_escape(self, key: _LowEscape, targets: np.ndarray) -> None:
        if key.at == 0:
            targets[0x5C] = self._row(_LowEscape(1, key.segments))
        else:
            shifted = tuple((a + 0xDC00, b + 0xDC00, t) for a, b, t in key.segments)
            targets[0x75] = self._row(_Hex(4, shifted, -1, 0))


@lru_cache(maxsize=256)
def _loop_bits(ranges: tuple[tuple[int, int], ...], json: bool) -> np.ndarray:
    """The ASCII characters of ranges (but for those that a JSON string escapes) as four words."""
    inside = np.zeros(0x80, np.bool_)
    for lo, hi in ranges:
        inside[lo : hi + 1] = True
    if json:
        inside[:0x20] = inside[0x22] = inside[0x5C] = False
    return np.packbits(inside, bitorder="little").view(np.int32)


def _covers_text(ranges: Iterable[tuple[int, int]]) -> bool:
    """Whether disjoint ranges hold every character beyond ASCII."""
    covered = sum(hi - max(lo, 0x80) + 1 for lo, hi in ranges if hi >= 0x80)
    return covered == MAX_CODE_POINT + 1 - 0x80 - (SURROGATES[1] - SURROGATES[0] + 1)


_ANY_STRING_LEAF = Lowering(ANY_STRING, json=True, counted=True)
GENERIC_STRING_ROW = _ANY_STRING_LEAF.start_row()
"""Row of any JSON string, after its opening quote."""
