"""Byte automaton x vocabulary: token masks and transitions, made on demand and shared by all cursors."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from ..grammar.grammar import Compiled, Grammar
from ..grammar.limits import Limits
from ..grammar.machine import Machine
from ..grammar.machine_layout import DEAD, KIND, NIL, PARENT, SET, A
from .cursor import Cursor
from .leaf_tables import NO_ROW
from .scratch import Scratch
from .string_tables import StringTables
from .trie import DEPTH, END, Trie
from .vocabulary import Vocabulary
from .walk import (
    ARRAY,
    AT_VALUE,
    DROPPED,
    FOUND,
    IN_LEAF,
    NAMED,
    OBJECT,
    POSITION,
    QUOTE,
    SPACE,
    STOP,
    STRING,
    WALK,
    classify,
    fill_row,
    keep_common,
    keep_fitting,
    set_bits,
    walk,
    walk_names,
)

_NARROW = 1024  # masks that add at most so many tokens to a shared row are kept as ids
_MAX_STEPS = 50_000  # transitions remembered before they are forgotten together
_DEFAULT_MASK_BYTES = 64 << 20
_UNBOUNDED = 1 << 14  # characters: more than any token has


class _Mask(NamedTuple):
    """Allowed tokens: those of a row (of no words: none) and more ids. `num_bytes` is what only this mask holds."""

    base: np.ndarray
    ids: np.ndarray
    num_bytes: int


class TokenFSM:
    """States of one grammar over one vocabulary. Thread-safe.

    Args:
        compiled: the byte automaton.
        vocabulary: the tokens.
        max_mask_bytes: memory for remembered masks; the least recently used go first.
    """

    def __init__(self, compiled: Compiled, vocabulary: Vocabulary, max_mask_bytes: int = _DEFAULT_MASK_BYTES):
        self.vocabulary = vocabulary
        self.start = compiled.start
        self._machine: Machine = compiled.machine
        self._masks: OrderedDict[int, _Mask] = OrderedDict()
        self._exits: dict[tuple[int, bool], np.ndarray] = {}  # tokens that close a string, by the state after it
        self._steps: dict[tuple[int, int], int] = {}  # transitions taken, by state and token
        self._mask_bytes = 0
        self._max_mask_bytes = max_mask_bytes

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
        fill_row(row, mask.base, mask.ids)

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
                following = self._only_byte(state)
                if following is None:
                    break
                byte, state = following
                forced.append(byte)
        return bytes(forced)

    def _only_byte(self, state: int) -> tuple[int, int] | None:
        found: tuple[int, int] | None = None
        for byte in range(256):
            target = self._machine.run(state, bytes((byte,)))
            if target != DEAD:
                if found is not None:
                    return None
                found = byte, target
        return found

    # --- masks -----------------------------------------------------------------------------------------------------

    def _mask(self, state: int) -> _Mask:
        mask = self._masks.get(state)
        if mask is None:
            state = self._machine.mask_state(state)
            mask = self._masks.get(state)
        if mask is not None:
            self._masks.move_to_end(state)
            return mask
        mask = self._masks[state] = _MaskMaker(self._machine, self.vocabulary, self._exits).make(state)
        self._mask_bytes += mask.num_bytes
        while self._mask_bytes > self._max_mask_bytes and len(self._masks) > 1:
            _, old = self._masks.popitem(last=False)
            self._mask_bytes -= old.num_bytes
        return mask


class _MaskMaker:
    """Makes one mask: shared rows, and ids of the tokens that they lack."""

    def __init__(self, machine: Machine, vocabulary: Vocabulary, exits: dict[tuple[int, bool], np.ndarray]):
        self._machine = machine
        self._vocabulary = vocabulary
        self._scratch: Scratch = vocabulary.scratch
        self._exits = exits
        self._bases: list[np.ndarray] = []
        self._ids: list[np.ndarray] = []
        self._pending: list[int] = []

    def make(self, state: int) -> _Mask:
        self._pending.append(state)
        seen: set[int] = set()
        nodes = self._machine.nodes
        while self._pending:
            node = self._pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if nodes[node, KIND] == SET:
                while node != NIL:
                    self._pending.append(int(nodes[node, A]))
                    node = int(nodes[node, PARENT])
            else:
                self._add(node)
                nodes = self._machine.nodes
        if self._machine.accepting(state):
            self._ids.append(self._vocabulary.eos_array)
        return self._merged()

    def _merged(self) -> _Mask:
        ids = self._ids[0] if len(self._ids) == 1 else np.concatenate(self._ids) if self._ids else NO_ROW
        if len(self._bases) <= 1 and len(ids) <= _NARROW:
            return _Mask(self._bases[0] if self._bases else NO_ROW, ids, ids.nbytes)
        row = np.zeros(self._vocabulary.row_words, np.int32)
        for base in self._bases:
            row |= base
        set_bits(row, ids)
        return _Mask(row, NO_ROW, row.nbytes)

    def _add(self, node: int) -> None:
        """Adds the tokens that one node allows, or leaves further nodes pending whose tokens it allows too."""
        info = self._scratch.info
        self._machine.serve_until_done(lambda: classify(self._machine.memory, node, info))
        way, *fields = info.tolist()
        if way == IN_LEAF:
            row, serial, ends, after, _ = fields
            self._add_leaf(row, serial, after)
            if ends:
                self._pending.append(after)
        elif way == AT_VALUE:
            row, serial, _, after, begins = fields
            if row >= 0:
                self._add_leaf(row, serial, after)
            self._add_beginnings(node, begins)
        elif way == WALK:
            self._ids.append(self._walk_all(node, self._vocabulary.trie))
        else:
            tidy, room, lack, after, _ = fields
            self._add_in_string(way, node, tidy, room, lack, after)

    # --- strings ---------------------------------------------------------------------------------------------------

    def _add_in_string(self, way: int, node: int, tidy: int, room: int, lack: int, after: int) -> None:
        tables = self._vocabulary.string_tables[tidy]
        if way == STRING:
            self._add_string(tables, room, lack, after, bool(tidy))
        elif way == NAMED:
            self._add_named(tables, node, after, bool(tidy))
        else:
            self._bases.append(tables.plain_row(None))
            self._ids.append(self._walk_all(node, tables.closing))

    def _add_string(self, tables: StringTables, room: int, lack: int, after: int, tidy: bool) -> None:
        ids = self._closing(tables, after, tidy)
        if room < 0 and lack == 0:
            self._bases.append(tables.closable_row)
        else:
            high = room if room >= 0 else _UNBOUNDED
            self._bases.append(tables.plain_row(high))
            ids = self._fitting(tables, np.concatenate((ids, tables.closers)), lack, high)
        self._ids.append(ids)

    def _add_named(self, tables: StringTables, node: int, after: int, tidy: bool) -> None:
        scratch, closing = self._scratch, tables.closing
        self._start(node, 0, len(closing.nodes))
        self._machine.serve_until_done(
            lambda: walk_names(
                self._machine.memory, closing.memory, scratch.path, scratch.out, scratch.found, scratch.status, scratch.dropped
            )
        )
        named = scratch.found[: int(scratch.status[FOUND])].copy()
        dropped = bool(scratch.status[DROPPED])
        ids = self._closing(tables, after, tidy)
        if not dropped:
            self._bases.append(tables.closable_row)
        else:
            self._bases.append(tables.plain_row(None))
            ids = self._fitting(tables, np.concatenate((ids, tables.closers)), 0, _UNBOUNDED)
            scratch.dropped[closing.order] = 0
        self._ids += [named, ids]

    def _fitting(self, tables: StringTables, ids: np.ndarray, low: int, high: int) -> np.ndarray:
        return ids[: keep_fitting(ids, len(ids), tables.lengths, low, high, self._scratch.dropped)]

    def _closing(self, tables: StringTables, after: int, tidy: bool) -> np.ndarray:
        """Tokens that close the string and go on from the state `after`."""
        ids = self._exits.get((after, tidy))
        if ids is None:
            ids = self._exits[after, tidy] = self._walk_all(after, tables.suffixes)
        return ids

    # --- other leaves ----------------------------------------------------------------------------------------------

    def _add_leaf(self, row: int, serial: int, after: int) -> None:
        """Adds the tokens that a leaf in `row` allows, with `after` what follows it, but for those that begin after it."""
        table = self._vocabulary.leaf_tables.get(self._machine, row, serial)
        if table.base is not NO_ROW:
            self._bases.append(table.base)
        self._ids.append(table.ids)
        if table.closing is not None:
            ids = self._closing(self._vocabulary.string_tables[table.tidy], after, table.tidy).copy()
            self._ids.append(ids[: keep_common(ids, table.closing, self._scratch.dropped)])
        nodes = self._vocabulary.trie.nodes
        for exit_node in table.exits:
            self._ids.append(self._walk(after, self._vocabulary.trie, exit_node + 1, int(nodes[exit_node, END])))

    def _add_beginnings(self, node: int, begins: int) -> None:
        """Adds the tokens with which a value begins other than a scalar, or after whitespace."""
        trie = self._vocabulary.trie
        for kind, first_bytes in _BEGINNINGS:
            if begins & kind:
                for byte in first_bytes:
                    start = trie.first[byte]
                    if start >= 0:
                        self._ids.append(self._walk(node, trie, start, int(trie.nodes[start, END])))

    # --- walks -----------------------------------------------------------------------------------------------------

    def _walk_all(self, state: int, trie: Trie) -> np.ndarray:
        return self._walk(state, trie, 0, len(trie.nodes))

    def _walk(self, state: int, trie: Trie, start: int, stop: int) -> np.ndarray:
        """Tokens of the trie nodes from `start` to `stop`, siblings and what is below them, that may be read in `state` before them."""
        scratch = self._scratch
        self._start(state, start, stop, int(trie.nodes[start, DEPTH]) if start < stop else 0)
        self._machine.serve_until_done(
            lambda: walk(self._machine.memory, trie.memory, scratch.path, scratch.out, scratch.found, scratch.status)
        )
        return scratch.found[: int(scratch.status[FOUND])].copy()

    def _start(self, state: int, start: int, stop: int, depth: int = 0) -> None:
        scratch = self._scratch
        scratch.path[depth] = state
        scratch.status[:] = 0
        scratch.status[POSITION] = start
        scratch.status[STOP] = stop


_BEGINNINGS = ((OBJECT, b"{"), (ARRAY, b"["), (QUOTE, b'"'), (SPACE, b"\t\n\r "))


def compile_grammar(grammar: Grammar, vocabulary: Vocabulary, limits: Limits | None = None) -> TokenFSM:
    """The token FSM of a grammar.

    Raises:
        GrammarError: the constraint admits nothing.
        LimitError: a budget is reached.
    """
    return TokenFSM(grammar.compile(limits), vocabulary)
