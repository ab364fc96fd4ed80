"""Places of context-free grammars, forks and switches."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import kernel
from ..machine_layout import (
    F_EXPANDED,
    F_KEY_END,
    FINAL_ROW,
    FLAGS,
    FORK,
    LEAF,
    NEED_ROW,
    NEED_VALUE,
    NODE,
    OUTCOME,
    P_ALTERNATIVES,
    P_LIST,
    PARENT,
    ROW,
    SWITCH,
    A,
    C,
)
from .memory import P, ask, i4
from .nodes import list_members, make_node
from .unions import MAX_MEMBERS, OUT_SIZE, push


@kernel(i4(P, P, P, P, i4, i4))
def after_alternative(nodes, buckets, table, header, at, parent):
    """What comes after the terminal of an alternative of a position, which stands at `at` in the table. Answers a node, or a code."""
    pushes = table[at + 1]
    for k in range(pushes):
        parent = push(nodes, buckets, header, table[at + 1 + pushes - k], parent)
        if parent < 0:
            return parent
    return parent


@kernel(i4(P, P, P, P, i4, i4))
def begin_alternative(nodes, buckets, table, header, at, parent):
    """The terminal of an alternative of a position as a node, nothing of it read yet, and then what comes after it. Answers a node, or a
    code."""
    after = after_alternative(nodes, buckets, table, header, at, parent)
    return after if after < 0 else make_node(nodes, buckets, header, LEAF, table[at], 0, 0, after, 1)


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, P, i4), apart=True)
def step_position(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, out, count):
    """First byte after a place in a context-free grammar. Answers the count, or a code."""
    at = values[nodes[node * NODE + A]]
    parent = nodes[node * NODE + PARENT]
    alternatives = table[at + P_ALTERNATIVES]
    at += P_LIST
    for _ in range(alternatives):
        row = table[at]
        if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
            return ask(header, NEED_ROW, row, 0)
        target = rows[row * ROW + byte]
        if target >= 0:
            inner = after_alternative(nodes, buckets, table, header, np.int32(at), parent)
            if inner < 0:
                return inner
            out[count] = inner if target == FINAL_ROW else make_node(nodes, buckets, header, LEAF, target, 0, 0, inner, 1)
            count += 1
            if count + 4 > MAX_MEMBERS:
                return ask(header, 0, 0, 0)
        at += 2 + table[at + 1]
    return count


@kernel(i4(P, P, P, P, P, i4, P, i4, i4), apart=True)
def begin_fork(nodes, buckets, table, values, header, node, out, first, count):
    """Appends the continuations of a fork to out[first:first + count]. Answers the new count, or a code."""
    at = values[nodes[node * NODE + A]]
    if at < 0:
        return ask(header, NEED_VALUE, nodes[node * NODE + A], 0)
    parent = nodes[node * NODE + PARENT]
    alternatives = table[at]
    if alternatives > MAX_MEMBERS:
        return ask(header, 0, 0, 0)
    at += 1
    for _ in range(alternatives):
        elements = table[at]
        at += 1
        inner = parent
        for _ in range(elements):
            inner = make_node(nodes, buckets, header, table[at], table[at + 1], table[at + 2], table[at + 3], inner, 1)
            at += 4
        count = list_members(nodes, inner, out, np.int32(first + count), np.int32(OUT_SIZE)) - first
        if count < 0:
            return ask(header, 0, 0, 0)
    return count


@kernel(i4(P, P, P, P, i4, i4, P, i4))
def step_switch(nodes, buckets, rows, header, node, byte, out, count):
    """One byte of a leaf that says what it read. Answers the new count, or a code."""
    row = nodes[node * NODE + A]
    if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, row, 0)
    target = rows[row * ROW + byte]
    if target < 0:
        return count
    parent = nodes[node * NODE + PARENT]
    if rows[target * ROW + FLAGS] & F_KEY_END:
        out[count] = make_node(nodes, buckets, header, FORK, rows[target * ROW + OUTCOME], 0, 0, parent, 1)
    else:
        left = nodes[node * NODE + C]
        out[count] = make_node(nodes, buckets, header, SWITCH, target, np.int32(left > 0), left, parent, 1)
    return count + 1
