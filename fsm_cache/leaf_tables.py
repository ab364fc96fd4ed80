"""What the tokens of a vocabulary do inside the leaves that grammars share: made once per leaf state, for all grammars."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..grammar.machine import Machine
from ..grammar.machine_layout import F_COUNTED, F_TIDY, FLAGS, ROW_SERIAL
from ..grammar.row_store import STORE
from .alive import Alive
from .kernels.kit import EXIT_SIZE
from .kernels.leaf import SCAN_SIZE, count_new, group_by_byte, keep_useful, scan_counted, scan_leaf, useful_ways
from .kernels.rows import set_bits
from .mask import NO_ROW
from .trie import DEPTH, END

if TYPE_CHECKING:
    from .vocabulary import Vocabulary

_NARROW = 1024  # tables with more tokens hold a row instead of ids
_MANY_EXITS = 24  # ends that are not walked one by one if it can be helped
_MAX_BYTES = 64 << 20
_OBJECT_BYTES = 600  # of a table, besides its arrays
_NO_EXITS = np.zeros((0, EXIT_SIZE), np.int32)


@dataclass(frozen=True, eq=False)
class LeafTable:
    """Tokens from one state of a leaf.

    Attributes:
        base, ids: tokens that the leaf may begin with or be: a row (or NO_ROW) and ids.
        exits: int32 [n, EXIT_SIZE]: nodes of the vocabulary's trie, with what is below them, that come right after a place where the
            leaf may end, and where some token goes on that is not in `base` or `ids`: the first node, the end, and, for the first of
            several that begin with the same byte, the number of the first exit behind them, else 0.
        closing: instead of `exits`, where they are many: the tokens that go on after the closing quote of a string.
        tidy: whether that string is a tidy one.
        enders: of a key, the tokens that end it.
        bounded: of a key, whether after some token only a bounded number of keys is left.
        all_ids, needs, exit_needs: of a counted string, all the tokens by how many characters must fit for them, these numbers, and those
            of the exits.
        memory: for kernels, see `kernels.kit`.
    """

    base: np.ndarray
    ids: np.ndarray
    exits: np.ndarray
    closing: np.ndarray | None
    tidy: bool
    enders: np.ndarray
    bounded: bool
    all_ids: np.ndarray
    needs: np.ndarray
    exit_needs: np.ndarray
    memory: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        base, _ = _place(self.base)
        closing, num_closing = (0, -1) if self.closing is None else _place(self.closing)
        places = base, *_place(self.ids), *_place(self.exits), closing, num_closing, self.tidy, *_place(self.enders), self.bounded
        most = max(int(needs.max(initial=0)) for needs in (self.needs, self.exit_needs))
        counts = most, *_place(self.all_ids), *_place(self.needs)[:1], *_place(self.exit_needs)[:1]
        object.__setattr__(self, "memory", np.array((*places, *counts), np.int64))

    @property
    def num_bytes(self) -> int:
        arrays = (self.base, self.ids, self.exits, self.enders, self.all_ids, self.needs, self.exit_needs, self.memory)
        return _OBJECT_BYTES + sum(array.nbytes for array in arrays) + (0 if self.closing is None else self.closing.nbytes)


def _place(array: np.ndarray) -> tuple[int, int]:
    """Address and length of an array, for kernels."""
    return (array.ctypes.data, len(array)) if len(array) else (0, 0)


class LeafTables:
    """The tables of one vocabulary; the least recently used go first. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary):
        self._vocabulary = vocabulary
        self._tables: OrderedDict[tuple[int, int, int], LeafTable] = OrderedDict()
        self._alive: Alive[tuple[int, int, int], LeafTable] = Alive()
        self._lock = threading.Lock()
        self._num_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Memory of tables that only automata hold."""
        return self._alive.num_bytes - self._num_bytes

    def get(self, machine: Machine, row: int, outcome: int) -> LeafTable:
        """The table of a row; made with the calling thread's scratch if need be, where `machine` serves what is missing.

        Args:
            outcome: of a key, the class of undeclared keys that it ends as (CLASS_BASE + class); else -1.
        """
        key = row, int(STORE.rows[row, ROW_SERIAL]), outcome  # rows are used again: the serial tells the uses apart
        table = self._alive.get(key)
        if table is None:
            table = self._make(machine, row, outcome)
            table = self._alive.put(key, table, table.num_bytes)
        with self._lock:
            if key not in self._tables:
                self._tables[key] = table
                self._num_bytes += table.num_bytes
            self._tables.move_to_end(key)
            while self._num_bytes > _MAX_BYTES:
                self._num_bytes -= self._tables.popitem(last=False)[1].num_bytes
        return table

    def _make(self, machine: Machine, row: int, outcome: int) -> LeafTable:
        vocabulary = self._vocabulary
        trie, scratch = vocabulary.trie, vocabulary.scratch
        found, exits, enders, status = scratch.leaf_found, scratch.exits, scratch.enders, np.zeros(SCAN_SIZE, np.int32)
        path, needs, exit_needs = scratch.leaf_path, scratch.needs, scratch.exit_needs
        tidy, counted = (bool(STORE.rows[row, FLAGS] & flag) for flag in (F_TIDY, F_COUNTED))
        path[0], path[len(path) // 2] = row, 0
        if counted:
            lengths = vocabulary.string_tables[tidy].lengths
            machine.serve_until_done(
                lambda: scan_counted(machine.memory, trie.memory, lengths, path, found, needs, exits, exit_needs, status)
            )
        else:
            machine.serve_until_done(lambda: scan_leaf(machine.memory, trie.memory, outcome, path, found, exits, enders, status))
        _, num_found, num_exits, num_enders, bounded = status.tolist()
        all_exits = exits[:num_exits].copy() if counted else NO_ROW
        ids = found[:num_found].copy()
        base = NO_ROW
        if num_exits or num_found > _NARROW:
            base = np.zeros(vocabulary.row_words, np.int32)
            set_bits(base, ids)
        if num_exits:
            count_new(trie.memory, base, exits, num_exits, scratch.new)
            num_exits = int(keep_useful(trie.memory, exits, num_exits, scratch.new))
        by_need = np.argsort(needs[:num_found], kind="stable") if counted else NO_ROW
        nodes = exits[:num_exits]
        closing = self._closing(nodes, tidy) if num_exits > _MANY_EXITS else None
        ways = _NO_EXITS
        if counted and closing is None:
            ways = np.stack([nodes + 1, trie.nodes[nodes, END], np.zeros_like(nodes)], axis=1)
        elif num_exits and closing is None:
            places = np.empty((len(trie.nodes), 2), np.int32)
            count = int(useful_ways(trie.memory, exits, num_exits, scratch.new, places.reshape(-1)))
            ways = np.empty((count, EXIT_SIZE), np.int32)
            group_by_byte(trie.memory, places.reshape(-1), count, np.zeros(256, np.int32), ways.reshape(-1))
        fits = (ids[by_need], needs[by_need], exit_needs[np.searchsorted(all_exits, nodes)]) if counted else (NO_ROW, NO_ROW, NO_ROW)
        base, ids = (base, NO_ROW) if num_found > _NARROW else (NO_ROW, ids)
        return LeafTable(base, ids, ways, closing, tidy, enders[:num_enders].copy(), bool(bounded), *fits)

    def _closing(self, exits: np.ndarray, tidy: bool) -> np.ndarray | None:
        """Tokens that go on after the exits, if each of these is the end of a string."""
        trie, closed = self._vocabulary.trie, self._vocabulary.string_tables[tidy].closed
        parts: list[np.ndarray] = []
        for node in map(int, exits):  # the first one mostly tells
            tokens = trie.below(node)
            if (closed[tokens] != int(trie.nodes[node, DEPTH]) + 1).any():
                return None
            parts.append(tokens)
        return np.concatenate(parts)
