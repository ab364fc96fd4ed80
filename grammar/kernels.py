"""The step of the lazy automaton, in numba: `state, byte -> state`.

Everything that runs once per byte is here; everything that runs once per schema node is in Python (`machine.Machine`),
which a kernel asks for by returning NEED. No function recurses, and each has an explicit signature, so that
the compiled code is cached once. See `machine_layout` for the memory and `docs/architecture.md` for the idea.
"""

from __future__ import annotations

import numpy as np
from numba import types

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
    FEW_TOKENS,
    FINAL_ROW,
    FLAGS,
    FORK,
    FR_ALTERNATIVES,
    FR_CLASSES,
    FR_CLOSE,
    FR_KEY_ROW,
    FR_LIST,
    FR_NAMES,
    FR_WORDS,
    FRESH,
    GENERIC_STRING,
    GROW,
    GUARD,
    H_NEED_A,
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
    MARK,
    MARKED,
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
    NEED_FRAME,
    NEED_GUARD,
    NEED_ROW,
    NEED_TEXT,
    NEED_TRANSITION,
    NEED_VALUE,
    NIL,
    NODE,
    OBJECT_AFTER,
    OBJECT_COMMA,
    OBJECT_OPEN,
    OFF,
    OUTCOME,
    P_ALTERNATIVES,
    P_LIST,
    PARENT,
    POSITION,
    ROW,
    SET,
    STALE,
    SWITCH,
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
from .node_kernels import (
    MAX_MEMBERS,
    MEMORY,
    NODE_MARGIN,
    OUT_SIZE,
    P,
    ask,
    at_address,
    first_of,
    i4,
    i4_1,
    list_members,
    make_node,
    pointer,
    push,
    rebuild_buckets,
    rest_of,
    union,
)


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


@kernel(i4(P, i4, P, i4))
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


@kernel(types.boolean(P, i4))
def is_item_of(nodes, after):
    """Whether a string followed by `after` is one that must differ from others, and no key."""
    kind = nodes[after * NODE + KIND]
    return kind in (ARRAY_AFTER, GUARD)


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


@kernel(i4(P, P, P, P, P, i4, i4, i4, i4, i4, i4, i4, i4))
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
        seen = seen_below(nodes, extras, text) if raw == NIL else seen_through(nodes, extras, text, raw)
        if seen >= tails and (is_item or row_allowed(rows, table, target, frame_at) == 0):
            return np.int32(DEAD)
    return make_node(nodes, buckets, header, KEY, target, text, raw, after, 1)


@kernel(i4(P, P, P, P, P, i4, i4, i4))
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
            extras = make_node(nodes, buckets, header, EXTRA, text, 0, 0, extras, 1)
        after = make_node(nodes, buckets, header, OBJECT_AFTER, frame, table[WS_AFTER_VALUE], extras, nodes[after * NODE + PARENT], 1)
    return make_node(nodes, buckets, header, COLON, outcome, table[WS_BEFORE_COLON], 0, after, 1)


@kernel(i4(P, P, P, P, P, P, i4, i4, i4))
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
    text = nodes[node * NODE + B]
    if rows[target * ROW + FLAGS] & F_KEY_END:
        if is_item_of(nodes, after):
            return end_item(nodes, buckets, header, text, after)
        return end_key(nodes, buckets, table, frames, header, rows[target * ROW + OUTCOME], text, after)
    frame_at = frames[nodes[after * NODE + A]]
    from_escape = np.int32(rows[row * ROW + FLAGS] & F_ESCAPE)
    raw = nodes[node * NODE + C]
    return enter_key_row(nodes, buckets, rows, table, header, target, frame_at, from_escape, byte, text, raw, after, masking)


@kernel(i4(P, P, P, P, P, i4, i4, i4, i4, P, i4))
def begin_distinct(nodes, buckets, rows, table, header, at, byte, masking, after, out, count):
    """The first byte of an item that must differ from those listed in the node `after`. Answers the new count, or a code."""
    if count + 4 > MAX_MEMBERS:
        return ask(header, 0, 0, 0)
    row = table[at + V_DISTINCT_STRING]
    if byte == 34 and row >= 0:
        quote = make_node(nodes, buckets, header, CHAR, byte, 0, 0, NIL, 1)  # so that "1" differs from 1
        tails = rows[row * ROW + KEY_TAILS]
        if tails <= 0 or seen_below(nodes, nodes[after * NODE + C], quote) < tails:
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
    """First byte after a place in a context-free grammar. Answers the count, or a code."""
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
                inner = push(nodes, buckets, header, table[at + 1 + pushes - k], inner)
                if inner < 0:
                    return inner
            out[count] = inner if target == FINAL_ROW else make_node(nodes, buckets, header, LEAF, target, 0, 0, inner, 1)
            count += 1
            if count + 4 > MAX_MEMBERS:
                return ask(header, 0, 0, 0)
        at += 2 + pushes
    return count


@kernel(i4(P, P, P, P, P, i4, P, i4, i4))
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
    if rows[row * ROW + KEY_CLASSES] & table[at + FR_CLASSES] == 0:
        return np.int32(0)
    tails = rows[row * ROW + KEY_TAILS]
    if tails > 0 and seen_below(nodes, nodes[node * NODE + C], NIL) >= tails:
        return np.int32(0)
    return np.int32(1)


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


@kernel(i4(P, P, P, P, P, P, P, P, i4, i4, i4, i4, P, i4))
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


@kernel(i4(P, P, P, P, P, P, i4, P, P))
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


# --- entries: arrays in, called from Python ------------------------------------------------------------------------


@kernel(types.UniTuple(P, 8)(MEMORY))
def addresses(memory):
    return (
        at_address(memory[0]), at_address(memory[1]), at_address(memory[2]), at_address(memory[3]),
        at_address(memory[4]), at_address(memory[5]), at_address(memory[6]), at_address(memory[7]),
    )  # fmt: skip


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


u1_1 = types.Array(types.uint8, 1, "C", readonly=True)


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
    if seen != NIL and seen_below(nodes, seen, nodes[state * NODE + B]) > 0:
        return state
    if header[H_NODES] + 1 >= header[H_NODE_CAPACITY]:
        return np.int32(GROW)
    return make_node(nodes, buckets, header, kind, nodes[state * NODE + A], OFF, rest, parent, np.int32(1))


@kernel(types.void(MEMORY))
def rehash_nodes(memory):
    """Enters all nodes into `buckets` (all -1), after the arrays have grown."""
    nodes, buckets, _, _, _, _, _, header = addresses(memory)
    rebuild_buckets(nodes, buckets, header)


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


@kernel(types.void(MEMORY, i4, i4, i4))
def add_transition(memory, frame, outcome, at):
    """Adds (frame, outcome) -> table offset; the caller keeps `transitions` at most half full."""
    _, _, _, _, _, _, transitions, header = addresses(memory)
    insert_transition(transitions, header, frame, outcome, at)
