"""Byte automaton x vocabulary: token masks and transitions, made on demand and shared by all cursors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
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
    DOUBT,
    F_EXPANDED,
    F_PLAIN,
    FLAGS,
    FR_CLASSES,
    GUARD,
    H_NEED_A,
    KEY,
    KEY_CLASSES,
    KEY_TAILS,
    KIND,
    LEAF,
    NIL,
    OFF,
    PARENT,
    SET,
    A,
    B,
    C,
)
from .cursor import Cursor
from .string_tables import StringTables
from .trie import DEPTH, END, FIRST, LAST, Trie
from .vocabulary import Vocabulary
from .walk import set_bits, unpack, walk

_NARROW = 512  # masks with at most so many tokens are kept as lists of ids
_MAX_STEPS = 50_000  # transitions remembered before they are forgotten together
_DEFAULT_MASK_BYTES = 64 << 20


_Key = int | tuple[int, ...]  # a state, or one inside recorded text and the questions that its end settles


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
        self._masks: OrderedDict[_Key, _Mask] = OrderedDict()
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

    @property
    def is_worn(self) -> bool:
        """See `Machine.is_worn`."""
        return self._machine.is_worn

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
        whole, key = state, state
        mask, doubts = self._masks.get(key), _Doubts(self._machine, NIL)
        if mask is None:
            bare, text = self._machine.split_record(whole)
            state = key = self._machine.mask_state(bare)
            if text != NIL:
                doubts = _Doubts(self._machine, text)
                doubts.look_around(state)
                key = (state, *sorted(doubts.settled))
            mask = self._masks.get(key)
        if mask is not None:
            self._masks.move_to_end(key)
            return mask
        row = self._scratch
        row.fill(0)
        nodes = self._machine.nodes
        if nodes[state, KIND] == SET:
            rest = state
            while rest != NIL:
                member, rest = int(nodes[rest, A]), int(nodes[rest, PARENT])
                self._add_node(member, row, doubts)
        else:
            self._add_node(state, row, doubts)
        taken = [t for t in doubts.tokens if self._machine.run(whole, self.vocabulary.token_bytes[t] or b"") != DEAD]
        set_bits(row, np.array(taken, np.int32))
        if self._machine.accepting(state):
            set_bits(row, self.vocabulary.eos_array)
        return self._remember(whole if doubts.met else key, row)

    def _remember(self, key: _Key, row: np.ndarray) -> _Mask:
        count = unpack(row, self._ids)
        mask = _Mask(True, row.copy()) if count < 0 else _Mask(False, self._ids[:count].copy())
        self._masks[key] = mask
        self._mask_bytes += mask.data.nbytes
        while self._mask_bytes > self._max_mask_bytes and len(self._masks) > 1:
            _, old = self._masks.popitem(last=False)
            self._mask_bytes -= old.data.nbytes
        return mask

    def _add_node(self, node: int, row: np.ndarray, doubts: _Doubts) -> None:
        """Sets the tokens that one node allows; those that depend on more than the walk knows go to `doubts`."""
        room = self._plain_room(node)
        if room is _NOT_PLAIN:
            self._walk(node, self.vocabulary.trie, row, doubts)
            return
        assert room is None or isinstance(room, int)
        np.bitwise_or(row, self._tables.plain_row(room), out=row)
        self._walk(node, self._tables.rest, row, doubts)

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
            if machine.nodes[parent, KIND] not in (ARRAY_AFTER, GUARD):
                allowed &= machine.table[machine.frames[machine.nodes[parent, A]] + FR_CLASSES]
            if not allowed or row[KEY_TAILS] != -1 or c != NIL:
                return _NOT_PLAIN
        return None

    def _walk(self, node: int, trie: Trie, row: np.ndarray, doubts: _Doubts) -> None:
        self._path[0] = node
        machine, status = self._machine, self._status
        position, size, answered = 0, len(trie.nodes), OFF
        while position < size:
            at = walk(
                machine.memory, trie.nodes, trie.same, trie.subtrees, trie.order, self._path, self._out, row, position, answered, status
            )
            if at < size and status[0] == DOUBT:
                question = int(machine.header[H_NEED_A])
                tokens = trie.order[trie.subtrees[at, FIRST] : trie.subtrees[at, LAST]]
                begun = (self.vocabulary.token_bytes[tokens[0]] or b"")[: trie.nodes[at, DEPTH]]
                is_first = at != position or answered == OFF
                if question != OFF and is_first and not doubts.arise(question, begun):
                    position, answered = at, question
                else:
                    doubts.met = True
                    doubts.tokens.extend(tokens.tolist())
                    position, answered = int(trie.nodes[at, END]), OFF
            else:
                answered = answered if at == position else OFF
                position = at
                if at < size:
                    machine.serve(int(status[0]))


class _Doubts:
    """What the walk of one mask leaves to be tried token by token.

    Attributes:
        tokens: the tokens to try.
        met: whether anything depended on the text recorded before the mask.
        settled: questions whose answer does not depend on the text, given how it ends.
    """

    def __init__(self, machine: Machine, text: int):
        self._machine = machine
        self._text = text
        self._known: dict[int, Callable[[bytes], bool]] = {}
        self.tokens: list[int] = []
        self.met = False
        self.settled: set[int] = set()

    def look_around(self, state: int) -> None:
        """Takes up the questions that follow the value that `state` is inside of."""
        for question in self._machine.questions_around(state):
            doubts = self._machine.doubts(question, self._text, inside=True)
            if doubts is None:
                self.settled.add(question)
            else:
                self._known[question] = doubts

    def arise(self, question: int, begun: bytes) -> bool:
        """Whether the answer depends on the value that ends with `begun`."""
        if question in self.settled:
            return False
        self.met = True
        doubts = self._known.get(question)
        if doubts is None:
            found = self._machine.doubts(question, self._text, inside=False)
            assert found is not None, "only what ends within a value can be settled"
            doubts = self._known[question] = found
        return doubts(begun)


_NOT_PLAIN = object()


def compile_grammar(grammar: Grammar, vocabulary: Vocabulary, limits: Limits | None = None) -> TokenFSM:
    """The token FSM of a grammar.

    Raises:
        GrammarError: the constraint admits nothing.
        LimitError: a budget is reached.
    """
    return TokenFSM(grammar.compile(limits), vocabulary, vocabulary.string_tables)
