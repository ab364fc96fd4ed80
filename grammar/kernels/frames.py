"""What the frames of arrays and objects allow."""

from __future__ import annotations

import numpy as np
from numba import types

from ..kernel_cache import kernel
from ..machine_layout import (
    ASK,
    CLASS_BASE,
    FR_CLASSES,
    FR_KEY_ROW,
    FR_NAMES,
    FR_WORDS,
    H_TRANSITION_MASK,
    KEY_CLASSES,
    KEY_HI,
    KEY_LO,
    KEY_SET,
    KEY_TAILS,
    NAME_HI,
    NAME_LO,
    NIL,
    NODE,
    ROW,
    A,
    C,
)
from .escapes import seen_below
from .memory import P, i4
from .nodes import make_node


@kernel(i4(P, P, i4, i4))
def find_transition(transitions, header, frame, outcome):
    """Offset in the table of the alternatives of (frame, outcome), or -1."""
    mask = np.int64(header[H_TRANSITION_MASK])
    slot = np.int64((np.uint32(frame) * np.uint32(0x9E3779B1)) ^ (np.uint32(outcome) * np.uint32(0x85EBCA6B))) & mask
    while transitions[slot * 3 + 0] >= 0:
        if transitions[slot * 3 + 0] == frame and transitions[slot * 3 + 1] == outcome:
            return transitions[slot * 3 + 2]
        slot = (slot + 1) & mask
    return np.int32(-1)


@kernel(types.void(P, P, i4, i4, i4))
def insert_transition(transitions, header, frame, outcome, at):
    mask = np.int64(header[H_TRANSITION_MASK])
    slot = np.int64((np.uint32(frame) * np.uint32(0x9E3779B1)) ^ (np.uint32(outcome) * np.uint32(0x85EBCA6B))) & mask
    while transitions[slot * 3 + 0] >= 0:
        slot = (slot + 1) & mask
    transitions[slot * 3 + 0] = frame
    transitions[slot * 3 + 1] = outcome
    transitions[slot * 3 + 2] = at


@kernel(i4(P, i4, i4))
def outcome_allowed(table, frame_at, outcome):
    """Whether a frame (by table offset) takes a key with this outcome."""
    if outcome >= CLASS_BASE:
        return np.int32((table[frame_at + FR_CLASSES] >> (outcome - CLASS_BASE)) & 1)
    words = table[frame_at + FR_WORDS]
    return np.int32((table[words + (outcome >> 5)] >> (outcome & 31)) & 1)


@kernel(i4(P, i4, i4, i4))
def any_allowed(table, frame_at, lo, hi):
    """Whether a frame takes one of the declared keys [lo, hi)."""
    words = table[frame_at + FR_WORDS]
    i = lo
    while i < hi:
        word = np.uint32(table[words + (i >> 5)]) >> np.uint32(i & 31)
        if word == 0:
            i = ((i >> 5) + 1) << 5
        elif word & np.uint32(1):
            return np.int32(1)
        else:
            i += 1
    return np.int32(0)


@kernel(i4(P, P, i4, i4))
def row_allowed(rows, table, row, frame_at):
    """Whether a frame takes one of the declared keys that a key row can still become."""
    at = row * ROW
    lo = rows[at + KEY_LO]
    hi = rows[at + KEY_HI]
    reachable = rows[at + KEY_SET]
    if reachable == 0:
        return any_allowed(table, frame_at, lo, hi)
    words = table[frame_at + FR_WORDS]
    for w in range((hi + 31) >> 5):
        if table[reachable + w] & table[words + w]:
            return np.int32(1)
    return np.int32(0)


@kernel(i4(P, P, P, P, P, P, P, P, i4))
def may_continue(nodes, buckets, rows, table, values, frames, transitions, header, node):
    """Whether an object (any of its nodes) can take one more key."""
    at = frames[nodes[node * NODE + A]]
    row = table[at + FR_KEY_ROW]
    names = table[at + FR_NAMES]
    if names >= 0 and any_allowed(table, at, table[names + NAME_LO], table[names + NAME_HI]):
        return np.int32(1)
    if row < 0:
        return np.int32(0)
    if row_allowed(rows, table, row, at):
        return np.int32(1)
    classes = table[at + FR_CLASSES]
    if rows[row * ROW + KEY_CLASSES] & classes == 0:
        return np.int32(0)
    tails = rows[row * ROW + KEY_TAILS]
    if tails > 0 and seen_below(nodes, nodes[node * NODE + C], NIL, classes) >= tails:
        return np.int32(0)
    return np.int32(1)


@kernel(i4(P, P, P, i4, i4, i4, i4, i4, i4), apart=True)
def after_value(nodes, buckets, header, kind, frame, space, extras, parent, insert):
    """The node behind a value: of `kind` in `frame`, or the question whose answer is its frame (written ~question)."""
    if frame < 0:
        return make_node(nodes, buckets, header, ASK, ~frame, space, extras, parent, insert)
    return make_node(nodes, buckets, header, kind, frame, space, extras, parent, insert)
