"""Leaf automata that grammars share, with their rows: any string, whitespace, numbers, formats and patterns, starts of scalars."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from .lowering import PUBLISH, Lowering
from .machine_layout import (
    DEAD,
    F_BOUNDARY,
    F_EXPANDED,
    F_TIDY,
    FINAL_ROW,
    FLAGS,
    WS_AFTER_COLON,
    WS_AFTER_COMMA,
    WS_AFTER_VALUE,
    WS_BEFORE_COLON,
    WS_OPEN,
    WS_OUTER_AFTER,
    WS_OUTER_BEFORE,
)
from .row_store import STORE
from .whitespace import NONE, Whitespace

_MAX_LEAVES = 2048  # kept though no grammar uses them now
_MAX_ROWS = 40_000  # and their rows
_REVIEW = 256  # leaves grow while they are used: after so many new ones all are counted

_MAX_WORD_ROWS = 2048
_PRINTABLE = slice(0x21, 0x7F)
_SIMPLE = re.compile(r"[ !#-\[\]-~]*")  # characters that a tidy string spells as themselves and in no other way


class Leaf(Protocol):
    """An owner of rows."""

    @property
    def num_rows(self) -> int: ...

    @property
    def is_worn(self) -> bool:
        """Whether half of a budget is used up, so that others should rather have a new one."""
        ...

    def start_row(self) -> int: ...


_leaves: OrderedDict[Hashable, Leaf] = OrderedDict()
_lock = threading.Lock()


def shared_leaf(key: Hashable, make: Callable[[], Leaf]) -> Leaf:
    """The leaf made before under the same `key`, or a new one where there is none or texts have used it up."""
    with _lock:
        leaf = _leaves.get(key)
        if leaf is not None and leaf.is_worn:
            del _leaves[key]
            leaf = None
        if leaf is not None:
            _leaves.move_to_end(key)
            return leaf
    leaf = make()
    with _lock:
        leaf = _leaves.setdefault(key, leaf)
        if len(_leaves) % _REVIEW == 0 or len(_leaves) > _MAX_LEAVES:
            num_rows = sum(known.num_rows for known in _leaves.values())
            while len(_leaves) > _MAX_LEAVES - _REVIEW or (num_rows > _MAX_ROWS and len(_leaves) > 1):
                num_rows -= _leaves.popitem(last=False)[1].num_rows
    return leaf


class WordRows:
    """Rows of a JSON string that is one of some words, after its opening quote. Made at once: no automaton is stepped.

    Args:
        words: sorted, of characters that a tidy string spells in one way (`are_simple`).
    """

    is_worn = False

    def __init__(self, words: Sequence[str]):
        parents, codes, children = [], [], []
        path, count, before = [0], 1, ""
        for word in words:
            common = 0
            while common < min(len(word), len(before)) and word[common] == before[common]:
                common += 1
            del path[common + 1 :]
            for char in word[common:]:
                parents.append(path[-1])
                codes.append(ord(char))
                children.append(count)
                path.append(count)
                count += 1
            parents.append(path[-1])
            codes.append(0x22)
            children.append(-1)
            before = word
        rows = STORE.allocate_many(STORE.own(self), count)
        self.num_rows = count
        self._start = int(rows[0])
        targets = rows[children]
        targets[np.array(children) < 0] = FINAL_ROW
        STORE.rows[rows[parents], codes] = targets
        with PUBLISH:
            STORE.rows[rows, FLAGS] = F_EXPANDED | F_BOUNDARY | F_TIDY

    def start_row(self) -> int:
        return self._start

    @staticmethod
    def are_simple(words: Sequence[str]) -> bool:
        """Whether the words can be written like that, and are not too many."""
        return sum(map(len, words)) < _MAX_WORD_ROWS and all(map(_SIMPLE.fullmatch, words))


class ScalarStart:
    """A row that says how a scalar value begins: with a quotation mark, or as one of other leaves does. It holds the leaves.

    Args:
        string: the leaf after a quotation mark; None if it cannot come.
        others: leaves of numbers and words, which begin with different bytes.
    """

    def __init__(self, string: Leaf | None, others: Sequence[Leaf]):
        self._leaves = (*others,) if string is None else (string, *others)
        self._row = STORE.allocate(STORE.own(self), 0)
        line = STORE.rows[self._row]
        line[:256] = DEAD
        for leaf in others:
            targets = STORE.targets(leaf.start_row())[_PRINTABLE]
            np.copyto(line[_PRINTABLE], targets, where=targets != DEAD)
        if string is not None:
            line[0x22] = string.start_row()
        line[FLAGS] = F_EXPANDED

    def __bool__(self) -> bool:
        """Whether there is a way to begin."""
        return bool(self._leaves)

    @property
    def num_rows(self) -> int:
        return 1 + sum([leaf.num_rows for leaf in self._leaves])

    @property
    def is_worn(self) -> bool:
        for leaf in self._leaves:  # noqa: SIM110 - asked at each use, and twice as fast as `any`
            if leaf.is_worn:
                return True
        return False

    def start_row(self) -> int:
        return self._row


class WhitespaceRows(NamedTuple):
    """Start rows by place (`WS_...` in `machine_layout`), and who owns them."""

    rows: list[int]
    leaves: tuple[Lowering, ...]


@lru_cache(maxsize=64)
def whitespace_rows(ws: Whitespace) -> WhitespaceRows:
    """The rows of a policy."""
    places = {
        WS_OUTER_BEFORE: ws.before,
        WS_OUTER_AFTER: ws.after,
        WS_OPEN: ws.opened,
        WS_AFTER_VALUE: ws.after_value,
        WS_AFTER_COMMA: ws.after_comma,
        WS_BEFORE_COLON: ws.before_colon,
        WS_AFTER_COLON: ws.after_colon,
    }
    leaves = {id(automaton): Lowering(automaton, json=False) for automaton in places.values() if automaton is not NONE}
    rows = [FINAL_ROW] * len(places)
    for place, automaton in places.items():
        if automaton is not NONE:
            rows[place] = leaves[id(automaton)].start_row()
    return WhitespaceRows(rows, tuple(leaves.values()))
