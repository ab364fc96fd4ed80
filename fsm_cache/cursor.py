"""A position in a token FSM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..grammar.machine_layout import DEAD
from .kernels.rows import fill_row
from .mask import NO_ROW, Mask, write_masks

if TYPE_CHECKING:
    from .token_fsm import Place, TokenFSM

MAX_FORCED_BYTES = 4096
_NOTHING = Mask.of(NO_ROW, NO_ROW, 0)
_LEFT_CONTEXT = 8  # tokens before the forced text that may change how it is cut


class Cursor:
    """State and history of one generated text. Small; `fork` copies it. Not shared between threads.

    Attributes:
        fsm: the automaton.
        finished: an end token was taken.
    """

    __slots__ = ("_history", "_tokens", "finished", "fsm")

    def __init__(self, fsm: TokenFSM, history: list[int] | None = None, tokens: list[int] | None = None, finished: bool = False):
        self.fsm = fsm
        self._history = [fsm.start] if history is None else history
        self._tokens = [] if tokens is None else tokens
        self.finished = finished

    def fill_mask(self, row: np.ndarray) -> None:
        """Overwrites `row` (int32 [ceil(V / 32)]) with the allowed tokens; all zero once finished.

        Raises:
            LimitError: a budget of the grammar is reached.
            ValueError: the row has another shape or type.
        """
        if row.dtype != np.int32 or row.shape != (self.fsm.vocabulary.row_words,):
            raise ValueError(f"a mask row must be int32 [{self.fsm.vocabulary.row_words}], not {row.dtype} {list(row.shape)}")
        mask = self.mask()
        fill_row(row, mask.base, mask.ids)

    def mask(self) -> Mask:
        """The allowed tokens; none once finished. Raises LimitError."""
        return _NOTHING if self.finished else self.fsm.mask(self._history[-1])

    def advance(self, token_id: int) -> bool:
        """Takes a token. A refused token (answer False) changes nothing."""
        if self.finished:
            return False
        if token_id in self.fsm.vocabulary.eos_token_ids:
            if not self.accepting:
                return False
            self.finished = True
            self._history.append(self._history[-1])
            self._tokens.append(token_id)
            return True
        state = self.fsm.advance(self._history[-1], token_id)
        if state == DEAD:
            return False
        self._history.append(state)
        self._tokens.append(token_id)
        return True

    def follow(self, token_id: int, state: int) -> None:
        """Takes a token that is no end token and is known to lead to `state`, without looking it up."""
        self._history.append(state)
        self._tokens.append(token_id)

    @property
    def state(self) -> int:
        """Where in the automaton this is."""
        return self._history[-1]

    @property
    def accepting(self) -> bool:
        """Whether the text may end here."""
        return self.fsm.accepting(self._history[-1])

    @property
    def num_tokens(self) -> int:
        """Tokens taken so far."""
        return len(self._tokens)

    @property
    def place(self) -> Place:
        """Where in the grammar this is, comparable between cursors of the same automaton: see `TokenFSM.place`."""
        return self.fsm.place(self._history[-1])

    def forced_bytes(self, max_bytes: int = MAX_FORCED_BYTES) -> bytes:
        """Text that must follow whatever the model prefers, up to `max_bytes` of it; empty if there is a choice."""
        return b"" if self.finished else self.fsm.forced_bytes(self._history[-1], max_bytes)

    def forced_tokens(self, max_bytes: int = MAX_FORCED_BYTES) -> list[int]:
        """Tokens of the forced text, up to `max_bytes` of it, as the tokenizer itself would cut it after the text so far.

        The last one is left out, since what follows the forced text may still merge with it. Empty where the tokenizer's
        segmentation is not known, or differs from the tokens taken so far.
        """
        forced, encode = self.forced_bytes(max_bytes), self.fsm.vocabulary.encode
        if not forced or encode is None:
            return []
        left = self._tokens[-_LEFT_CONTEXT:]
        token_bytes = self.fsm.vocabulary.token_bytes
        try:
            text = (b"".join(token_bytes[t] or b"" for t in left) + forced).decode()
        except UnicodeDecodeError:
            return []
        tokens = encode(text)
        if tokens[: len(left)] != left:
            return []
        return tokens[len(left) : -1]

    def fork(self) -> Cursor:
        """An independent copy."""
        return Cursor(self.fsm, self._history.copy(), self._tokens.copy(), self.finished)

    def rollback(self, n: int) -> None:
        """Takes the last `n` tokens back.

        Raises:
            ValueError: fewer than `n` tokens were taken.
        """
        if not 0 <= n <= self.num_tokens:
            raise ValueError(f"cannot take back {n} of {self.num_tokens} tokens")
        if n:
            del self._history[-n:]
            del self._tokens[-n:]
            self.finished = False

    def reset(self) -> None:
        """Back to before the first token."""
        self.rollback(self.num_tokens)


def fill_masks(cursors: Sequence[Cursor | None], rows: np.ndarray) -> None:
    """One mask row per cursor, written in one call without the GIL; rows of None are left alone.

    Args:
        cursors: one per row, None for unconstrained requests.
        rows: int32 [len(cursors), ceil(V / 32)], contiguous.

    Raises:
        LimitError: a budget of a grammar is reached. Nothing is written then.
        ValueError: the rows have another shape or type.
    """
    if rows.ndim != 2 or rows.dtype != np.int32 or rows.shape[0] != len(cursors) or not rows.flags.c_contiguous:
        raise ValueError(f"mask rows must be contiguous int32 [{len(cursors)}, W], not {rows.dtype} {list(rows.shape)}")
    words = rows.shape[1]
    for cursor in cursors:
        if cursor is not None and cursor.fsm.vocabulary.row_words != words:
            raise ValueError(f"a mask row must have {cursor.fsm.vocabulary.row_words} words, not {words}")
    write_masks([None if cursor is None else cursor.mask() for cursor in cursors], rows)


def advance_many(cursors: Sequence[Cursor | None], token_ids: Sequence[int]) -> list[bool]:
    """Takes one token per cursor; for each whether it was allowed (None: True). A refused token changes nothing."""
    return [cursor is None or cursor.advance(token) for cursor, token in zip(cursors, token_ids, strict=True)]
