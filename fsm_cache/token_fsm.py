"""Byte automaton x vocabulary: token masks and transitions, made on demand and shared by all cursors."""

from __future__ import annotations

import numpy as np

from ..grammar.counted_text import end_of_token, needs_whole_characters
from ..grammar.grammar import Compiled, Grammar
from ..grammar.limits import Limits
from ..grammar.machine import Machine
from ..grammar.machine_layout import DEAD, DOUBT, H_NEED_A, NIL, OFF, PARENT, A
from ..grammar.structural_tag.symbols import TOKEN_LEAD
from .cursor import Cursor
from .doubts import Doubts
from .forced import CHOICE, only_byte
from .leaf_tables import LeafTable
from .mask import NO_ROW, Mask
from .memo import Memo
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
    MEMBERS,
    NAMED,
    OBJECT,
    POSITION,
    QUOTE,
    REST,
    SPACE,
    STRING,
    WALK,
    add_all,
    add_common,
    add_fitting,
    classify,
    set_bits,
    walk,
    walk_names,
)

Place = tuple[tuple[int, ...], tuple[int, ...]]
_Key = int | tuple[int, ...]  # a state, or one inside recorded text and the questions that its end settles

_NARROW = 1024  # masks that add at most so many tokens to a shared row are kept as ids
_STEP_BYTES = 200  # of a remembered transition
_DEFAULT_MAX_BYTES = 64 << 20
_UNBOUNDED = 1 << 14  # characters: more than any token has


class TokenFSM:
    """States of one grammar over one vocabulary. Thread-safe.

    Args:
        compiled: the byte automaton.
        vocabulary: the tokens.
        max_bytes: memory for remembered masks and transitions; what was not used for long goes first.
    """

    def __init__(self, compiled: Compiled, vocabulary: Vocabulary, max_bytes: int = _DEFAULT_MAX_BYTES):
        self.vocabulary = vocabulary
        self.start = compiled.start
        self._machine: Machine = compiled.machine
        self._masks: Memo[_Key, Mask] = Memo(max_bytes // 2)
        self._closing: Memo[int, np.ndarray] = Memo(max_bytes // 4)  # tokens that close a string, by the state after it
        self._steps: Memo[int, int] = Memo(max_bytes // 4)  # by state and token

    def cursor(self) -> Cursor:
        """A cursor before the first token."""
        return Cursor(self)

    @property
    def mask_bytes(self) -> int:
        """Memory of the remembered masks."""
        return self._masks.num_bytes

    @property
    def num_bytes(self) -> int:
        """Memory that goes with this automaton, about."""
        return self._machine.num_bytes + self._masks.num_bytes + self._closing.num_bytes + self._steps.num_bytes

    @property
    def is_full(self) -> bool:
        """Whether the byte automaton has used up half of a budget, so that new texts should rather start with a fresh one."""
        return self._machine.is_half_full

    def _without_unfinished(self, state: int, mask: Mask) -> Mask:
        """The mask without tokens after which a text might have to end inside a character."""
        row = mask.row(self.vocabulary.row_words)
        for token in self.vocabulary.unfinished:
            if row[token >> 5] >> (token & 31) & 1 and self._step(state, token) == DEAD:
                row.view(np.uint32)[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)
        rest = row.copy()
        for token in self.vocabulary.eos_token_ids:
            rest.view(np.uint32)[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)
        return Mask.of(row, NO_ROW, row.nbytes, is_end=self._machine.accepting(state) and not rest.any())

    # --- what cursors ask ------------------------------------------------------------------------------------------

    def mask(self, state: int) -> Mask:
        """The allowed tokens of `state`. Raises LimitError."""
        with self._machine.lock:
            mask = self._masks.get(state)
            if mask is None:
                bare, text = self._machine.split_record(state)
                shared = self._machine.mask_state(bare)
                doubts = Doubts(self._machine, text, shared)
                key = (shared, *sorted(doubts.settled)) if doubts.is_recorded else shared
                mask = self._masks.get(key) if key != state else None
                if mask is None:
                    mask = _MaskMaker(self._machine, self.vocabulary, self._closing, doubts).make(state, shared)
                    if needs_whole_characters(self._machine, shared):
                        mask = self._without_unfinished(state, mask)
                    if doubts.met:
                        key = state
                    self._masks.put(key, mask, mask.num_bytes)
                if key != state:
                    self._masks.put(state, mask, _STEP_BYTES)
            return mask

    def advance(self, state: int, token: int) -> int:
        """The state after the bytes of `token`, or DEAD."""
        key = state << 32 | token
        with self._machine.lock:
            target = self._steps.get(key)
            if target is None:
                target = self._step(state, token)
                if 0 <= token < self.vocabulary.vocab_size:
                    self._steps.put(key, target, _STEP_BYTES)
            return target

    def _step(self, state: int, token: int) -> int:
        data = self.vocabulary.spellings[token] if 0 <= token < self.vocabulary.vocab_size else None
        target = DEAD if data is None else self._machine.run(state, data)
        return target if target == DEAD else end_of_token(self._machine, target)

    def loop(self, state: int) -> Mask | None:
        """Tokens that lead from `state` back to it; None where that is not known without trying them."""
        with self._machine.lock:
            return self.vocabulary.loops.of(self._machine, state)

    def accepting(self, state: int) -> bool:
        with self._machine.lock:
            return self._machine.accepting(state)

    def forced_bytes(self, state: int, limit: int) -> bytes:
        """The longest text, up to `limit` bytes, that must follow `state`."""
        forced = bytearray()
        with self._machine.lock:
            while len(forced) < limit and not self._machine.accepting(state):
                byte = self._only_byte(state)
                if byte in (CHOICE, TOKEN_LEAD):
                    break
                forced.append(byte)
                state = self._machine.run(state, bytes((byte,))) if self._is_read(state, byte) else int(self.vocabulary.scratch.status[0])
        return bytes(forced)

    def _is_read(self, state: int, byte: int) -> bool:
        """Whether the text behind `state` may have to be recorded once `byte` is read."""
        return byte in b"[{" or self._machine.split_record(state)[1] != NIL

    def _only_byte(self, state: int) -> int:
        """The byte that must follow, with the state behind it in `scratch.status`, or CHOICE."""
        scratch = self.vocabulary.scratch
        state, text = self._machine.split_record(state)
        while True:
            answer = int(only_byte(self._machine.memory, state, text, scratch.out, scratch.status))
            if answer >= 0 or answer == CHOICE:
                return answer
            self._machine.serve(answer)

    def place(self, state: int) -> Place:
        """Where in the grammar `state` is: what is being read and what it is part of, without what lies around that.

        Texts that reached the same place along different ways, such as two items of one array, tend to continue alike.
        """
        nodes = self._machine.nodes
        with self._machine.lock:
            state, _ = self._machine.split_record(state)
            return tuple(nodes[state, :PARENT].tolist()), tuple(nodes[nodes[state, PARENT], :PARENT].tolist())


class _MaskMaker:
    """Makes one mask: shared rows, and ids of the tokens that they lack.

    Inside recorded text, what tokens do behind a string is not remembered, since it may depend on that text.
    """

    def __init__(self, machine: Machine, vocabulary: Vocabulary, closing: Memo[int, np.ndarray], doubts: Doubts):
        self._machine = machine
        self._vocabulary = vocabulary
        self._scratch: Scratch = vocabulary.scratch
        self._known_closing = closing
        self._doubts = doubts
        self._doubtful: list[int] = []  # tokens to try one by one
        self._bases: list[np.ndarray] = []
        self._count = 0  # ids so far, in scratch.found
        self._pending: list[int] = []

    def make(self, whole: int, state: int) -> Mask:
        """The mask of `state`, which is `whole` without what is recorded and does not matter."""
        self._pending.append(state)
        seen: set[int] = set()
        while self._pending:
            node = self._pending.pop()
            if node in seen:
                continue
            seen.add(node)
            self._add(node)
            if self._count > self._vocabulary.vocab_size:
                self._bases.append(self._row())
                self._count = 0
        self._try(whole, None)
        accepting = self._machine.accepting(state)
        is_end = accepting and self._count == 0 and not any(base.any() for base in self._bases)
        if accepting:
            self._count = add_all(self._vocabulary.eos_array, self._scratch.found, self._count)
        if len(self._bases) <= 1 and self._count <= _NARROW:
            ids = self._scratch.found[: self._count].copy()
            return Mask.of(self._bases[0] if self._bases else NO_ROW, ids, ids.nbytes, is_end=is_end)
        row = self._row()
        for base in self._bases:
            row |= base
        return Mask.of(row, NO_ROW, row.nbytes, is_end=is_end)

    def _try(self, state: int, closed: np.ndarray | None) -> None:
        """Adds those of the doubtful tokens that may be read in `state`, without as many bytes at their beginning as `closed` says."""
        spellings, taken = self._vocabulary.spellings, list[int]()
        for token in self._doubtful:
            data = (spellings[token] or b"")[0 if closed is None else closed[token] :]
            if self._machine.run(state, data) != DEAD:
                taken.append(token)
        self._doubtful = []
        self._count = add_all(np.array(taken, np.int32), self._scratch.found, self._count)

    def _row(self) -> np.ndarray:
        """The ids so far as a row."""
        row = np.zeros(self._vocabulary.row_words, np.int32)
        set_bits(row, self._scratch.found[: self._count])
        return row

    def _add(self, node: int) -> None:
        """Adds the tokens that one node allows, or leaves further nodes pending whose tokens it allows too."""
        info, machine = self._scratch.info, self._machine
        while (code := classify(machine.memory, node, info)) < 0:
            machine.serve(code)
        way, a, b, c, after, begins = info.tolist()
        if self._doubts.is_recorded and way in _BY_TABLE:
            way = REST if way in (STRING, NAMED) else WALK
        if way == WALK:
            self._walk_all(node, self._vocabulary.trie)
        elif way == IN_LEAF:
            self._add_leaf(a, b, after)
            if c:
                self._pending.append(after)
        elif way == AT_VALUE:
            if a >= 0:
                self._add_leaf(a, b, after)
            self._add_beginnings(node, begins)
        elif way == MEMBERS:
            nodes = machine.nodes
            while node != NIL:
                self._pending.append(int(nodes[node, A]))
                node = int(nodes[node, PARENT])
        else:
            tables = self._vocabulary.string_tables[a]
            if way == STRING:
                self._add_string(tables, b, c, after)
            elif way == NAMED:
                self._add_named(tables, node, after)
            else:
                self._bases.append(tables.plain_row(None if b < 0 else b))
                self._walk_all(node, tables.closing)

    # --- strings ---------------------------------------------------------------------------------------------------

    def _add_string(self, tables: StringTables, room: int, lack: int, after: int) -> None:
        if room < 0 and lack == 0:
            self._bases.append(tables.closable_row)
            self._count = add_all(self._closing(tables, after), self._scratch.found, self._count)
        else:
            high = room if room >= 0 else _UNBOUNDED
            self._bases.append(tables.plain_row(high))
            self._add_fitting(tables, after, lack, high)

    def _add_named(self, tables: StringTables, node: int, after: int) -> None:
        scratch, closing, machine = self._scratch, tables.closing, self._machine
        path, out, found, status, dropped = scratch.path, scratch.out, scratch.found, scratch.status, scratch.dropped
        count = walk_names(machine.memory, closing.memory, path, out, found, status, dropped, node, 0, self._count)
        while count < 0:
            at, done = int(status[POSITION]), int(status[FOUND])
            if count == DOUBT:
                self._doubtful.extend(closing.through(at).tolist())
                at = int(closing.nodes[at, END])
            else:
                machine.serve(count)
            count = walk_names(machine.memory, closing.memory, path, out, found, status, dropped, NIL, at, done)
        self._count = count
        if not status[DROPPED]:
            self._bases.append(tables.closable_row)
            self._count = add_all(self._closing(tables, after), found, self._count)
        else:
            self._bases.append(tables.plain_row(None))
            self._add_fitting(tables, after, 0, _UNBOUNDED)
            dropped[closing.order] = 0

    def _add_fitting(self, tables: StringTables, after: int, low: int, high: int) -> None:
        """Adds the tokens that close a string after low to high characters, but for dropped ones."""
        scratch = self._scratch
        for ids in (tables.closers, self._closing(tables, after)):
            self._count = add_fitting(ids, tables.lengths, low, high, scratch.dropped, scratch.found, self._count)

    def _closing(self, tables: StringTables, after: int) -> np.ndarray:
        """Tokens that close the string and go on from the state `after`."""
        key = 2 * after + tables.tidy
        ids = self._known_closing.get(key)
        if ids is None:
            before, doubtful = self._count, self._doubtful
            self._doubtful = []
            self._walk_all(after, tables.suffixes)
            self._try(after, tables.closed)
            self._doubtful = doubtful
            ids = self._scratch.found[before : self._count].copy()
            self._known_closing.put(key, ids, ids.nbytes + _STEP_BYTES)
            self._count = before
        return ids

    # --- other leaves ----------------------------------------------------------------------------------------------

    def _add_leaf(self, row: int, serial: int, after: int) -> None:
        """Adds the tokens that a leaf in `row` allows, with `after` what follows it, but for those that begin after it."""
        table, scratch = self._leaf_table(row, serial), self._scratch
        if table.base is not NO_ROW:
            self._bases.append(table.base)
        self._count = add_all(table.ids, scratch.found, self._count)
        if table.closing is not None:
            ids = self._closing(self._vocabulary.string_tables[table.tidy], after)
            self._count = add_common(ids, table.closing, scratch.found, self._count, scratch.dropped)
        nodes = self._vocabulary.trie.nodes
        for exit_node in table.exits:
            self._walk(after, self._vocabulary.trie, exit_node + 1, int(nodes[exit_node, END]))

    def _leaf_table(self, row: int, serial: int) -> LeafTable:
        tables, before = self._vocabulary.leaf_tables, self._count
        table = tables.get(row, serial)
        if table is None:
            kept = self._scratch.found[:before].copy()
            table = tables.make(self._machine, row, serial)
            self._scratch.found[:before] = kept
        return table

    def _add_beginnings(self, node: int, begins: int) -> None:
        """Adds the tokens with which a value begins other than a scalar, or after whitespace."""
        trie = self._vocabulary.trie
        for kind, first_bytes in _BEGINNINGS:
            if begins & kind:
                for byte in first_bytes:
                    start, stop = trie.first[byte]
                    if start < stop:
                        self._walk(node, trie, start, stop)

    # --- walks -----------------------------------------------------------------------------------------------------

    def _walk_all(self, state: int, trie: Trie) -> None:
        self._walk(state, trie, 0, len(trie.nodes))

    def _walk(self, state: int, trie: Trie, start: int, stop: int) -> None:
        """Adds the tokens of the trie nodes from `start` to `stop`, siblings and what is below them, that may be read in `state`."""
        scratch, machine = self._scratch, self._machine
        path, out, found, status = scratch.path, scratch.out, scratch.found, scratch.status
        answered = OFF
        count = walk(machine.memory, trie.memory, path, out, found, status, state, start, stop, self._count, answered)
        while count < 0:
            at, done = int(status[POSITION]), int(status[FOUND])
            if count == DOUBT:
                question, again = int(machine.header[H_NEED_A]), at == start and answered != OFF
                tokens = trie.through(at)
                begun = (self._vocabulary.spellings[tokens[0]] or b"")[: trie.nodes[at, DEPTH]]
                if question == OFF or again or self._doubts.arise(question, begun):
                    self._doubts.met |= self._doubts.is_recorded
                    self._doubtful.extend(tokens.tolist())
                    start, answered = int(trie.nodes[at, END]), OFF
                else:
                    start, answered = at, question
            else:
                answered = answered if at == start else OFF
                start = at
                machine.serve(count)
            count = walk(machine.memory, trie.memory, path, out, found, status, NIL, start, stop, done, answered)
        self._count = count


_BY_TABLE = frozenset((STRING, NAMED, IN_LEAF, AT_VALUE))
_BEGINNINGS = ((OBJECT, b"{"), (ARRAY, b"["), (QUOTE, b'"'), (SPACE, b"\t\n\r "))


def compile_grammar(grammar: Grammar, vocabulary: Vocabulary, limits: Limits | None = None) -> TokenFSM:
    """The token FSM of a grammar.

    Raises:
        GrammarError: the constraint admits nothing.
        LimitError: a budget is reached.
    """
    return TokenFSM(grammar.compile(limits, vocabulary.special_tokens), vocabulary)
