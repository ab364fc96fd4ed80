"""Kernels that Python calls: arrays in."""

from __future__ import annotations

import numpy as np
from numba import types

from ..kernel_cache import kernel
from ..machine_layout import (
    FEW_TOKENS,
    GROW,
    H_NODE_CAPACITY,
    H_NODES,
    H_POSITION,
    H_START,
    H_STATE,
    H_TEXT,
    ITEM,
    KEY,
    KIND,
    MARKED,
    NAME,
    NEED_GUARD,
    NIL,
    NODE,
    OFF,
    PARENT,
    STALE,
    SWITCH,
    TEXT,
    A,
    B,
    C,
)
from .containers import opens_guard
from .escapes import seen_below
from .far import step
from .frames import insert_transition
from .memory import MEMORY, addresses, ask, i4, i4_1, pointer, u1_1
from .nodes import make_node, rebuild_buckets
from .step import look_ahead
from .unions import NODE_MARGIN, push, union


@kernel(i4(MEMORY, i4, i4_1, i4_1))
def ends_and_marks(memory, state, out, found):
    """Marks that can be passed in `state` before a further byte: their number, with the nodes in out[:count], or a code.

    Args:
        out: scratch of OUT_SIZE ints.
        found: [1], set to the sum of MAY_END and GOES_ON where the text may end, or go on, without passing a mark.
    """
    nodes, buckets, rows, table, values, _, _, header = addresses(memory)
    return look_ahead(nodes, buckets, rows, table, values, header, state, pointer(out), pointer(found))


@kernel(i4(MEMORY, i4_1, i4))
def union_of(memory, out, count):
    """The union of the states out[:count], or a code. `out` has OUT_SIZE ints."""
    nodes, buckets, _, _, _, _, _, header = addresses(memory)
    if header[H_NODES] + NODE_MARGIN > header[H_NODE_CAPACITY]:
        return np.int32(GROW)
    return union(nodes, buckets, header, pointer(out), count)


@kernel(i4(MEMORY, i4, u1_1, i4, i4, i4, i4, i4_1, i4_1))
def run(memory, state, data, position, text, start, to_mark, out, found):
    """The state after the bytes of `data` from `position` on, or DEAD; or a code, with where to go on in the header.

    Args:
        text: what is recorded of the bytes before `start`, NIL if nothing is; the header has both at the end.
        to_mark: stop with MARKED as soon as a mark can be passed, the state and the bytes read in the header.
    """
    nodes, buckets, rows, table, values, frames, transitions, header = addresses(memory)
    members = pointer(out)
    for i in range(position, data.shape[0]):
        byte = np.int32(data[i])
        known = text if start == i else np.int32(STALE)
        target = step(nodes, buckets, rows, table, values, frames, transitions, header, state, byte, np.int32(0), known, members)
        read = np.int32(i)
        if target >= 0 and (byte == 91 or byte == 123) and opens_guard(nodes, target):
            if text == NIL:
                text = make_node(nodes, buckets, header, TEXT, byte, 0, 0, NIL, 1)
                start = np.int32(i + 1)
            else:
                before = state
                state = target
                target = ask(header, NEED_GUARD, before, byte)
                read += 1
        if target >= 0 and to_mark:
            marks = look_ahead(nodes, buckets, rows, table, values, header, target, members, pointer(found))
            if marks > 0:
                state = target
                target = np.int32(MARKED)
                read += 1
            elif marks < 0:
                target = marks
        if target < 0:
            header[H_POSITION] = read
            header[H_STATE] = state
            header[H_TEXT] = text
            header[H_START] = start
            return target
        state = target
    header[H_TEXT] = text
    header[H_START] = start
    return state


@kernel(i4(MEMORY, i4, i4, i4, i4, i4))
def intern_node(memory, kind, a, b, c, parent):
    """The node with these fields, made when absent."""
    nodes, buckets, _, _, _, _, _, header = addresses(memory)
    return make_node(nodes, buckets, header, kind, a, b, c, parent, np.int32(1))


@kernel(i4(MEMORY, i4, i4))
def push_position(memory, position, parent):
    """The state before a place (2 * value + nullable) that `parent` follows, or GROW."""
    nodes, buckets, _, _, _, _, _, header = addresses(memory)
    return push(nodes, buckets, header, position, parent)


@kernel(i4(MEMORY, i4))
def mask_state(memory, state):
    """A state with the same mask: inside a key or a distinct item, text that begins nothing seen before does not matter; in a
    text of bounded length, nor does how many tokens are left if they are many."""
    nodes, buckets, _, _, _, _, _, header = addresses(memory)
    kind = nodes[state * NODE + KIND]
    if kind == SWITCH and nodes[state * NODE + C] > FEW_TOKENS:
        if header[H_NODES] + 1 >= header[H_NODE_CAPACITY]:
            return np.int32(GROW)
        return make_node(nodes, buckets, header, kind, nodes[state * NODE + A], 0, 0, nodes[state * NODE + PARENT], np.int32(1))
    if kind not in (KEY, ITEM, NAME) or nodes[state * NODE + B] == OFF:
        return state
    rest = nodes[state * NODE + C]
    if kind != NAME and rest != NIL:
        return state  # inside an escape
    parent = nodes[state * NODE + PARENT]
    seen = nodes[parent * NODE + C]
    if seen != NIL and seen_below(nodes, seen, nodes[state * NODE + B], -1) > 0:
        return state
    if header[H_NODES] + 1 >= header[H_NODE_CAPACITY]:
        return np.int32(GROW)
    return make_node(nodes, buckets, header, kind, nodes[state * NODE + A], OFF, rest, parent, np.int32(1))


@kernel(types.void(MEMORY))
def rehash_nodes(memory):
    """Enters all nodes into `buckets` (all -1), after the arrays have grown."""
    nodes, buckets, _, _, _, _, _, header = addresses(memory)
    rebuild_buckets(nodes, buckets, header)


@kernel(types.void(MEMORY, i4, i4, i4))
def add_transition(memory, frame, outcome, at):
    """Adds (frame, outcome) -> table offset; the caller keeps `transitions` at most half full."""
    _, _, _, _, _, _, transitions, header = addresses(memory)
    insert_transition(transitions, header, frame, outcome, at)
