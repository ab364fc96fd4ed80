"""Punctuation of arrays and objects."""

from __future__ import annotations

import numpy as np
from numba import types

from ..kernel_cache import kernel
from ..machine_layout import (
    ARRAY_AFTER,
    ARRAY_OPEN,
    DEAD,
    FR_ALTERNATIVES,
    FR_CLASSES,
    FR_CLOSE,
    FR_KEY_ROW,
    FR_LIST,
    FR_NAMES,
    FRESH,
    GUARD,
    KEY,
    KIND,
    NAME,
    NEED_FRAME,
    NEED_TRANSITION,
    NIL,
    NODE,
    OBJECT_AFTER,
    OBJECT_COMMA,
    OBJECT_OPEN,
    OFF,
    PARENT,
    UNKNOWN,
    VALUE,
    WS_AFTER_COLON,
    WS_AFTER_COMMA,
    WS_AFTER_VALUE,
    A,
    C,
)
from .frames import after_value, find_transition, may_continue
from .memory import P, ask, i4
from .nodes import first_of, list_members, make_node, rest_of
from .unions import MAX_MEMBERS
from .values import begin_item


@kernel(i4(P, i4, P, i4), apart=True)
def pass_guards(nodes, state, out, count):
    """Appends to out[:count] the nodes of `state`, which follows a value, with guards passed. Answers the new count, -1 if too many."""
    first = count
    count = list_members(nodes, state, out, count, np.int32(MAX_MEMBERS))
    for k in range(first, count):
        if nodes[out[k] * NODE + KIND] == GUARD:
            out[k] = nodes[out[k] * NODE + PARENT]
    return count


@kernel(types.boolean(P, i4))
def opens_guard(nodes, state):
    """Whether an array or object that has just begun in a state is inside a guard of its own."""
    while state != NIL:
        node = first_of(nodes, state)
        begins = nodes[node * NODE + KIND] in (ARRAY_OPEN, OBJECT_OPEN)
        around = nodes[node * NODE + PARENT] if begins else np.int32(NIL)
        while around != NIL:
            if nodes[first_of(nodes, around) * NODE + KIND] == GUARD:
                return True
            around = rest_of(nodes, around)
        state = rest_of(nodes, state)
    return False


@kernel(i4(P, P, P, P, i4, P, i4))
def close_value(nodes, table, frames, header, node, out, count):
    """The bracket that closes an array or object. Answers the new count, or a code."""
    frame = nodes[node * NODE + A]
    at = frames[frame]
    if at < 0:
        return ask(header, NEED_FRAME, frame, 0)
    if table[at + FR_CLOSE] == 0:
        return count
    count = pass_guards(nodes, nodes[node * NODE + PARENT], out, count)
    return ask(header, 0, 0, 0) if count < 0 else count


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4, i4, P, i4), apart=True)
def step_array(nodes, buckets, rows, table, values, frames, transitions, header, node, kind, byte, masking, out, count):
    """A byte other than whitespace or ']' after '[' or after an item. Answers the new count, or a code."""
    a = nodes[node * NODE + A]
    parent = nodes[node * NODE + PARENT]
    at = frames[a]
    if at < 0:
        return ask(header, NEED_FRAME, a, 0)
    if kind == ARRAY_OPEN:
        return begin_item(nodes, buckets, rows, table, values, frames, transitions, header, a, byte, masking, parent, out, count)
    if byte == 44:
        seen = nodes[node * NODE + C]
        if count + table[at + FR_ALTERNATIVES] > MAX_MEMBERS:
            return ask(header, 0, 0, 0)
        for k in range(table[at + FR_ALTERNATIVES]):
            value = table[at + FR_LIST + 2 * k]
            after = table[at + FR_LIST + 2 * k + 1]
            if value == UNKNOWN:
                out[count] = make_node(nodes, buckets, header, FRESH, 0, table[WS_AFTER_COMMA], 0, parent, 1)
            else:
                back = after_value(nodes, buckets, header, ARRAY_AFTER, after, table[WS_AFTER_VALUE], seen, parent, 1)
                out[count] = make_node(nodes, buckets, header, VALUE, value, table[WS_AFTER_COMMA], 0, back, 1)
            count += 1
    return count


@kernel(i4(P, P, P, P, P, i4, P, i4), apart=True)
def step_colon(nodes, buckets, table, transitions, header, node, out, count):
    """The colon after a key. Answers the new count, or a code."""
    parent = nodes[node * NODE + PARENT]
    frame = nodes[parent * NODE + A]
    outcome = nodes[node * NODE + A]
    at = find_transition(transitions, header, frame, outcome)
    if at < 0:
        return ask(header, NEED_TRANSITION, frame, outcome)
    if count + table[at] > MAX_MEMBERS:
        return ask(header, 0, 0, 0)
    extras = nodes[parent * NODE + C]
    outer = nodes[parent * NODE + PARENT]
    for k in range(table[at]):
        value = table[at + 1 + 2 * k]
        back = after_value(nodes, buckets, header, OBJECT_AFTER, table[at + 2 + 2 * k], table[WS_AFTER_VALUE], extras, outer, 1)
        out[count] = make_node(nodes, buckets, header, VALUE, value, table[WS_AFTER_COLON], 0, back, 1)
        count += 1
    return count


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4), apart=True)
def step_object(nodes, buckets, rows, table, values, frames, transitions, header, node, kind, byte):
    """A byte other than whitespace or '}' after '{', after a member or after its comma. Answers the state, DEAD or a code."""
    a = nodes[node * NODE + A]
    extras = nodes[node * NODE + C]
    parent = nodes[node * NODE + PARENT]
    at = frames[a]
    if at < 0:
        return ask(header, NEED_FRAME, a, 0)
    if byte != (44 if kind == OBJECT_AFTER else 34):
        return np.int32(DEAD)
    if may_continue(nodes, buckets, rows, table, values, frames, transitions, header, node) == 0:
        return np.int32(DEAD)
    if kind == OBJECT_AFTER:
        return make_node(nodes, buckets, header, OBJECT_COMMA, a, table[WS_AFTER_COMMA], extras, parent, 1)
    back = make_node(nodes, buckets, header, OBJECT_AFTER, a, table[WS_AFTER_VALUE], extras, parent, 1)
    row = table[at + FR_KEY_ROW]
    names = table[at + FR_NAMES]
    if names < 0:
        return make_node(nodes, buckets, header, KEY, row, NIL, NIL, back, 1)
    if row < 0 or table[at + FR_CLASSES] == 0:
        return make_node(nodes, buckets, header, NAME, names, OFF, -1, back, 1)
    return make_node(nodes, buckets, header, NAME, names, NIL, row, back, 1)
