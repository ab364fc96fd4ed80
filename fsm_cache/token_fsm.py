"""Byte automaton x vocabulary: token masks and transitions, made on demand and shared by all cursors."""

from __future__ import annotations

import numpy as np

from ..grammar.counted_text import end_of_token, needs_whole_characters
from ..grammar.grammar import Compiled, Grammar
from ..grammar.limits import Limits
from ..grammar.machine import Machine
from ..grammar.machine_layout import DEAD, NIL, PARENT
from ..grammar.structural_tag.symbols import TOKEN_LEAD
from .book import Book
from .cursor import Cursor
from .doubts import NO_DOUBTS, Doubts
from .forced import CHOICE, only_byte
from .mask import Mask
from .mask_maker import MaskMaker
from .memo import Memo
from .vocabulary import Vocabulary

Place = tuple[tuple[int, ...], tuple[int, ...]]
_Key = int | tuple[int, ...]  # a state, or one inside recorded text and the questions that its end settles

_STEP_BYTES = 200  # of a remembered transition
_DEFAULT_MAX_BYTES = 64 << 20


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
        self._book = Book(max_bytes // 4)
        self._steps: Memo[int, int] = Memo(max_bytes // 4)  # by state and token

    def cursor(self) -> Cursor:
        """A cursor before the first token."""
        return Cursor(self)

    @property
    def num_bytes(self) -> int:
        """Memory that goes with this automaton and no other, about: without masks and tables of leaves, see `Vocabulary.shared_bytes`."""
        return self._machine.num_bytes + self._book.num_bytes + self._steps.num_bytes + _STEP_BYTES * len(self._masks)

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
        return self.vocabulary.masks.own(row, is_end=self._machine.accepting(state) and not rest.any())

    # --- what cursors ask ------------------------------------------------------------------------------------------

    def mask(self, state: int) -> Mask:
        """The allowed tokens of `state`. Raises LimitError."""
        with self._machine.lock:
            mask = self._masks.get(state)
            if mask is None:
                bare, text = self._machine.split_record(state)
                shared = self._machine.mask_state(bare)
                doubts = NO_DOUBTS if text == NIL else Doubts(self._machine, text, shared)
                key = (shared, *sorted(doubts.settled)) if doubts.is_recorded else shared
                mask = self._masks.get(key) if key != state else None
                if mask is None:
                    mask = MaskMaker(self._machine, self.vocabulary, self._book, doubts).make(state, shared)
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


def compile_grammar(grammar: Grammar, vocabulary: Vocabulary, limits: Limits | None = None) -> TokenFSM:
    """The token FSM of a grammar.

    Raises:
        GrammarError: the constraint admits nothing.
        LimitError: a budget is reached.
    """
    return TokenFSM(grammar.compile(limits, vocabulary.named_tokens), vocabulary)
