"""Items that must differ from those before them."""

from __future__ import annotations

import numpy as np
from numba import types

from ..kernel_cache import kernel
from ..machine_layout import (
    ARRAY_AFTER,
    CHAR,
    DEAD,
    EXTRA,
    F_EXPANDED,
    FINAL_ROW,
    FLAGS,
    GUARD,
    ITEM,
    KEY,
    KEY_TAILS,
    KIND,
    NEED_ROW,
    NIL,
    NODE,
    OFF,
    PARENT,
    ROW,
    V_DISTINCT_RAW,
    V_DISTINCT_STRING,
    A,
    B,
    C,
)
from .escapes import seen_below, was_seen
from .memory import P, ask, i4
from .nodes import make_node
from .unions import MAX_MEMBERS


@kernel(types.boolean(P, i4))
def is_item_of(nodes, after):
    """Whether a string followed by `after` is one that must differ from others, and no key."""
    kind = nodes[after * NODE + KIND]
    return kind in (ARRAY_AFTER, GUARD)


@kernel(i4(P, P, P, i4, i4), apart=True)
def end_item(nodes, buckets, header, text, after):
    """The state after an item that must differ from those seen, or DEAD."""
    is_guard = nodes[after * NODE + KIND] == GUARD
    if text == OFF:
        return nodes[after * NODE + PARENT] if is_guard else after
    seen = nodes[after * NODE + C]
    if was_seen(nodes, seen, text):
        return np.int32(DEAD)
    if is_guard:
        return nodes[after * NODE + PARENT]
    seen = make_node(nodes, buckets, header, EXTRA, text, 0, 0, seen, 1)
    return make_node(
        nodes, buckets, header, ARRAY_AFTER, nodes[after * NODE + A], nodes[after * NODE + B], seen, nodes[after * NODE + PARENT], 1
    )


@kernel(i4(P, P, P, P, i4, i4, i4, i4, i4), apart=True)
def step_item(nodes, buckets, rows, header, row, text, after, byte, masking):
    """One byte of a number or literal that must differ from the items seen."""
    target = rows[row * ROW + byte]
    if target < 0:
        return np.int32(DEAD)
    seen = nodes[after * NODE + C]
    if masking and seen == NIL:
        text = np.int32(OFF)
    elif text != OFF:
        text = make_node(nodes, buckets, header, CHAR, byte, 0, 0, text, np.int32(1 - masking))
        if text < 0:
            text = np.int32(OFF)
    if target == FINAL_ROW:
        return end_item(nodes, buckets, header, text, after)
    tails = rows[target * ROW + KEY_TAILS]
    if tails > 0 and text != OFF and seen_below(nodes, seen, text, 1) >= tails:
        return np.int32(DEAD)
    return make_node(nodes, buckets, header, ITEM, target, text, 0, after, 1)


@kernel(i4(P, P, P, P, P, i4, i4, i4, i4, P, i4), apart=True)
def begin_distinct(nodes, buckets, rows, table, header, at, byte, masking, after, out, count):
    """The first byte of an item that must differ from those listed in the node `after`. Answers the new count, or a code."""
    if count + 4 > MAX_MEMBERS:
        return ask(header, 0, 0, 0)
    row = table[at + V_DISTINCT_STRING]
    if byte == 34 and row >= 0:
        quote = make_node(nodes, buckets, header, CHAR, byte, 0, 0, NIL, 1)  # so that "1" differs from 1
        tails = rows[row * ROW + KEY_TAILS]
        if tails <= 0 or seen_below(nodes, nodes[after * NODE + C], quote, 1) < tails:
            out[count] = make_node(nodes, buckets, header, KEY, row, quote, NIL, after, 1)
            count += 1
    row = table[at + V_DISTINCT_RAW]
    if row >= 0:
        if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
            return ask(header, NEED_ROW, row, 0)
        result = step_item(nodes, buckets, rows, header, row, np.int32(NIL), after, byte, masking)
        if result >= 0:
            out[count] = result
            count += 1
    return count
