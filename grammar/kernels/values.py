"""How values begin, and strings of bounded length."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import kernel
from ..machine_layout import (
    ARRAY_AFTER,
    ARRAY_OPEN,
    COUNTED,
    DEAD,
    F_BOUNDARY,
    F_EXPANDED,
    FINAL_ROW,
    FLAGS,
    FR_ALTERNATIVES,
    FR_LIST,
    GUARD,
    LEAF,
    LEAST,
    NEED_ROW,
    NEED_VALUE,
    NIL,
    NODE,
    OBJECT_OPEN,
    PARENT,
    ROW,
    V_ARRAYS,
    V_COUNTED,
    V_DISTINCT_RAW,
    V_DISTINCT_STRING,
    V_LIST,
    V_OBJECTS,
    V_SCALAR,
    V_UNLIKE,
    WS_AFTER_VALUE,
    WS_OPEN,
    A,
    B,
    C,
)
from .frames import after_value
from .items import begin_distinct
from .memory import P, ask, i4
from .nodes import first_of, make_node, rest_of
from .unions import MAX_MEMBERS


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4, i4, P, i4), apart=True)
def begin_value(nodes, buckets, rows, table, values, frames, transitions, header, value, byte, masking, parent, out, count):
    """Appends the states after the first byte of a value. Answers the new count, or a code."""
    at = values[value]
    if at < 0:
        return ask(header, NEED_VALUE, value, 0)
    if count + table[at + V_OBJECTS] + table[at + V_ARRAYS] + 4 > MAX_MEMBERS:
        return ask(header, 0, 0, 0)
    if byte == 123:  # {
        for k in range(table[at + V_OBJECTS]):
            frame = table[at + V_LIST + k]
            outer = parent
            if frame < 0:
                frame = ~frame
                outer = make_node(nodes, buckets, header, GUARD, 0, 0, NIL, parent, 1)
            out[count] = make_node(nodes, buckets, header, OBJECT_OPEN, frame, table[WS_OPEN], NIL, outer, 1)
            count += 1
        return count
    if byte == 91:  # [
        first = at + V_LIST + table[at + V_OBJECTS]
        for k in range(table[at + V_ARRAYS]):
            frame = table[first + k]
            outer = parent
            if frame < 0:
                frame = ~frame
                outer = make_node(nodes, buckets, header, GUARD, 0, 0, NIL, parent, 1)
            out[count] = make_node(nodes, buckets, header, ARRAY_OPEN, frame, table[WS_OPEN], 0, outer, 1)
            count += 1
        return count
    if byte == 34 and table[at + V_COUNTED] >= 0:
        first = table[table[at + V_COUNTED] + 2]
        out[count] = make_node(nodes, buckets, header, COUNTED, first, 0, table[at + V_COUNTED], parent, 1)
        count += 1
    if table[at + V_UNLIKE] >= 0:
        if byte == 34:
            guard = make_node(nodes, buckets, header, GUARD, 0, 0, table[at + V_UNLIKE], parent, 1)
            count = begin_distinct(nodes, buckets, rows, table, header, at, byte, masking, guard, out, count)
    elif table[at + V_DISTINCT_STRING] >= 0 or table[at + V_DISTINCT_RAW] >= 0:
        rest = parent  # what is read depends on what comes after it: one item for each
        while rest != NIL:
            count = begin_distinct(nodes, buckets, rows, table, header, at, byte, masking, first_of(nodes, rest), out, count)
            if count < 0:
                return count
            rest = rest_of(nodes, rest)
    row = table[at + V_SCALAR]
    if row < 0:
        return count
    if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, row, 0)
    target = rows[row * ROW + byte]
    if target == FINAL_ROW:
        out[count] = parent
        count += 1
    elif target > 0:
        out[count] = make_node(nodes, buckets, header, LEAF, target, 0, 0, parent, 1)
        count += 1
    return count


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4, i4, P, i4))
def begin_item(nodes, buckets, rows, table, values, frames, transitions, header, frame, byte, masking, parent, out, count):
    """First byte of an array item straight after '['; `parent` continues the array's parent."""
    at = frames[frame]
    for k in range(table[at + FR_ALTERNATIVES]):
        if count + 4 > MAX_MEMBERS:
            return ask(header, 0, 0, 0)
        value = table[at + FR_LIST + 2 * k]
        after = table[at + FR_LIST + 2 * k + 1]
        back = after_value(nodes, buckets, header, ARRAY_AFTER, after, table[WS_AFTER_VALUE], 0, parent, 1)
        count = begin_value(nodes, buckets, rows, table, values, frames, transitions, header, value, byte, masking, back, out, count)
        if count < 0:
            return count
    return count


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4))
def step_counted(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, masking):
    """One byte of a string whose length in code points is bounded."""
    row = nodes[node * NODE + A]
    if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, row, 0)
    target = rows[row * ROW + byte]
    if target < 0:
        return np.int32(DEAD)
    seen = nodes[node * NODE + B]
    low = table[nodes[node * NODE + C]]
    high = table[nodes[node * NODE + C] + 1]
    parent = nodes[node * NODE + PARENT]
    if target == FINAL_ROW:
        return parent if seen >= low else np.int32(DEAD)
    if rows[target * ROW + FLAGS] & F_BOUNDARY and (high >= 0 or seen < low):
        seen += 1
    if high >= 0 and seen + rows[target * ROW + LEAST] > high:
        return np.int32(DEAD)
    return make_node(nodes, buckets, header, COUNTED, target, seen, nodes[node * NODE + C], parent, 1)
