"""Working memory of the mask kernels, one per thread and vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..grammar.kernels.unions import OUT_SIZE
from .kernels.classify import INFO_SIZE
from .kernels.kit import STATUS_SIZE
from .kernels.tasks import MAX_TASKS, TASK

if TYPE_CHECKING:
    from .vocabulary import Vocabulary


class Scratch:
    """Attributes:
    found: int32 [2 V]: tokens that a mask collects.
    exits, enders, leaf_found, leaf_path, needs, exit_needs: int32: what a scan of a leaf finds.
    new: int32 [T + 1]: sums over the trie's tokens in order, see `kernels.leaf.count_new`.
    out: int32: members of unions within one step.
    status: int32: what mask kernels answer, see `kernels.kit`.
    tasks: int32 [MAX_TASKS, TASK], see `kernels.tasks`.
    bases: int64: addresses of rows.
    dropped: uint8 [V]: zero between calls.
    kit: for kernels, see `kernels.kit`.
    """

    def __init__(self, vocabulary: Vocabulary):
        self.found = np.zeros(2 * vocabulary.vocab_size, np.int32)
        self.exits = np.zeros(len(vocabulary.trie.nodes), np.int32)
        self.enders = np.zeros(vocabulary.vocab_size, np.int32)
        self.leaf_found = np.zeros(vocabulary.vocab_size, np.int32)
        self.needs = np.zeros(vocabulary.vocab_size, np.int32)
        self.exit_needs = np.zeros(len(vocabulary.trie.nodes), np.int32)
        self.new = np.zeros(len(vocabulary.trie.order) + 1, np.int32)
        self.path = np.zeros(2 * vocabulary.trie.max_depth + 4, np.int32)
        self.leaf_path = np.zeros(2 * vocabulary.trie.max_depth + 4, np.int32)
        self.out = np.zeros(OUT_SIZE, np.int32)
        self.status = np.zeros(STATUS_SIZE, np.int32)
        self.tasks = np.zeros((MAX_TASKS, TASK), np.int32)
        self.dropped = np.zeros(vocabulary.vocab_size, np.uint8)
        self.bases = np.zeros(MAX_TASKS, np.int64)
        self._seen = np.zeros(MAX_TASKS, np.int32)
        self._info = np.zeros(INFO_SIZE, np.int32)
        self.tries = vocabulary.tries
        self._strings = vocabulary.string_tables
        self._eos = vocabulary.eos_array
        tables = (*(trie.memory for trie in self.tries), *(strings.memory for strings in self._strings))
        scratch = (self.path, self.out, self.found, self.status, self.dropped, self.tasks, self._seen, self.bases, self._info)
        numbers = (self._eos.ctypes.data, len(self._eos), vocabulary.vocab_size)
        self.kit = np.array([*(t.ctypes.data for t in tables), *numbers, *(a.ctypes.data for a in scratch)], np.int64)
