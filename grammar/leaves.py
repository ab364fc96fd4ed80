"""Leaf automata that grammars share, with their rows: any string, whitespace, numbers, formats and patterns, starts of scalars."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import NamedTuple

from .languages import CharAutomaton
from .limits import Limits
from .lowering import KeyAutomaton, Lowering
from .machine_layout import (
    DEAD,
    F_EXPANDED,
    FINAL_ROW,
    FLAGS,
    ROW_SERIAL,
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

_MAX_LEAVES = 1024  # kept though no grammar uses them now
_MAX_STARTS = 4096

_leaves: OrderedDict[Hashable, Lowering] = OrderedDict()
_lock = threading.Lock()


def shared_leaf(
    key: Hashable, make: Callable[[], CharAutomaton], *, json: bool, tidy: bool = False, is_key: bool = False, limits: Limits
) -> Lowering:
    """The rows of an automaton: those made before under the same `key`, or new ones.

    Args:
        key: tells automata apart.
        make: makes the automaton; a key automaton if `is_key`.
        json, tidy, limits: as for `Lowering`.
    """
    full_key = (key, json, tidy, is_key, limits)
    with _lock:
        leaf = _leaves.get(full_key)
        if leaf is not None:
            _leaves.move_to_end(full_key)
            return leaf
    automaton = make()
    keys = automaton if is_key and isinstance(automaton, KeyAutomaton) else None
    leaf = Lowering(automaton, json=json, tidy=tidy, keys=keys, limits=limits)
    with _lock:
        leaf = _leaves.setdefault(full_key, leaf)
        while len(_leaves) > _MAX_LEAVES:
            _leaves.popitem(last=False)
    return leaf


class ScalarStart:
    """A row that says how a scalar value begins.

    Args:
        targets: `(byte, row)`.
    """

    def __init__(self, targets: tuple[tuple[int, int], ...]):
        self.row = STORE.allocate(STORE.own(self), 0)
        line = STORE.rows[self.row]
        line[:256] = DEAD
        for byte, target in targets:
            line[byte] = target
        line[FLAGS] = F_EXPANDED


def scalar_start(targets: tuple[tuple[int, int], ...]) -> ScalarStart:
    """The shared row with these targets."""
    return _scalar_start(targets, tuple(STORE.rows[[row for _, row in targets], ROW_SERIAL].tolist()))


@lru_cache(maxsize=_MAX_STARTS)
def _scalar_start(targets: tuple[tuple[int, int], ...], _serials: tuple[int, ...]) -> ScalarStart:
    # rows are used again: the serials tell whether they are still the same
    return ScalarStart(targets)


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
