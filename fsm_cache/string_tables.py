"""Masks of "any string character", made once per vocabulary instead of walked.

Inside a JSON string most tokens are plain: well-formed text without quotation mark, backslash or control character. Which of
them fit depends only on how many characters are still allowed. Those in which a quotation mark or a backslash comes first, a
few thousand, form a small trie of their own that is walked exactly; no string takes the others.
"""

from __future__ import annotations

import numpy as np

from .trie import Trie
from .vocabulary import Vocabulary
from .walk import ENDS, plain_characters, set_bits


class StringTables:
    """Plain tokens by length, and the trie of the others."""

    def __init__(self, vocabulary: Vocabulary):
        self._words = vocabulary.row_words
        lengths = np.full(vocabulary.vocab_size, -1, np.int32)
        rest: list[tuple[bytes, int]] = []
        for i, data in enumerate(vocabulary.token_bytes):
            if data is None:
                continue
            lengths[i] = plain_characters(np.frombuffer(data, np.uint8))
            if lengths[i] == ENDS:
                rest.append((data, i))
        self._lengths = lengths
        self._longest = int(lengths.max(initial=0))
        self._rows: dict[int, np.ndarray] = {}
        self.rest = Trie.build(rest, vocabulary.vocab_size)

    def plain_row(self, room: int | None) -> np.ndarray:
        """Mask of the plain tokens with at most `room` characters (None: any number). Shared: do not write."""
        room = self._longest if room is None else min(room, self._longest)
        row = self._rows.get(room)
        if row is None:
            row = np.zeros(self._words, np.int32)
            fits = (self._lengths >= 0) & (self._lengths <= room)
            set_bits(row, np.flatnonzero(fits).astype(np.int32))
            self._rows[room] = row
        return row
