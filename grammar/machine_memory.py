"""The memory of one grammar's automaton, and what its states are."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from .errors import LimitError
from .kernel_cache import address_of
from .kernels import entries
from .kernels.step import step
from .kernels.unions import MAX_MEMBERS, OUT_SIZE, either
from .limits import Limits
from .machine_layout import (
    GROW,
    H_BUCKET_MASK,
    H_EITHER,
    H_NODE_CAPACITY,
    H_NODES,
    H_STEP,
    H_TRANSITION_MASK,
    HEADER_SIZE,
    KIND,
    NIL,
    NODE,
    PARENT,
    RECORD,
    SET,
    SETTINGS_SIZE,
    A,
)
from .node_memory import FIRST_NODES, take_first_nodes
from .row_store import STORE

TOO_MANY = f"more than {MAX_MEMBERS} alternatives are open at one place of the text"


class MachineMemory:
    """The arrays of one grammar's automaton, see `machine_layout`, and its states. Kernels find the arrays through `memory`.

    Args:
        limits: `max_nodes` bounds the nodes.

    Attributes:
        memory: int64 [8]: addresses of the arrays; another array once one of them has grown.
    """

    def __init__(self, limits: Limits):
        self.limits = limits
        block = _FIRST_BLOCK.copy()
        first = take_first_nodes()
        weakref.finalize(self, first.release).atexit = False
        self.nodes = first.array
        self.nodes[NIL] = _FIRST_NODE
        self.buckets, self.table, self.values = block[_PARTS[_BUCKETS]], block[_PARTS[_TABLE]], block[_PARTS[VALUES]]
        self.frames, self.header = block[_PARTS[FRAMES]], block[_PARTS[_HEADER]]
        self.transitions = block[_PARTS[_TRANSITIONS]].reshape(-1, 3)
        self.memory = _addresses(self.nodes, block)
        self._out = np.empty(OUT_SIZE, np.int32)
        self._table_used = SETTINGS_SIZE
        self._transitions_used = 0

    # --- states ----------------------------------------------------------------------------------------------------

    def node(self, kind: int, a: int, b: int, c: int, parent: int) -> int:
        """The node with these fields, made when absent."""
        if int(self.header[H_NODES]) + 1 >= len(self.nodes):
            self._grow_nodes()
        return int(entries.intern_node(self.memory, kind, a, b, c, parent))

    def members(self, state: int) -> list[int]:
        """The nodes that a state is the union of."""
        if int(self.nodes[state, KIND]) == RECORD:
            state = int(self.nodes[state, A])
        if int(self.nodes[state, KIND]) != SET:
            return [state]
        found = []
        while state != NIL:
            found.append(int(self.nodes[state, A]))
            state = int(self.nodes[state, PARENT])
        return found

    def union(self, states: Sequence[int]) -> int:
        """The union of at least one state."""
        while True:
            self._out[: len(states)] = states
            result = int(entries.union_of(self.memory, self._out, len(states)))
            if result >= 0:
                return result
            if result != GROW:
                raise LimitError(TOO_MANY)
            self._grow_nodes()

    # --- growing ---------------------------------------------------------------------------------------------------

    def append_bits(self, bits: int, count: int) -> int:
        """Stores the lowest `count` bits; answers their offset in the table."""
        return self._append(words_of(bits, count))

    def _append(self, data: Sequence[int] | np.ndarray) -> int:
        at = self._table_used
        while at + len(data) > len(self.table):
            self.table = doubled(self.table, 0)
            self.moved(_TABLE, self.table)
        # an array takes a list five times slower than its view takes a buffer
        self.table.data[at : at + len(data)] = data.data if isinstance(data, np.ndarray) else array("i", data)
        self._table_used = at + len(data)
        return at

    def _add_transition(self, frame: int, outcome: int, at: int) -> None:
        if 2 * self._transitions_used >= len(self.transitions):
            old = self.transitions[self.transitions[:, 0] >= 0]
            self.transitions = np.full((2 * len(self.transitions), 3), -1, np.int32)
            self.header[H_TRANSITION_MASK] = len(self.transitions) - 1
            self.moved(_TRANSITIONS, self.transitions)
            for f, o, offset in old.tolist():
                entries.add_transition(self.memory, f, o, offset)
        entries.add_transition(self.memory, frame, outcome, at)
        self._transitions_used += 1

    def _grow_nodes(self) -> None:
        if len(self.nodes) >= self.limits.max_nodes:
            raise LimitError(f"the constraint needs more than {self.limits.max_nodes} nodes (max_nodes)")
        self.nodes = doubled(self.nodes, 0)
        self.buckets = np.full(len(self.nodes) // 4, -1, np.int32)
        self.header[H_NODE_CAPACITY], self.header[H_BUCKET_MASK] = len(self.nodes), len(self.buckets) - 1
        self.moved(_NODES, self.nodes)
        self.moved(_BUCKETS, self.buckets)
        entries.rehash_nodes(self.memory)

    def moved(self, place: int, array: np.ndarray) -> None:
        """Tells the kernels where an array is now."""
        memory = self.memory.copy()
        memory[place] = array.ctypes.data
        self.memory = memory

    @property
    def num_nodes(self) -> int:
        """Nodes made so far."""
        return int(self.header[H_NODES])


# The arrays in the order in which kernels find them, with how many numbers they have at first. All but nodes and rows begin as parts of
# one block: it is copied faster than six arrays are made.
_NODES, _BUCKETS, _ROWS, _TABLE, VALUES, FRAMES, _TRANSITIONS, _HEADER = range(8)
_FIRST_BUCKETS, _FIRST_TRANSITIONS = 1 << 10, 128
_LENGTHS = (0, _FIRST_BUCKETS, 0, 1 << 10, 64, 64, 3 * _FIRST_TRANSITIONS, HEADER_SIZE)
_STARTS = (0, *accumulate(_LENGTHS))
_PARTS = tuple(slice(start, stop) for start, stop in pairwise(_STARTS))
_ROWS_ADDRESS = STORE.rows.ctypes.data  # they never move
_OFFSETS = np.array(_STARTS[:-1], np.int64) * np.dtype(np.int32).itemsize


def _addresses(nodes: np.ndarray, block: np.ndarray) -> np.ndarray:
    memory = _OFFSETS + block.ctypes.data
    memory[_NODES] = nodes.ctypes.data
    memory[_ROWS] = _ROWS_ADDRESS
    return memory


def _first_arrays() -> tuple[np.ndarray, np.ndarray]:
    """The one node and the block of an automaton that has nothing but NIL."""
    nodes, block = np.zeros((1, NODE), np.int32), np.zeros(_STARTS[-1], np.int32)
    for part in (_BUCKETS, VALUES, FRAMES, _TRANSITIONS):
        block[_PARTS[part]] = -1
    header = block[_PARTS[_HEADER]]
    header[H_NODE_CAPACITY], header[H_BUCKET_MASK], header[H_TRANSITION_MASK] = FIRST_NODES, _FIRST_BUCKETS - 1, _FIRST_TRANSITIONS - 1
    for place, far in ((H_STEP, step), (H_EITHER, either)):
        header[place : place + 2] = np.array([address_of(far)], np.uint64).view(np.int32)
    entries.intern_node(_addresses(nodes, block), NIL, 0, 0, 0, 0)
    return nodes, block


_FIRST_NODE, _FIRST_BLOCK = _first_arrays()


def words_of(bits: int, count: int) -> Sequence[int]:
    """The lowest `count` bits as 32-bit words."""
    return memoryview(bits.to_bytes((count + 31) // 32 * 4, "little")).cast("i")


def doubled(array: np.ndarray, fill: int) -> np.ndarray:
    shape = (2 * array.shape[0], *array.shape[1:])
    grown = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)  # zeros take memory only once used
    grown[: array.shape[0]] = array
    return grown
