"""The step of the lazy automaton, in numba: `state, byte -> state`.

Everything that runs once per byte is here; everything that runs once per schema node is in Python (`machine.Machine`),
which a kernel asks for by returning NEED. No function recurses, and each has an explicit signature, so that
the compiled code is cached once. See `machine_layout` for the memory and `docs/architecture.md` for the idea.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from .kernel_cache import kernel
from .machine_layout import (
    ARRAY_AFTER,
    ARRAY_OPEN,
    ASK,
    CHAR,
    CLASS_BASE,
    COLON,
    COUNTED,
    DEAD,
    DOUBT,
    END,
    EXTRA,
    F_ACCEPT,
    F_BOUNDARY,
    F_ESCAPE,
    F_EXPANDED,
    F_KEY_END,
    FINAL_ROW,
    FLAGS,
    FR_ALTERNATIVES,
    FR_CLASSES,
    FR_CLOSE,
    FR_KEY_ROW,
    FR_LIST,
    FR_WORDS,
    FRESH,
    GENERIC_STRING,
    GROW,
    GUARD,
    H_BUCKET_MASK,
    H_NEED,
    H_NEED_A,
    H_NEED_B,
    H_NODE_CAPACITY,
    H_NODES,
    H_POSITION,
    H_START,
    H_STATE,
    H_TEXT,
    H_TRANSITION_MASK,
    ITEM,
    KEY,
    KEY_CLASSES,
    KEY_HI,
    KEY_LO,
    KEY_SET,
    KEY_TAILS,
    KIND,
    LEAF,
    NEED,
    NEED_FRAME,
    NEED_ROW,
    NEED_TEXT,
    NEED_TRANSITION,
    NEED_VALUE,
    NEXT,
    NIL,
    NODE,
    OBJECT_AFTER,
    OBJECT_COMMA,
    OBJECT_OPEN,
    OFF,
    OUTCOME,
    P_ALTERNATIVES,
    P_LIST,
    P_NULLABLE,
    PARENT,
    POSITION,
    ROW,
    SET,
    STALE,
    TEXT,
    UNKNOWN,
    V_ARRAYS,
    V_COUNTED,
    V_DISTINCT_RAW,
    V_DISTINCT_STRING,
    V_LIST,
    V_OBJECTS,
    V_SCALAR,
    V_UNLIKE,
    VALUE,
    WS_AFTER_COLON,
    WS_AFTER_COMMA,
    WS_AFTER_VALUE,
    WS_BEFORE_COLON,
    WS_OPEN,
    A,
    B,
    C,
)

i4 = types.int32
i4_1 = types.Array(types.int32, 1, "C")
i4_2 = types.Array(types.int32, 2, "C")
# nodes, buckets, rows, table, values, frames, transitions, header
MEMORY = types.Tuple((i4_2, i4_1, i4_2, i4_1, i4_1, i4_1, i4_2, i4_1))

P = types.CPointer(types.int32)


def _pointer(_typing, array):
    """Address of the first element. Inner functions take addresses: an array argument costs seven machine words a call."""

    def codegen(context, builder, signature, args):
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), codegen


pointer: Any = intrinsic(_pointer)


MAX_MEMBERS = 2048  # members of one union, and pending nodes of one step; beyond, the kernels ask for nothing that helps
OUT_SIZE = 2 * MAX_MEMBERS
NODE_MARGIN = 3 * OUT_SIZE  # nodes that one step can make


@kernel(i4(P, P, P, i4, i4, i4, i4, i4, i4))
def make_node(nodes, buckets, header, kind, a, b, c, parent, insert):
    """The node with these fields; made when absent and `insert`, else -1."""
    h = np.uint32(kind) * np.uint32(0x9E3779B1)
    h = (h ^ np.uint32(a)) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(15)) ^ np.uint32(b)) * np.uint32(0xC2B2AE35)
    h = (h ^ (h >> np.uint32(13)) ^ np.uint32(c)) * np.uint32(0x27D4EB2F)
    h = (h ^ (h >> np.uint32(16)) ^ np.uint32(parent)) * np.uint32(0x165667B1)
    slot = np.int64((h ^ (h >> np.uint32(15))) & np.uint32(header[H_BUCKET_MASK]))
    n = buckets[slot]
    while n >= 0:
        at = n * NODE
        same = nodes[at + KIND] == kind and nodes[at + A] == a and nodes[at + B] == b
        if same and nodes[at + C] == c and nodes[at + PARENT] == parent:
            return n
        n = nodes[at + NEXT]
    if insert == 0:
        return np.int32(-1)
    n = header[H_NODES]
    header[H_NODES] = n + 1
    nodes[n * NODE + KIND] = kind
    nodes[n * NODE + A] = a
    nodes[n * NODE + B] = b
    nodes[n * NODE + C] = c
    nodes[n * NODE + PARENT] = parent
    nodes[n * NODE + NEXT] = buckets[slot]
    buckets[slot] = n
    return n


@kernel(types.void(P, P, P))
def rebuild_buckets(nodes, buckets, header):
    mask = np.uint32(header[H_BUCKET_MASK])
    for n in range(header[H_NODES]):
        h = np.uint32(nodes[n * NODE + KIND]) * np.uint32(0x9E3779B1)
        h = (h ^ np.uint32(nodes[n * NODE + A])) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(15)) ^ np.uint32(nodes[n * NODE + B])) * np.uint32(0xC2B2AE35)
        h = (h ^ (h >> np.uint32(13)) ^ np.uint32(nodes[n * NODE + C])) * np.uint32(0x27D4EB2F)
        h = (h ^ (h >> np.uint32(16)) ^ np.uint32(nodes[n * NODE + PARENT])) * np.uint32(0x165667B1)
        slot = np.int64((h ^ (h >> np.uint32(15))) & mask)
        nodes[n * NODE + NEXT] = buckets[slot]
        buckets[slot] = np.int32(n)


@kernel(i4(P, i4, i4, i4))
def ask(header, what, a, b):
    header[H_NEED] = what
    header[H_NEED_A] = a
    header[H_NEED_B] = b
    return np.int32(NEED)


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


@kernel(i4(P, i4, i4))
def seen_below(nodes, extras, text):
    """How many of the extra keys seen start with `text`. Lists are hash-consed, so a prefix is an ancestor."""
    count = np.int32(0)
    while extras != NIL:
        t = nodes[extras * NODE + A]
        while t != text and t != NIL:
            t = nodes[t * NODE + PARENT]
        if t == text:
            count += 1
        extras = nodes[extras * NODE + PARENT]
    return count


@kernel(i4(i4))
def hex_value(byte):
    if byte <= 57:
        return byte - 48
    return (byte & 0xDF) - 55


@kernel(i4(P, i4, i4, i4))
def escape_unit(nodes, raw, last, skip):
    """The UTF-16 unit of the four hex digits that end `skip` bytes before `last`, newest first."""
    value = np.int32(0)
    shift = np.int32(0)
    byte = last
    at = raw
    for _ in range(skip):
        byte = nodes[at * NODE + A]
        at = nodes[at * NODE + PARENT]
    for _ in range(4):
        value |= hex_value(byte) << shift
        shift += 4
        byte = nodes[at * NODE + A]
        at = nodes[at * NODE + PARENT]
    return value


@kernel(i4(P, P, P, i4, i4, i4))
def append_decoded(nodes, buckets, header, text, raw, byte):
    """`text` followed by the character that the escape `raw` + `byte` spells, as UTF-8 bytes."""
    length = np.int32(1)
    at = raw
    while at != NIL:
        length += 1
        at = nodes[at * NODE + PARENT]
    if length == 2:
        code = byte
        if byte == 98:
            code = np.int32(8)
        elif byte == 102:
            code = np.int32(12)
        elif byte == 110:
            code = np.int32(10)
        elif byte == 114:
            code = np.int32(13)
        elif byte == 116:
            code = np.int32(9)
    elif length == 6:
        code = escape_unit(nodes, raw, byte, np.int32(0))
    else:  # a surrogate pair
        low = escape_unit(nodes, raw, byte, np.int32(0))
        high = escape_unit(nodes, raw, byte, np.int32(6))
        code = np.int32(0x10000) + ((high - np.int32(0xD800)) << 10) + (low - np.int32(0xDC00))
    if code < 0x80:
        return make_node(nodes, buckets, header, CHAR, code, 0, 0, text, 1)
    if code < 0x800:
        text = make_node(nodes, buckets, header, CHAR, 0xC0 | (code >> 6), 0, 0, text, 1)
    else:
        if code < 0x10000:
            text = make_node(nodes, buckets, header, CHAR, 0xE0 | (code >> 12), 0, 0, text, 1)
        else:
            text = make_node(nodes, buckets, header, CHAR, 0xF0 | (code >> 18), 0, 0, text, 1)
            text = make_node(nodes, buckets, header, CHAR, 0x80 | ((code >> 12) & 0x3F), 0, 0, text, 1)
        text = make_node(nodes, buckets, header, CHAR, 0x80 | ((code >> 6) & 0x3F), 0, 0, text, 1)
    return make_node(nodes, buckets, header, CHAR, 0x80 | (code & 0x3F), 0, 0, text, 1)


@kernel(i4(i4, i4))
def utf16_unit(code, second):
    """First or second UTF-16 unit of a code point; -1 where it has no second one."""
    if code < 0x10000:
        return np.int32(-1) if second else code
    if second:
        return np.int32(0xDC00) + ((code - np.int32(0x10000)) & 0x3FF)
    return np.int32(0xD800) + ((code - np.int32(0x10000)) >> 10)


@kernel(i4(P, i4, i4))
def escape_fits(nodes, raw, code):
    """Whether the open escape `raw` (newest byte first) can become the character `code`."""
    length = np.int32(0)
    at = raw
    while at != NIL:
        length += 1
        at = nodes[at * NODE + PARENT]
    at = raw
    position = length - 1  # of the byte at `at`: 0 backslash, 1 u, 2-5 digits, 6 backslash, 7 u, 8-11 digits
    while at != NIL:
        second = position >= 8
        place = position - 8 if second else position - 2
        if 0 <= place < 4:
            unit = utf16_unit(code, np.int32(second))
            if unit < 0 or (unit >> (4 * (3 - place))) & 0xF != hex_value(nodes[at * NODE + A]):
                return np.int32(0)
        at = nodes[at * NODE + PARENT]
        position -= 1
    return np.int32(1)


@kernel(i4(P, i4, i4, i4))
def seen_through(nodes, extras, text, raw):
    """How many of the extra keys seen continue `text` with a character that the open escape `raw` can become."""
    count = np.int32(0)
    while extras != NIL:
        t = nodes[extras * NODE + A]
        b0 = b1 = b2 = b3 = np.int32(0)  # the bytes after `text` once the walk ends there
        while t != text and t != NIL:
            b3 = b2
            b2 = b1
            b1 = b0
            b0 = nodes[t * NODE + A]
            t = nodes[t * NODE + PARENT]
        if t == text and nodes[extras * NODE + A] != text:
            if b0 < 0x80:
                code = b0
            elif b0 < 0xE0:
                code = ((b0 & 0x1F) << 6) | (b1 & 0x3F)
            elif b0 < 0xF0:
                code = ((b0 & 0x0F) << 12) | ((b1 & 0x3F) << 6) | (b2 & 0x3F)
            else:
                code = ((b0 & 0x07) << 18) | ((b1 & 0x3F) << 12) | ((b2 & 0x3F) << 6) | (b3 & 0x3F)
            count += escape_fits(nodes, raw, np.int32(code))
        extras = nodes[extras * NODE + PARENT]
    return count


@kernel(i4(P, i4, i4))
def was_seen(nodes, extras, text):
    """Whether `text` is in a list of extra keys or distinct items."""
    while extras != NIL:
        if nodes[extras * NODE + A] == text:
            return np.int32(1)
        extras = nodes[extras * NODE + PARENT]
    return np.int32(0)


@kernel(i4(P, P, P, i4, i4, i4, i4, i4, i4))
def after_value(nodes, buckets, header, kind, frame, space, extras, parent, insert):
    """The node behind a value: of `kind` in `frame`, or the question whose answer is its frame (written ~question)."""
    if frame < 0:
        return make_node(nodes, buckets, header, ASK, ~frame, space, extras, parent, insert)
    return make_node(nodes, buckets, header, kind, frame, space, extras, parent, insert)


@kernel(i4(P, i4))
def unguarded(nodes, node):
    while nodes[node * NODE + KIND] == GUARD:
        node = nodes[node * NODE + PARENT]
    return node


@kernel(i4(P, i4, i4))
def in_guard(nodes, state, depth):
    """Whether a guard is within `depth` nodes around a state (any number of nodes if it is negative)."""
    rest = np.int32(NIL)
    member = state
    if nodes[state * NODE + KIND] == SET:
        member = nodes[state * NODE + A]
        rest = nodes[state * NODE + PARENT]
    while True:
        left = depth
        while member != NIL and left != 0:
            member = nodes[member * NODE + PARENT]
            if nodes[member * NODE + KIND] == GUARD:
                return np.int32(1)
            left -= 1
        if rest == NIL:
            return np.int32(0)
        member = nodes[rest * NODE + A]
        rest = nodes[rest * NODE + PARENT]


@kernel(i4(P, P, P, i4, i4))
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


@kernel(i4(P, P, P, P, i4, i4, i4, i4, i4))
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
    if tails > 0 and text != OFF and seen_below(nodes, seen, text) >= tails:
        return np.int32(DEAD)
    return make_node(nodes, buckets, header, ITEM, target, text, 0, after, 1)


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4))
def step_key(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, masking):
    """One byte inside an object key. While `masking`, text that cannot repeat a seen key is not remembered."""
    row = nodes[node * NODE + A]
    if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, row, 0)
    target = rows[row * ROW + byte]
    if target < 0:
        return np.int32(DEAD)
    after = nodes[node * NODE + PARENT]
    frame = nodes[after * NODE + A]
    extras = nodes[after * NODE + C]
    frame_at = frames[frame]
    text = nodes[node * NODE + B]
    raw = nodes[node * NODE + C]
    flags = rows[target * ROW + FLAGS]
    is_item = nodes[after * NODE + KIND] == ARRAY_AFTER or nodes[after * NODE + KIND] == GUARD
    if flags & F_KEY_END and is_item:
        return end_item(nodes, buckets, header, text, after)
    if flags & F_KEY_END:
        outcome = rows[target * ROW + OUTCOME]
        if outcome_allowed(table, frame_at, outcome) == 0:
            return np.int32(DEAD)
        if outcome >= CLASS_BASE:
            if text != OFF:
                if was_seen(nodes, extras, text):
                    return np.int32(DEAD)
                extras = make_node(nodes, buckets, header, EXTRA, text, 0, 0, extras, 1)
            after = make_node(nodes, buckets, header, OBJECT_AFTER, frame, table[WS_AFTER_VALUE], extras, nodes[after * NODE + PARENT], 1)
        return make_node(nodes, buckets, header, COLON, outcome, table[WS_BEFORE_COLON], 0, after, 1)

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
    if flags & F_ESCAPE:
        raw = make_node(nodes, buckets, header, CHAR, byte, 0, 0, raw, 1)
    elif rows[row * ROW + FLAGS] & F_ESCAPE:
        if text != OFF:
            text = append_decoded(nodes, buckets, header, text, raw, byte)
        raw = np.int32(NIL)
    elif text != OFF:
        text = make_node(nodes, buckets, header, CHAR, byte, 0, 0, text, np.int32(1 - masking))
        if text < 0:
            text = np.int32(OFF)
    if tails > 0 and text != OFF and extras != NIL:
        seen = seen_below(nodes, extras, text) if raw == NIL else seen_through(nodes, extras, text, raw)
        if seen >= tails and (is_item or row_allowed(rows, table, target, frame_at) == 0):
            return np.int32(DEAD)
    return make_node(nodes, buckets, header, KEY, target, text, raw, after, 1)


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4, i4, P, i4))
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
        generic = table[GENERIC_STRING]
        out[count] = make_node(nodes, buckets, header, COUNTED, generic, 0, table[at + V_COUNTED], parent, 1)
        count += 1
    row = table[at + V_DISTINCT_STRING]
    if byte == 34 and row >= 0:
        quote = make_node(nodes, buckets, header, CHAR, byte, 0, 0, NIL, 1)  # so that "1" differs from 1
        outer = parent
        if table[at + V_UNLIKE] >= 0:
            outer = make_node(nodes, buckets, header, GUARD, 0, 0, table[at + V_UNLIKE], parent, 1)
        tails = rows[row * ROW + KEY_TAILS]
        if tails <= 0 or seen_below(nodes, nodes[outer * NODE + C], quote) < tails:
            out[count] = make_node(nodes, buckets, header, KEY, row, quote, NIL, outer, 1)
            count += 1
    row = table[at + V_DISTINCT_RAW]
    if row >= 0:
        if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
            return ask(header, NEED_ROW, row, 0)
        result = step_item(nodes, buckets, rows, header, row, np.int32(NIL), parent, byte, masking)
        if result >= 0:
            out[count] = result
            count += 1
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


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4))
def step_counted(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, masking):
    """One byte of a string whose only bounds are its length in code points."""
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
    if rows[row * ROW + FLAGS] & F_BOUNDARY and high >= 0 and seen >= high:
        return np.int32(DEAD)
    if rows[target * ROW + FLAGS] & F_BOUNDARY and (high >= 0 or seen < low):
        seen += 1
    return make_node(nodes, buckets, header, COUNTED, target, seen, nodes[node * NODE + C], parent, 1)


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


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, P, i4))
def step_position(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, out, count):
    """First byte after a place in a context-free grammar, without what follows a nullable one. Answers the count, or a code."""
    at = values[nodes[node * NODE + A]]
    parent = nodes[node * NODE + PARENT]
    alternatives = table[at + P_ALTERNATIVES]
    at += P_LIST
    for _ in range(alternatives):
        row = table[at]
        pushes = table[at + 1]
        if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
            return ask(header, NEED_ROW, row, 0)
        target = rows[row * ROW + byte]
        if target >= 0:
            inner = parent
            for k in range(pushes):
                inner = make_node(nodes, buckets, header, POSITION, table[at + 1 + pushes - k], 0, 0, inner, 1)
            out[count] = inner if target == FINAL_ROW else make_node(nodes, buckets, header, LEAF, target, 0, 0, inner, 1)
            count += 1
            if count + 4 > MAX_MEMBERS:
                return ask(header, 0, 0, 0)
        at += 2 + pushes
    return count


@kernel(i4(P, P, P, P, P, P, P, P, i4))
def may_continue(nodes, buckets, rows, table, values, frames, transitions, header, node):
    """Whether an object (any of its nodes) can take one more key."""
    at = frames[nodes[node * NODE + A]]
    row = table[at + FR_KEY_ROW]
    if row < 0:
        return np.int32(0)
    if row_allowed(rows, table, row, at):
        return np.int32(1)
    if rows[row * ROW + KEY_CLASSES] & table[at + FR_CLASSES] == 0:
        return np.int32(0)
    tails = rows[row * ROW + KEY_TAILS]
    if tails > 0 and seen_below(nodes, nodes[node * NODE + C], NIL) >= tails:
        return np.int32(0)
    return np.int32(1)


@kernel(i4(P, P, P, P, i4))
def union(nodes, buckets, header, members, count):
    """The state that is the union of `members[:count]` (sorted here in place)."""
    for i in range(1, count):
        x = members[i]
        j = i - 1
        while j >= 0 and members[j] > x:
            members[j + 1] = members[j]
            j -= 1
        members[j + 1] = x
    rest = np.int32(NIL)
    distinct = 0
    for i in range(count):
        if i == 0 or members[i] != members[i - 1]:
            distinct += 1
            rest = make_node(nodes, buckets, header, SET, members[i], 0, 0, rest, 1)
    if distinct == 1:
        return members[0]
    return rest


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4, i4, P, i4))
def step_array(nodes, buckets, rows, table, values, frames, transitions, header, node, kind, byte, masking, out, count):
    """A byte other than whitespace after '[' or after an item. Answers the new count, or a code."""
    a = nodes[node * NODE + A]
    parent = nodes[node * NODE + PARENT]
    at = frames[a]
    if at < 0:
        return ask(header, NEED_FRAME, a, 0)
    if byte == 93:  # ]
        if table[at + FR_CLOSE]:
            out[count] = unguarded(nodes, parent)
            count += 1
    elif kind == ARRAY_OPEN:
        return begin_item(nodes, buckets, rows, table, values, frames, transitions, header, a, byte, masking, parent, out, count)
    elif byte == 44:
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


@kernel(i4(P, P, P, P, P, i4, P, i4))
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


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4))
def step_object(nodes, buckets, rows, table, values, frames, transitions, header, node, kind, byte):
    """A byte other than whitespace after '{', after a member or after its comma. Answers the state, DEAD or a code."""
    a = nodes[node * NODE + A]
    extras = nodes[node * NODE + C]
    parent = nodes[node * NODE + PARENT]
    at = frames[a]
    if at < 0:
        return ask(header, NEED_FRAME, a, 0)
    if byte == 125:  # }
        return unguarded(nodes, parent) if kind != OBJECT_COMMA and table[at + FR_CLOSE] else np.int32(DEAD)
    if byte != (44 if kind == OBJECT_AFTER else 34):
        return np.int32(DEAD)
    if may_continue(nodes, buckets, rows, table, values, frames, transitions, header, node) == 0:
        return np.int32(DEAD)
    if kind == OBJECT_AFTER:
        return make_node(nodes, buckets, header, OBJECT_COMMA, a, table[WS_AFTER_COMMA], extras, parent, 1)
    back = make_node(nodes, buckets, header, OBJECT_AFTER, a, table[WS_AFTER_VALUE], extras, parent, 1)
    return make_node(nodes, buckets, header, KEY, table[at + FR_KEY_ROW], NIL, NIL, back, 1)


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4, i4, P))
def step(nodes, buckets, rows, table, values, frames, transitions, header, state, byte, masking, text, out):
    """The state after `byte`: a node id, DEAD, NEED or GROW, while masking also DOUBT. `out` is scratch of OUT_SIZE ints.

    `text` is what is recorded before the byte, or STALE; while masking, the question that may be answered for an
    unknown text, or OFF.
    """
    if header[H_NODES] + NODE_MARGIN > header[H_NODE_CAPACITY]:
        return np.int32(GROW)
    half = MAX_MEMBERS
    pending = np.int32(0)  # nodes still to step lie in out[half:half + pending]
    if nodes[state * NODE + KIND] == SET:
        while state != NIL:
            if pending + 2 > half:
                return ask(header, 0, 0, 0)
            out[half + pending] = nodes[state * NODE + A]
            pending += 1
            state = nodes[state * NODE + PARENT]
    else:
        out[half] = state
        pending = np.int32(1)
    count = np.int32(0)
    while pending > 0:
        pending -= 1
        node = out[half + pending]
        kind = nodes[node * NODE + KIND]
        if count + 4 > half or pending + 2 > half:
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
                out[half + pending] = nodes[node * NODE + PARENT]
                pending += 1
            continue
        if kind == POSITION:
            at = values[nodes[node * NODE + A]]
            if at < 0:
                return ask(header, NEED_VALUE, nodes[node * NODE + A], 0)
            count = step_position(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, out, count)
            if count < 0:
                return count
            if table[at + P_NULLABLE]:
                out[half + pending] = nodes[node * NODE + PARENT]
                pending += 1
            continue
        if kind == ITEM:
            row = nodes[node * NODE + A]
            if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
                return ask(header, NEED_ROW, row, 0)
            text = nodes[node * NODE + B]
            parent = nodes[node * NODE + PARENT]
            if rows[row * ROW + FLAGS] & F_ACCEPT:
                after = end_item(nodes, buckets, header, text, parent)
                if after >= 0:
                    out[half + pending] = after
                    pending += 1
            result = step_item(nodes, buckets, rows, header, row, text, parent, byte, masking)
        elif kind == COUNTED:
            result = step_counted(nodes, buckets, rows, table, values, frames, transitions, header, node, byte, masking)
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
                if pending + table[at] + 2 > half:
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


@kernel(i4(P, P, P, P, P, i4, P))
def may_end(nodes, rows, table, values, header, state, out):
    """1 if the text may end in this state, 0 if not, or NEED."""
    pending = 0
    if nodes[state * NODE + KIND] == SET:
        while state != NIL:
            if pending + 2 > OUT_SIZE:
                return ask(header, 0, 0, 0)
            out[pending] = nodes[state * NODE + A]
            pending += 1
            state = nodes[state * NODE + PARENT]
    else:
        out[0] = state
        pending = 1
    while pending > 0:
        pending -= 1
        node = out[pending]
        kind = nodes[node * NODE + KIND]
        row = nodes[node * NODE + A]
        if kind == POSITION:
            if values[row] < 0:
                return ask(header, NEED_VALUE, row, 0)
            if table[values[row] + P_NULLABLE]:
                out[pending] = nodes[node * NODE + PARENT]
                pending += 1
            continue
        if kind == END:
            row = nodes[node * NODE + B]
        elif kind != LEAF:
            continue
        if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
            return ask(header, NEED_ROW, row, 0)
        if rows[row * ROW + FLAGS] & F_ACCEPT:
            if kind == END:
                return np.int32(1)
            out[pending] = nodes[node * NODE + PARENT]
            pending += 1
    return np.int32(0)


# --- entries: arrays in, called from Python ------------------------------------------------------------------------


@kernel(types.UniTuple(P, 8)(MEMORY))
def addresses(memory):
    nodes, buckets, rows, table, values, frames, transitions, header = memory
    return (
        pointer(nodes), pointer(buckets), pointer(rows), pointer(table),
        pointer(values), pointer(frames), pointer(transitions), pointer(header),
    )  # fmt: skip


@kernel(i4(MEMORY, i4, i4_1))
def accepting(memory, state, out):
    """1 if the text may end in `state`, 0 if not, or NEED. `out` is scratch of OUT_SIZE ints."""
    nodes, _, rows, table, values, _, _, header = addresses(memory)
    return may_end(nodes, rows, table, values, header, state, pointer(out))


u1_1 = types.Array(types.uint8, 1, "C", readonly=True)


@kernel(i4(MEMORY, i4, u1_1, i4, i4, i4, i4_1))
def run(memory, state, data, position, text, start, out):
    """The state after the bytes of `data` from `position` on, or DEAD; or a code, with where to go on in the header.

    `text` is what is recorded of the bytes before `start`, NIL if nothing is; the header has both at the end.
    """
    nodes, buckets, rows, table, values, frames, transitions, header = addresses(memory)
    members = pointer(out)
    for i in range(position, data.shape[0]):
        byte = np.int32(data[i])
        known = text if start == i else np.int32(STALE)
        target = step(nodes, buckets, rows, table, values, frames, transitions, header, state, byte, np.int32(0), known, members)
        if target < 0:
            header[H_POSITION] = np.int32(i)
            header[H_STATE] = state
            header[H_TEXT] = text
            header[H_START] = start
            return target
        state = target
        if text == NIL and (byte == 91 or byte == 123) and in_guard(nodes, state, np.int32(1)):
            text = make_node(nodes, buckets, header, TEXT, byte, 0, 0, NIL, 1)
            start = np.int32(i + 1)
    header[H_TEXT] = text
    header[H_START] = start
    return state


@kernel(i4(MEMORY, i4))
def is_recorded(memory, state):
    """Whether a state is inside a value that is recorded. Takes time by the depth of nesting."""
    nodes, _, _, _, _, _, _, _ = addresses(memory)
    return in_guard(nodes, state, np.int32(-1))


@kernel(i4(MEMORY, i4, i4, i4, i4, i4))
def intern_node(memory, kind, a, b, c, parent):
    """The node with these fields, made when absent."""
    nodes, buckets, _, _, _, _, _, header = addresses(memory)
    return make_node(nodes, buckets, header, kind, a, b, c, parent, np.int32(1))


@kernel(i4(MEMORY, i4))
def mask_state(memory, state):
    """A state with the same mask: inside a key or a distinct item, text that begins nothing seen before does not matter."""
    nodes, buckets, _, _, _, _, _, header = addresses(memory)
    kind = nodes[state * NODE + KIND]
    if kind not in (KEY, ITEM) or nodes[state * NODE + C] != NIL or nodes[state * NODE + B] == OFF:
        return state
    parent = nodes[state * NODE + PARENT]
    seen = nodes[parent * NODE + C]
    if seen != NIL and seen_below(nodes, seen, nodes[state * NODE + B]) > 0:
        return state
    if header[H_NODES] + 1 >= header[H_NODE_CAPACITY]:
        return np.int32(GROW)
    return make_node(nodes, buckets, header, kind, nodes[state * NODE + A], OFF, NIL, parent, np.int32(1))


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
