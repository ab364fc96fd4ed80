"""Byte automaton x vocabulary: token masks and transitions, made on demand and shared by all cursors."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from ..grammar.grammar import Compiled, Grammar
from ..grammar.kernels import OUT_SIZE
from ..grammar.limits import Limits
from ..grammar.machine import Machine
from ..grammar.machine_layout import (
    ARRAY_AFTER,
    COUNTED,
    DEAD,
    F_EXPANDED,
    F_PLAIN,
    FLAGS,
    FR_CLASSES,
    KEY,
    KEY_CLASSES,
    KEY_TAILS,
    KIND,
    LEAF,
    NIL,
    PARENT,
    SET,
    A,
    B,
    C,
)
from .cursor import Cursor
from .forced import CHOICE, only_byte
from .string_tables import StringTables
from .trie import Trie
from .vocabulary import Vocabulary
from .walk import set_bits, unpack, walk

Place = tuple[tuple[int, ...], tuple[int, ...]]

_NARROW = 512  # masks with at most so many tokens are kept as lists of ids
_MAX_STEPS = 50_000  # transitions remembered before they are forgotten together
_DEFAULT_MASK_BYTES = 64 << 20


class _Mask(NamedTuple):
    """Allowed tokens: a full row, or ids when they are few."""

    is_row: bool
    data: np.ndarray


class TokenFSM:
    """States of one grammar over one vocabulary. Thread-safe.

    Args:
        compiled: the byte automaton.
        vocabulary: the tokens.
        tables: string masks of the vocabulary.
        max_mask_bytes: memory for remembered masks; the least recently used go first.
    """

    def __init__(self, compiled: Compiled, vocabulary: Vocabulary, tables: StringTables, max_mask_bytes: int = _DEFAULT_MASK_BYTES):
        self.vocabulary = vocabulary
        self.start = compiled.start
        self._machine: Machine = compiled.machine
        self._tables = tables
        self._masks: OrderedDict[int, _Mask] = OrderedDict()
        self._steps: dict[tuple[int, int], int] = {}  # transitions taken, by state and token
        self._mask_bytes = 0
        self._max_mask_bytes = max_mask_bytes
        self._path = np.zeros(vocabulary.trie.max_depth + 2, np.int32)
        self._status = np.zeros(1, np.int32)
        self._out = np.zeros(OUT_SIZE, np.int32)
        self._scratch = np.zeros(vocabulary.row_words, np.int32)
        self._ids = np.zeros(_NARROW, np.int32)

    def cursor(self) -> Cursor:
        """A cursor before the first token."""
        return Cursor(self)

    # --- what cursors ask ------------------------------------------------------------------------------------------

    def fill_mask(self, state: int, row: np.ndarray) -> None:
        """Overwrites `row` (int32 [ceil(V / 32)]) with the mask of `state`.

        Raises:
            LimitError: a budget of the grammar is reached.
        """
        with self._machine.lock:
            mask = self._mask(state)
            if mask.is_row:
                np.copyto(row, mask.data)
            else:
                row.fill(0)
                set_bits(row, mask.data)

    def advance(self, state: int, token: int) -> int:
        """The state after the bytes of `token`, or DEAD."""
        with self._machine.lock:
            target = self._steps.get((state, token))
            if target is None:
                data = self.vocabulary.token_bytes[token] if 0 <= token < self.vocabulary.vocab_size else None
                target = DEAD if data is None else self._machine.run(state, data)
                if len(self._steps) >= _MAX_STEPS:
                    self._steps.clear()
                self._steps[state, token] = target
            return target

    def accepting(self, state: int) -> bool:
        with self._machine.lock:
            return self._machine.accepting(state)

    def forced_bytes(self, state: int, limit: int) -> bytes:
        """The longest text, up to `limit` bytes, that must follow `state`."""
        forced = bytearray()
        with self._machine.lock:
            while len(forced) < limit and not self._machine.accepting(state):
                byte = self._only_byte(state)
                if byte == CHOICE:
                    break
                forced.append(byte)
                state = int(self._status[0])
        return bytes(forced)

    def _only_byte(self, state: int) -> int:
        """The byte that must follow, with the state behind it in `_status`, or CHOICE."""
        while True:
            answer = int(only_byte(self._machine.memory, state, self._out, self._status))
            if answer >= 0 or answer == CHOICE:
                return answer
            self._machine.serve(answer)

    def place(self, state: int) -> Place:
        """Where in the grammar `state` is: what is being read and what it is part of, without what lies around that.

        Texts that reached the same place along different ways, such as two items of one array, tend to continue alike.
        """
        nodes = self._machine.nodes
        with self._machine.lock:
            return tuple(nodes[state, :PARENT].tolist()), tuple(nodes[nodes[state, PARENT], :PARENT].tolist())

    # --- masks -----------------------------------------------------------------------------------------------------

    def _mask(self, state: int) -> _Mask:
        mask = self._masks.get(state)
        if mask is None:
            state = self._machine.mask_state(state)
            mask = self._masks.get(state)
        if mask is not None:
            self._masks.move_to_end(state)
            return mask
        row = self._scratch
        row.fill(0)
        nodes = self._machine.nodes
        if nodes[state, KIND] == SET:
            rest = state
            while rest != NIL:
                member, rest = int(nodes[rest, A]), int(nodes[rest, PARENT])
                self._add_node(member, row)
        else:
            self._add_node(state, row)
        if self._machine.accepting(state):
            set_bits(row, self.vocabulary.eos_array)
        return self._remember(state, row)

    def _remember(self, state: int, row: np.ndarray) -> _Mask:
        count = unpack(row, self._ids)
        mask = _Mask(True, row.copy()) if count < 0 else _Mask(False, self._ids[:count].copy())
        self._masks[state] = mask
        self._mask_bytes += mask.data.nbytes
        while self._mask_bytes > self._max_mask_bytes and len(self._masks) > 1:
            _, old = self._masks.popitem(last=False)
            self._mask_bytes -= old.data.nbytes
        return mask

    def _add_node(self, node: int, row: np.ndarray) -> None:
        """Sets the tokens that one node allows."""
        room = self._plain_room(node)
        if room is _NOT_PLAIN:
            self._walk(node, self.vocabulary.trie, row)
            return
        assert room is None or isinstance(room, int)
        np.bitwise_or(row, self._tables.plain_row(room), out=row)
        self._walk(node, self._tables.rest, row)

    def _plain_room(self, node: int) -> int | object | None:
        """How many more characters of any kind fit into the string at `node`; _NOT_PLAIN where it is no such string."""
        machine = self._machine
        kind, a, b, c, parent = (int(x) for x in machine.nodes[node, [KIND, A, B, C, PARENT]])
        if kind not in (LEAF, KEY, COUNTED):
            return _NOT_PLAIN
        if not machine.rows[a, FLAGS] & F_EXPANDED:
            machine.row_targets(a)
        row = machine.rows[a]
        if not row[FLAGS] & F_PLAIN:
            return _NOT_PLAIN
        if kind == COUNTED:
            high = int(machine.table[c + 1])
            return None if high < 0 else high - b
        if kind == KEY:
            allowed = row[KEY_CLASSES]
            if machine.nodes[parent, KIND] != ARRAY_AFTER:
                allowed &= machine.table[machine.frames[machine.nodes[parent, A]] + FR_CLASSES]
            if not allowed or row[KEY_TAILS] != -1 or c != NIL:
                return _NOT_PLAIN
        return None

    def _walk(self, node: int, trie: Trie, row: np.ndarray) -> None:
        self._path[0] = node
        position, size = 0, len(trie.nodes)
        while position < size:
            position = walk(
                self._machine.memory, trie.nodes, trie.same, trie.subtrees, trie.order, self._path, self._out, row, position, self._status
            )
            if position < size:
                self._machine.serve(int(self._status[0]))


_NOT_PLAIN = object()


def compile_grammar(grammar: Grammar, vocabulary: Vocabulary, limits: Limits | None = None) -> TokenFSM:
    """The token FSM of a grammar.

    Raises:
        GrammarError: the constraint admits nothing.
        LimitError: a budget is reached.
    """
    return TokenFSM(grammar.compile(limits), vocabulary, vocabulary.string_tables)
