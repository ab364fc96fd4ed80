"""Keys of objects: as texts of any kind, and as declared names."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import kernel
from ..machine_layout import (
    CHAR,
    CLASS_BASE,
    COLON,
    DEAD,
    EXTRA,
    F_BOUNDARY,
    F_ESCAPE,
    F_EXPANDED,
    F_KEY_END,
    FLAGS,
    FR_CLASSES,
    KEY,
    KEY_CLASSES,
    KEY_TAILS,
    NAME,
    NAME_BYTE,
    NAME_DEPTH,
    NAME_ESCAPE,
    NAME_HI,
    NAME_LO,
    NAME_NODE,
    NAME_OUTCOME,
    NAME_SIZE,
    NEED_ESCAPE,
    NEED_ROW,
    NIL,
    NODE,
    OBJECT_AFTER,
    OFF,
    OUTCOME,
    PARENT,
    ROW,
    WS_AFTER_VALUE,
    WS_BEFORE_COLON,
    A,
    B,
    C,
)
from .escapes import append_decoded, seen_below, seen_through, was_seen
from .frames import any_allowed, outcome_allowed, row_allowed
from .items import end_item, is_item_of
from .memory import P, ask, i4, i4_1, u1_1
from .nodes import make_node


@kernel(i4(P, i4, i4))
def name_child(table, at, byte):
    """The node of a trie of declared names after one more byte, or -1."""
    end = at + table[at + NAME_SIZE]
    child = at + NAME_NODE
    while child < end:
        if table[child + NAME_BYTE] == byte:
            return child
        child += table[child + NAME_SIZE]
    return np.int32(-1)


@kernel(i4(P, P, P, P, P, i4, i4, i4, i4, i4, i4, i4, i4), apart=True)
def enter_key_row(nodes, buckets, rows, table, header, target, frame_at, from_escape, byte, text, raw, after, masking):
    """The state in `target`, a row inside a key or a distinct string, after `byte`, or DEAD."""
    extras = nodes[after * NODE + C]
    is_item = is_item_of(nodes, after)
    classes = rows[target * ROW + KEY_CLASSES]
    if not is_item:
        classes &= table[frame_at + FR_CLASSES]
    if classes == 0:
        if row_allowed(rows, table, target, frame_at) == 0:
            return np.int32(DEAD)
        return make_node(nodes, buckets, header, KEY, target, NIL, NIL, after, 1)
    tails = rows[target * ROW + KEY_TAILS]
    if masking and extras == NIL:
        return make_node(nodes, buckets, header, KEY, target, OFF, NIL, after, 1)
    if rows[target * ROW + FLAGS] & F_ESCAPE:
        raw = make_node(nodes, buckets, header, CHAR, byte, 0, 0, raw, 1)
    elif from_escape:
        if text != OFF:
            text = append_decoded(nodes, buckets, header, text, raw, byte)
        raw = np.int32(NIL)
    elif text != OFF:
        text = make_node(nodes, buckets, header, CHAR, byte, 0, 0, text, np.int32(1 - masking))
        if text < 0:
            text = np.int32(OFF)
    if tails > 0 and text != OFF and extras != NIL:
        if is_item:
            classes = np.int32(1)
        seen = seen_below(nodes, extras, text, classes) if raw == NIL else seen_through(nodes, extras, text, raw, classes)
        if seen >= tails and (is_item or row_allowed(rows, table, target, frame_at) == 0):
            return np.int32(DEAD)
    return make_node(nodes, buckets, header, KEY, target, text, raw, after, 1)


@kernel(i4(P, P, P, P, P, i4, i4, i4), apart=True)
def end_key(nodes, buckets, table, frames, header, outcome, text, after):
    """The state after the closing quote of a key, or DEAD."""
    frame = nodes[after * NODE + A]
    if outcome_allowed(table, frames[frame], outcome) == 0:
        return np.int32(DEAD)
    if outcome >= CLASS_BASE:
        extras = nodes[after * NODE + C]
        if text != OFF:
            if was_seen(nodes, extras, text):
                return np.int32(DEAD)
            extras = make_node(nodes, buckets, header, EXTRA, text, outcome - CLASS_BASE, 0, extras, 1)
        after = make_node(nodes, buckets, header, OBJECT_AFTER, frame, table[WS_AFTER_VALUE], extras, nodes[after * NODE + PARENT], 1)
    return make_node(nodes, buckets, header, COLON, outcome, table[WS_BEFORE_COLON], 0, after, 1)


@kernel(i4(P, P, P, P, P, P, i4, i4, i4), apart=True)
def step_name(nodes, buckets, rows, table, frames, header, node, byte, masking):
    """One byte inside a key that is so far the beginning of declared names."""
    at = nodes[node * NODE + A]
    text = nodes[node * NODE + B]
    other = nodes[node * NODE + C]
    after = nodes[node * NODE + PARENT]
    frame_at = frames[nodes[after * NODE + A]]
    if byte == 34:
        outcome = table[at + NAME_OUTCOME]
        if outcome < 0:
            if other < 0 or rows[other * ROW + FLAGS] & F_BOUNDARY == 0:
                return np.int32(DEAD)
            outcome = np.int32(CLASS_BASE)
        return end_key(nodes, buckets, table, frames, header, outcome, text, after)
    if byte == 92:
        row = table[at + NAME_ESCAPE]
        if row < 0:
            return ask(header, NEED_ESCAPE, at, 0)
        if row > 0:
            return enter_key_row(nodes, buckets, rows, table, header, row, frame_at, 0, byte, text, NIL, after, masking)
    target = np.int32(DEAD)
    if other >= 0:
        if rows[other * ROW + FLAGS] & F_EXPANDED == 0:
            return ask(header, NEED_ROW, other, 0)
        target = rows[other * ROW + byte]
    child = name_child(table, at, byte)
    if child < 0:
        if target < 0:
            return np.int32(DEAD)
        return enter_key_row(nodes, buckets, rows, table, header, target, frame_at, 0, byte, text, NIL, after, masking)
    if other < 0:
        if any_allowed(table, frame_at, table[child + NAME_LO], table[child + NAME_HI]) == 0:
            return np.int32(DEAD)
    elif masking and nodes[after * NODE + C] == NIL:
        text = np.int32(OFF)
    elif text != OFF:
        text = make_node(nodes, buckets, header, CHAR, byte, 0, 0, text, np.int32(1 - masking))
        if text < 0:
            text = np.int32(OFF)
    return make_node(nodes, buckets, header, NAME, child, text, target, after, 1)


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4), apart=True)
def step_key(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, masking):
    """One byte inside an object key. While `masking`, text that cannot repeat a seen key is not remembered."""
    row = nodes[node * NODE + A]
    if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, row, 0)
    target = rows[row * ROW + byte]
    if target < 0:
        return np.int32(DEAD)
    after = nodes[node * NODE + PARENT]
    text = nodes[node * NODE + B]
    if rows[target * ROW + FLAGS] & F_KEY_END:
        if is_item_of(nodes, after):
            return end_item(nodes, buckets, header, text, after)
        return end_key(nodes, buckets, table, frames, header, rows[target * ROW + OUTCOME], text, after)
    frame_at = frames[nodes[after * NODE + A]]
    from_escape = np.int32(rows[row * ROW + FLAGS] & F_ESCAPE)
    raw = nodes[node * NODE + C]
    return enter_key_row(nodes, buckets, rows, table, header, target, frame_at, from_escape, byte, text, raw, after, masking)


@kernel(i4(u1_1, i4_1, i4_1, i4, i4, i4_1, i4_1))
def build_names(data, ends, cuts, tidy, owner, out, path):
    """Writes the trie of sorted names to `out`; answers the ints written. See `machine_layout` for its nodes.

    Args:
        data, ends: raw bytes of the names, each up to the first character that only an escape can spell.
        cuts: 1 where a name goes on with such a character.
        tidy: whether other characters are escaped only beyond ASCII.
        owner: who makes rows for escapes.
        path: scratch, one int per depth.
    """
    out[NAME_LO] = 0
    out[NAME_OUTCOME] = -1
    out[NAME_ESCAPE] = 0
    out[NAME_DEPTH] = 0
    path[0] = 0
    used = np.int32(NAME_NODE)
    depth = 0  # path[0:depth + 1] is open
    start = 0
    unknown = np.int32(-1 - owner)
    for name in range(ends.shape[0]):
        length = ends[name] - start
        common = 0
        while common < length and common < depth and out[path[common + 1] + NAME_BYTE] == data[start + common]:
            common += 1
        while depth > common:
            out[path[depth] + NAME_SIZE] = used - path[depth]
            out[path[depth] + NAME_HI] = name
            depth -= 1
        for d in range(common, length):
            byte = np.int32(data[start + d])
            if byte & 0xC0 != 0x80 and (tidy == 0 or byte >= 0x7F):
                out[path[d] + NAME_ESCAPE] = unknown
            path[d + 1] = used
            out[used + NAME_BYTE] = byte
            out[used + NAME_LO] = np.int32(name)
            out[used + NAME_OUTCOME] = -1
            out[used + NAME_ESCAPE] = 0
            out[used + NAME_DEPTH] = np.int32(d + 1)
            used += NAME_NODE
        depth = length
        if cuts[name]:
            out[path[depth] + NAME_ESCAPE] = unknown
        else:
            out[path[depth] + NAME_OUTCOME] = np.int32(name)
        start = ends[name]
    while depth >= 0:
        out[path[depth] + NAME_SIZE] = used - path[depth]
        out[path[depth] + NAME_HI] = ends.shape[0]
        depth -= 1
    return used
