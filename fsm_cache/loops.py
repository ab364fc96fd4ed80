"""Which tokens lead from a state back to itself: what text inside a string mostly does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from ..grammar.machine import Machine
from ..grammar.machine_layout import (
    END,
    F_ACCEPT,
    F_EXPANDED,
    F_LOOPS,
    F_RUN,
    F_TEXT_LOOP,
    FINAL_ROW,
    FLAGS,
    KIND,
    LEAF,
    LOOP,
    SWITCH,
    B,
)
from ..grammar.row_store import STORE
from .mask import NO_ROW, Mask
from .memo import Memo

if TYPE_CHECKING:
    from .vocabulary import Vocabulary

_MAX_BYTES = 4 << 20


class Loops:
    """Sets of tokens that consist of characters of a set, for one vocabulary. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary):
        self._vocabulary = vocabulary
        self._masks: Memo[tuple[bytes, bool], Mask] = Memo(_MAX_BYTES)
        self._lock = threading.Lock()

    def of(self, machine: Machine, state: int) -> Mask | None:
        """Tokens that lead from `state` back to itself; None where that is not known without trying.

        A leaf in which some characters lead back to the row they came from is left by no token of such characters, unless it may end and
        something that they begin may follow it. Free text is such a leaf where its tokens are not counted.
        """
        kind, leaf, _, left, parent, _ = machine.nodes[state].tolist()
        if kind != LEAF and (kind != SWITCH or left):
            return None
        row = STORE.rows[leaf]
        flags = int(row[FLAGS])
        if flags & (F_EXPANDED | F_LOOPS | F_RUN) != F_EXPANDED | F_LOOPS:
            return None
        if flags & F_ACCEPT and tuple(machine.nodes[parent, [KIND, B]]) != (END, FINAL_ROW):
            return None
        return self._mask(row[LOOP : LOOP + 4].copy(), bool(flags & F_TEXT_LOOP))

    def _mask(self, ascii_set: np.ndarray, wide: bool) -> Mask:
        key = (ascii_set.tobytes(), wide)
        with self._lock:
            mask = self._masks.get(key)
            if mask is None:
                ids = self._vocabulary.trie.spelt_with(ascii_set, wide=wide)
                row = Mask.of(NO_ROW, ids, ids.nbytes).row(self._vocabulary.row_words)
                mask = Mask.of(row, NO_ROW, row.nbytes)
                self._masks.put(key, mask, mask.num_bytes)
            return mask
