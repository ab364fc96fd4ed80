"""Which tokens lead from a state back to itself: what text inside a string mostly does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from ..grammar.machine import Machine
from ..grammar.machine_layout import F_ACCEPT, F_EXPANDED, F_LOOPS, F_RUN, F_TEXT_LOOP, FLAGS, KIND, LEAF, LOOP, A
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

        A leaf that must go on, and in which some characters lead back to the row they came from, is left by no token of such characters.
        """
        if int(machine.nodes[state, KIND]) != LEAF:
            return None
        row = STORE.rows[int(machine.nodes[state, A])]
        flags = int(row[FLAGS])
        if flags & (F_EXPANDED | F_LOOPS | F_ACCEPT | F_RUN) != F_EXPANDED | F_LOOPS:
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
