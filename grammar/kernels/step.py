"""The step of the automaton, `state, byte -> state`, and what can be passed without a byte."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import kernel
from ..machine_layout import (
    ARRAY_AFTER,
    ARRAY_OPEN,
    ASK,
    COLON,
    COUNTED,
    DEAD,
    DOUBT,
    END,
    F_ACCEPT,
    F_EXPANDED,
    FINAL_ROW,
    FLAGS,
    FORK,
    FRESH,
    GROW,
    H_NEED_A,
    H_NODE_CAPACITY,
    H_NODES,
    ITEM,
    KEY,
    KIND,
    LEAF,
    MARK,
    NAME,
    NEED_ROW,
    NEED_TEXT,
    NEED_TRANSITION,
    NEED_VALUE,
    NODE,
    OBJECT_AFTER,
    OBJECT_OPEN,
    OFF,
    PARENT,
    POSITION,
    ROW,
    SET,
    STALE,
    SWITCH,
    VALUE,
    A,
    B,
    C,
)
from .containers import close_value, step_array, step_colon, step_object
from .far import STEP
from .frames import find_transition
from .items import end_item, step_item
from .keys import step_key, step_name
from .memory import P, ask, i4
from .nodes import list_members, make_node
from .places import begin_fork, step_position, step_switch
from .unions import MAX_MEMBERS, NODE_MARGIN, OUT_SIZE, union
from .values import begin_value, step_counted


@kernel(STEP, far=True)
def step(nodes, buckets, rows, table, values, frames, transitions, header, state, byte, masking, text, out):
    """The state after `byte`: a node id, DEAD, NEED or GROW, while masking also DOUBT. `out` is scratch of OUT_SIZE ints.

    `text` is what is recorded before the byte, or STALE; while masking, the question that may be answered for an
    unknown text, or OFF.
    """
    if header[H_NODES] + NODE_MARGIN > header[H_NODE_CAPACITY]:
        return np.int32(GROW)
    half = MAX_MEMBERS
    pending = np.int32(0)  # nodes still to step lie in out[half:half + pending]
    pending = list_members(nodes, state, out, np.int32(half), np.int32(OUT_SIZE)) - half
    if pending < 0:
        return ask(header, 0, 0, 0)
    count = np.int32(0)
    while pending > 0:
        pending -= 1
        node = out[half + pending]
        kind = nodes[node * NODE + KIND]
        if count + 4 > half:
            return ask(header, 0, 0, 0)  # a union beyond every budget
        if kind == LEAF:
            row = nodes[node * NODE + A]
            if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
                return ask(header, NEED_ROW, row, 0)
            target = rows[row * ROW + byte]
            if target == FINAL_ROW:
                out[count] = nodes[node * NODE + PARENT]
                count += 1
            elif target > 0:
                out[count] = make_node(nodes, buckets, header, LEAF, target, 0, 0, nodes[node * NODE + PARENT], 1)
                count += 1
            if rows[row * ROW + FLAGS] & F_ACCEPT:
                pending = list_members(nodes, nodes[node * NODE + PARENT], out, np.int32(half + pending), np.int32(OUT_SIZE)) - half
                if pending < 0:
                    return ask(header, 0, 0, 0)
            continue
        if kind == MARK:
            continue  # a parser passes marks between steps, nothing else has any
        if kind == FORK:
            pending = begin_fork(nodes, buckets, table, values, header, node, out, np.int32(half), pending)
            if pending < 0:
                return pending
            continue
        if kind == SWITCH:
            count = step_switch(nodes, buckets, rows, header, node, byte, out, count)
            if count < 0:
                return count
            if rows[nodes[node * NODE + A] * ROW + FLAGS] & F_ACCEPT:
                pending = list_members(nodes, nodes[node * NODE + PARENT], out, np.int32(half + pending), np.int32(OUT_SIZE)) - half
                if pending < 0:
                    return ask(header, 0, 0, 0)
            continue
        if kind == POSITION:
            if values[nodes[node * NODE + A]] < 0:
                return ask(header, NEED_VALUE, nodes[node * NODE + A], 0)
            count = step_position(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, out, count)
            if count < 0:
                return count
            continue
        if kind == ITEM:
            row = nodes[node * NODE + A]
            if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
                return ask(header, NEED_ROW, row, 0)
            read = nodes[node * NODE + B]
            parent = nodes[node * NODE + PARENT]
            if rows[row * ROW + FLAGS] & F_ACCEPT:
                after = end_item(nodes, buckets, header, read, parent)
                if after >= 0:
                    out[half + pending] = after
                    pending += 1
            result = step_item(nodes, buckets, rows, header, row, read, parent, byte, masking)
        elif kind == COUNTED:
            result = step_counted(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, masking)
        elif kind == NAME:
            result = step_name(nodes, buckets, rows, table, frames, header, node, byte, masking)
        elif kind == KEY:
            result = step_key(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, masking)
        else:
            # everything else may begin with whitespace
            row = nodes[node * NODE + B]
            if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
                return ask(header, NEED_ROW, row, 0)
            target = rows[row * ROW + byte]
            a = nodes[node * NODE + A]
            parent = nodes[node * NODE + PARENT]
            if target >= 0:
                out[count] = make_node(nodes, buckets, header, kind, a, target, nodes[node * NODE + C], parent, 1)
                count += 1
                continue
            if rows[row * ROW + FLAGS] & F_ACCEPT == 0 or kind == END:
                continue
            if kind == FRESH:
                header[H_NEED_A] = np.int32(OFF)
                return np.int32(DOUBT)
            if kind == ASK:
                if masking:
                    if text != a:
                        header[H_NEED_A] = a
                        return np.int32(DOUBT)
                    outcome = np.int32(OFF)
                else:
                    if text == STALE:
                        return ask(header, NEED_TEXT, 0, 0)
                    outcome = text
                at = find_transition(transitions, header, a, outcome)
                if at < 0:
                    return ask(header, NEED_TRANSITION, a, outcome)
                if pending + table[at] > half:
                    return ask(header, 0, 0, 0)
                for k in range(table[at]):
                    out[half + pending] = make_node(
                        nodes, buckets, header, table[at + 1 + 2 * k], table[at + 2 + 2 * k], row, nodes[node * NODE + C], parent, 1
                    )
                    pending += 1
                continue
            result = np.int32(DEAD)
            if kind == VALUE:
                count = begin_value(nodes, buckets, rows, table, values, frames, transitions, header, a, byte, masking, parent, out, count)
            elif (byte == 93 and kind in (ARRAY_OPEN, ARRAY_AFTER)) or (byte == 125 and kind in (OBJECT_OPEN, OBJECT_AFTER)):
                count = close_value(nodes, table, frames, header, node, out, count)
            elif kind in (ARRAY_OPEN, ARRAY_AFTER):
                count = step_array(nodes, buckets, rows, table, values, frames, transitions, header, node, kind, byte, masking, out, count)
            elif kind == COLON:
                if byte == 58:
                    count = step_colon(nodes, buckets, table, transitions, header, node, out, count)
            else:
                result = step_object(nodes, buckets, rows, table, values, frames, transitions, header, node, kind, byte)
            if count < 0:
                return count
        if result >= 0:
            out[count] = result
            count += 1
        elif result != DEAD:
            return result
    if count == 0:
        return np.int32(DEAD)
    if count == 1 and nodes[out[0] * NODE + KIND] != SET:
        return out[0]
    return union(nodes, buckets, header, out, count)


MAY_END = 1
GOES_ON = 2


@kernel(i4(P, P, P, P, P, P, i4, P, P), apart=True)
def look_ahead(nodes, buckets, rows, table, values, header, state, out, found):
    """Follows what can be passed without a byte. Answers the number of marks met, in out[:count], or a code.

    Sets found[0] to the sum of MAY_END, if the text may end before any mark, and GOES_ON, if more of it can be read before any mark.
    `out` has OUT_SIZE ints; the upper half is scratch.
    """
    if header[H_NODES] + NODE_MARGIN > header[H_NODE_CAPACITY]:
        return np.int32(GROW)
    half = np.int32(MAX_MEMBERS)
    found[0] = np.int32(0)
    count = np.int32(0)
    pending = list_members(nodes, state, out, half, np.int32(OUT_SIZE)) - half
    if pending < 0:
        return ask(header, 0, 0, 0)
    while pending > 0:
        pending -= 1
        node = out[half + pending]
        kind = nodes[node * NODE + KIND]
        row = nodes[node * NODE + A]
        if kind == MARK:
            if count + 1 > half:
                return ask(header, 0, 0, 0)
            out[count] = node
            count += 1
            continue
        if kind == FORK:
            pending = begin_fork(nodes, buckets, table, values, header, node, out, half, pending)
            if pending < 0:
                return pending
            continue
        if kind == END:
            row = nodes[node * NODE + B]
        elif kind not in (LEAF, SWITCH):
            found[0] |= GOES_ON
            continue
        if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
            return ask(header, NEED_ROW, row, 0)
        if row != FINAL_ROW:
            found[0] |= GOES_ON
        if rows[row * ROW + FLAGS] & F_ACCEPT:
            if kind == END:
                found[0] |= MAY_END
            else:
                pending = list_members(nodes, nodes[node * NODE + PARENT], out, half + pending, np.int32(OUT_SIZE)) - half
                if pending < 0:
                    return ask(header, 0, 0, 0)
    return count
