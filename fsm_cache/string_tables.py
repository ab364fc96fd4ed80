"""Masks inside "any string", made once per vocabulary instead of walked.

Most tokens can stand inside any JSON string as they are; which of them fit depends only on how many characters are still allowed.
The others close the string: about a thousand, with a few hundred distinct texts after the quotation mark. Only those
texts are walked, from the state after the string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..grammar.lowering import ANY_STRING, Lowering
from ..grammar.machine import Machine
from .kernels.leaf import scan_string
from .kernels.rows import set_bits
from .trie import Trie

if TYPE_CHECKING:
    from .vocabulary import Vocabulary


class StringTables:
    """What the tokens of a vocabulary do inside a string.

    Args:
        vocabulary: the tokens.
        tidy: printable ASCII is never escaped, as in keys; else every spelling counts.

    Attributes:
        tidy: 0 or 1, as the argument.
        lengths: int16 [V]: characters of a token up to its end or the closing quote, -1 where it cannot stand in a string.
        closed: int16 [V]: bytes up to and including the closing quote, 0 for tokens that do not close a string.
        closers: tokens that end with the closing quote.
        suffixes: what follows the closing quote in the others that close the string, by token.
        closing: trie of all tokens that close the string.
        rows_at: shared rows by address.
        memory: for kernels, see `kernels.kit`.
    """

    def __init__(self, vocabulary: Vocabulary, *, tidy: bool):
        self.tidy = int(tidy)
        self._words = vocabulary.row_words
        machine = Machine()
        strings = Lowering(ANY_STRING, json=True, tidy=tidy)
        start = strings.start_row()
        strings.fill_all()
        trie = vocabulary.trie
        self.lengths = np.zeros(vocabulary.vocab_size, np.int16)
        closed = self.closed = np.zeros(vocabulary.vocab_size, np.int16)
        scan_string(machine.memory, trie.memory, start, np.zeros(2 * trie.max_depth + 4, np.int32), self.lengths, closed)
        self._longest = int(self.lengths.max(initial=0))
        stays = np.flatnonzero((self.lengths >= 0) & (closed == 0))
        lengths = self.lengths[stays]
        self._by_length = stays[np.argsort(lengths, kind="stable")].astype(np.int32)  # tokens that stay inside, the shortest first
        self._num_fitting = np.cumsum(np.bincount(lengths, minlength=self._longest + 1)).tolist()
        self._stays = np.zeros(self._words, np.int32)
        set_bits(self._stays, self._by_length)
        tokens = [(vocabulary.spellings[t] or b"", int(t)) for t in np.flatnonzero(closed)]
        self.closers = np.array([t for data, t in tokens if closed[t] == len(data)], np.int32)
        self.suffixes = Trie.build([(data[closed[t] :], t) for data, t in tokens if closed[t] < len(data)], vocabulary.vocab_size)
        self.closing = Trie.build(tokens, vocabulary.vocab_size)
        self._rows: dict[int, np.ndarray] = {}
        self.rows_at: dict[int, np.ndarray] = {}
        self._plain = np.zeros(self._longest + 1, np.int64)
        self.closable_row = self.plain_row(None).copy()  # tokens that stay inside, or just close the string
        set_bits(self.closable_row, self.closers)
        closable, plain, lengths = (array.ctypes.data for array in (self.closable_row, self._plain, self.lengths))
        self.rows_at[closable] = self.closable_row
        self.memory = np.array([self.closers.ctypes.data, len(self.closers), closable, plain, self._longest, lengths], np.int64)

    def plain_row(self, room: int | None) -> np.ndarray:
        """Mask of the tokens that stay inside, with at most `room` characters (None: any number). Shared: do not write."""
        room = self._longest if room is None else min(room, self._longest)
        row = self._rows.get(room)
        if row is None:
            row = np.zeros(self._words, np.int32)
            fitting, others = np.split(self._by_length, [self._num_fitting[room]])
            set_bits(row, min(fitting, others, key=len))
            if len(others) < len(fitting):
                row ^= self._stays
            row = self._rows.setdefault(room, row)
            self.rows_at[row.ctypes.data] = row
            self._plain[room] = row.ctypes.data
        return row
