"""Makes one mask: runs the kernel and gives it what only Python can."""

from __future__ import annotations

import numpy as np

from ..grammar.machine import Machine
from ..grammar.machine_layout import CLASS_BASE, DEAD, DOUBT, H_NEED_A, NIL, OFF
from .book import Book
from .doubts import Doubts, NoDoubts
from .kernels.collect import collect
from .kernels.kit import (
    ANSWERED,
    ANSWERED_AT,
    ASKED_A,
    ASKED_B,
    CLASS_STRIDE,
    CLOSING,
    COUNT,
    DEPTH,
    DOUBTED,
    MAIN,
    MARK,
    MAY_END,
    NUM_BASES,
    POSITION,
)
from .kernels.rows import set_bits
from .kernels.tasks import NAMES, NAMES_AT, NEED_LEAF, NEED_PLAIN, NEED_SPACE, READ, READ_AT, SPILL, TRY
from .mask import Mask
from .scratch import Scratch
from .trie import DEPTH as NODE_DEPTH
from .trie import END
from .vocabulary import Vocabulary

_NARROW = 1024  # masks that add at most so many tokens to a shared row are kept as ids


class MaskMaker:
    """Makes masks of one token FSM. Inside recorded text, what tokens do behind a string is not remembered, since it may depend on that
    text."""

    def __init__(self, machine: Machine, vocabulary: Vocabulary, book: Book, doubts: Doubts | NoDoubts):
        self._machine = machine
        self._vocabulary = vocabulary
        self._book = book
        self._doubts = doubts
        self._scratch: Scratch = vocabulary.scratch
        self._doubtful: list[int] = []  # tokens to try one by one
        self._closing_doubtful: list[int] = []  # those among tokens that close a string
        self._spilt: list[np.ndarray] = []  # tokens found, as rows

    def make(self, whole: int, state: int) -> Mask:
        """The mask of `state`, which is `whole` without what is recorded and does not matter."""
        machine, scratch, book, recorded = self._machine, self._scratch, self._book.memory, self._doubts.is_recorded
        code = int(collect(machine.memory, scratch.kit, book, state, recorded))
        while code < 0:
            self._serve(code)
            code = int(collect(machine.memory, scratch.kit, book, NIL, recorded))
        if self._doubtful:
            self._try(self._doubtful, whole, None)
        status = scratch.status.tolist()
        count, may_end, num_bases = status[COUNT], status[MAY_END], status[NUM_BASES]
        is_end = bool(may_end) and not num_bases and not self._spilt and count == len(self._vocabulary.eos_array)
        if num_bases <= 1 and count <= _NARROW and not self._spilt:
            base_at = int(scratch.bases[0]) if num_bases else 0
            return self._vocabulary.masks.get(base_at, scratch.found[:count], self._base, is_end=is_end)
        row = self._row(count)
        for base in (*self._spilt, *map(self._base, scratch.bases[:num_bases].tolist())):
            row |= base
        return self._vocabulary.masks.own(row, is_end=is_end)

    def _base(self, address: int) -> np.ndarray:
        every, tidy = self._vocabulary.string_tables
        base = every.rows_at.get(address)
        if base is None:
            base = tidy.rows_at.get(address)
        return self._book.base(address) if base is None else base

    def _row(self, count: int) -> np.ndarray:
        """The ids so far as a row."""
        row = np.zeros(self._vocabulary.row_words, np.int32)
        set_bits(row, self._scratch.found[:count])
        return row

    def _serve(self, code: int) -> None:
        """Does what the kernel asked for by `code`."""
        status = self._scratch.status
        a, b = int(status[ASKED_A]), int(status[ASKED_B])
        if code == DOUBT:
            self._doubt()
        elif code == NEED_LEAF:
            row, number = a % CLASS_STRIDE, a // CLASS_STRIDE - 1
            self._book.add_leaf(a, self._vocabulary.leaf_tables.get(self._machine, row, CLASS_BASE + number if number >= 0 else -1))
        elif code == NEED_PLAIN:
            self._vocabulary.string_tables[a].plain_row(b)
        elif code == NEED_SPACE:
            self._book.make_space(a)
        elif code == TRY:
            self._try(self._closing_doubtful, b, self._vocabulary.string_tables[a].closed)
            status[DOUBTED] = 0
        elif code == SPILL:
            self._spilt.append(self._row(int(status[COUNT])))
            status[COUNT] = 0
        else:
            self._machine.serve(code)

    # --- what depends on recorded text -----------------------------------------------------------------------------

    def _doubt(self) -> None:
        """Decides what a walk does where a byte leads to a question."""
        scratch, doubts = self._scratch, self._doubts
        status, at = scratch.status, int(scratch.status[POSITION])
        what, trie_number, *_ = task = scratch.tasks[status[DEPTH] - 1]
        number = trie_number if what == READ else CLOSING + trie_number if what == NAMES else MAIN
        trie = scratch.tries[number]
        tokens = trie.through(at)
        begun = (self._vocabulary.spellings[tokens[0]] or b"")[: trie.nodes[at, NODE_DEPTH]]
        question = int(self._machine.header[H_NEED_A])
        if question != OFF and at != status[ANSWERED_AT] and not doubts.arise(question, begun):
            status[ANSWERED], status[ANSWERED_AT] = question, at
            return
        if doubts.is_recorded:
            doubts.met = True
        task[READ_AT if what == READ else NAMES_AT] = trie.nodes[at, END]
        if status[MARK] < 0:
            self._doubtful.extend(tokens.tolist())
        else:
            self._closing_doubtful.extend(tokens.tolist())
        status[DOUBTED] = 1

    def _try(self, doubtful: list[int], state: int, closed: np.ndarray | None) -> None:
        """Adds those of the doubtful tokens that may be read in `state`, without as many bytes at their beginning as `closed` says."""
        spellings, found, count = self._vocabulary.spellings, self._scratch.found, int(self._scratch.status[COUNT])
        for token in doubtful:
            data = (spellings[token] or b"")[0 if closed is None else closed[token] :]
            if self._machine.run(state, data) != DEAD:
                found[count] = token
                count += 1
        self._scratch.status[COUNT] = count
        doubtful.clear()
