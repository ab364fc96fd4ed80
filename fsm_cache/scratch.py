"""Working memory of the mask kernels, one per thread and vocabulary."""

from __future__ import annotations

import numpy as np

from ..grammar.kernels.unions import OUT_SIZE
from .walk import INFO_SIZE, STATUS_SIZE


class Scratch:
    """Attributes:
    found: int32 [2 V]: tokens that a walk collects.
    path: int32: the state before each depth of a trie.
    exits: int32 [V]: trie nodes after which a leaf may end.
    out: int32: members of unions within one step.
    info, status: int32: what `classify` and walks answer.
    dropped: uint8 [V]: zero between calls.
    """

    def __init__(self, vocab_size: int, max_depth: int):
        self.found = np.zeros(2 * vocab_size, np.int32)
        self.exits = np.zeros(vocab_size, np.int32)
        self.path = np.zeros(2 * max_depth + 4, np.int32)
        self.out = np.zeros(OUT_SIZE, np.int32)
        self.info = np.zeros(INFO_SIZE, np.int32)
        self.status = np.zeros(STATUS_SIZE, np.int32)
        self.dropped = np.zeros(vocab_size, np.uint8)
