"""The trie walk: which tokens an automaton state allows, in numba.

Walks collect token ids; a mask row is int32 [ceil(V / 32)], bit (t & 31) of word (t >> 5) set where token t is allowed.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ..grammar.kernel_cache import kernel
from ..grammar.kernels.items import is_item_of
from ..grammar.kernels.keys import end_key, name_child
from ..grammar.kernels.memory import MEMORY, P, addresses, ask, at_address, i4, i4_1, pointer
from ..grammar.kernels.step import step
from ..grammar.machine_layout import (
    CLASS_BASE,
    COUNTED,
    DEAD,
    F_ACCEPT,
    F_BOUNDARY,
    F_EXPANDED,
    F_LOOPS,
    F_OTHERS,
    F_PLAIN,
    F_RUN,
    F_TEXT_LOOP,
    F_TIDY,
    FINAL_ROW,
    FLAGS,
    FR_CLASSES,
    GROW,
    H_NODE_CAPACITY,
    H_NODES,
    KEY,
    KEY_CLASSES,
    KEY_HI,
    KEY_LO,
    KEY_TAILS,
    KIND,
    LEAF,
    LOOP,
    NAME,
    NAME_ESCAPE,
    NAME_OUTCOME,
    NEED_ROW,
    NEED_VALUE,
    NIL,
    NODE,
    NODE_RESERVE,
    OFF,
    OTHER,
    PARENT,
    ROW,
    ROW_SERIAL,
    RUN,
    SET,
    SWITCH,
    V_ARRAYS,
    V_COUNTED,
    V_DISTINCT_RAW,
    V_DISTINCT_STRING,
    V_OBJECTS,
    V_SCALAR,
    VALUE,
    A,
    B,
    C,
)
from .trie import ASCII, BROKEN, BYTE, DEPTH, END, FIRST, HEIGHT, LAST, SUBTREE, TEXT, TOKEN, TRIE_NODE, WIDE

i8 = types.int64
i4_2 = types.Array(types.int32, 2, "C")
i8_2 = types.Array(types.int64, 2, "C")
i2_1 = types.Array(types.int16, 1, "C")
u1_1 = types.Array(types.uint8, 1, "C")
TRIE = types.Array(types.int64, 1, "C")  # addresses of the arrays of a trie, and its number of nodes

# How a mask is made, answers of `classify` in info[WAY]
WALK = 0  # by walking all tokens
STRING = 1  # inside any string: tables, and what may follow the string
REST = 2  # inside any string whose end depends on its text: tables, room, and a walk over tokens that close it
NAMED = 3  # inside a key that is declared or any other: as STRING, but for the tokens that close a declared name
IN_LEAF = 4  # inside another leaf: its table, and what may follow it
AT_VALUE = 5  # before a value: the table of how scalars begin, and walks over tokens that begin otherwise
MEMBERS = 6  # a union: the members, one by one
INFO_SIZE = 6
WAY, TIDY, ROOM, LACK, EXIT = range(5)  # of STRING, REST and NAMED; ROOM: characters that still fit, -1 any; LACK: that must still come
_, LEAF_ROW, SERIAL, ENDS, _, BEGINS = range(6)  # of IN_LEAF and AT_VALUE; ENDS: the leaf may end here; LEAF_ROW: -1 for none
OBJECT, ARRAY, QUOTE, SPACE = 1, 2, 4, 8  # BEGINS: what else may begin

POSITION, STOP, FOUND, DROPPED, EXITS, STATUS_SIZE = range(6)
# of `status`: trie node to go on at and to stop before; tokens found, tokens dropped and leaf ends met so far
DONE = 0  # answer of a walk that is finished; else it is a code to serve


@kernel(types.void(i4_1, i4_1))
def set_bits(mask, tokens):
    """Sets the bits of all `tokens`."""
    for t in tokens:
        mask[t >> 5] |= np.int32(1) << (t & 31)


@kernel(types.void(i4_1, i4_1, i4_1))
def fill_row(mask, base, tokens):
    """Overwrites `mask` with `base` (no words: zero) and the bits of `tokens`."""
    if base.shape[0] == 0:
        mask[:] = 0
    else:
        mask[:] = base
    for t in tokens:
        mask[t >> 5] |= np.int32(1) << (t & 31)


@kernel(types.void(i4_2, i8_2))
def fill_rows(rows, places):
    """Overwrites rows [R, W] with masks. `places` [R, 4] is for each the row of `rows`, the address of a base row (0: none), the
    address of ids and their number."""
    for k in range(places.shape[0]):
        r = places[k, 0]
        base, ids = at_address(places[k, 1]), at_address(places[k, 2])
        if places[k, 1] == 0:
            for w in range(rows.shape[1]):
                rows[r, w] = 0
        else:
            for w in range(rows.shape[1]):
                rows[r, w] = base[w]
        for j in range(places[k, 3]):
            rows[r, ids[j] >> 5] |= np.int32(1) << (ids[j] & 31)


@kernel(i4(P, P, P, P, P, i4, i4_1))
def classify_value(nodes, rows, table, values, header, node, info):
    """`classify` for the place before a value."""
    value = nodes[node * NODE + A]
    white = nodes[node * NODE + B] * ROW
    if rows[white + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, nodes[node * NODE + B], 0)
    if values[value] < 0:
        return ask(header, NEED_VALUE, value, 0)
    at = values[value]
    if rows[white + FLAGS] & F_ACCEPT == 0 or table[at + V_DISTINCT_STRING] >= 0 or table[at + V_DISTINCT_RAW] >= 0:
        return np.int32(DONE)
    row = table[at + V_SCALAR]
    if row >= 0 and rows[row * ROW + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, row, 0)
    begins = np.int32(0)
    if table[at + V_OBJECTS]:
        begins |= np.int32(OBJECT)
    if table[at + V_ARRAYS]:
        begins |= np.int32(ARRAY)
    if table[at + V_COUNTED] >= 0:
        begins |= np.int32(QUOTE)
    for byte in (9, 10, 13, 32):
        if rows[white + byte] >= 0:
            begins |= np.int32(SPACE)
    info[WAY] = AT_VALUE
    info[LEAF_ROW] = row
    info[SERIAL] = rows[row * ROW + ROW_SERIAL] if row >= 0 else 0
    info[ENDS] = 0
    info[EXIT] = nodes[node * NODE + PARENT]
    info[BEGINS] = begins
    return np.int32(DONE)


@kernel(i4(MEMORY, i4, i4_1))
def classify(memory, node, info):
    """Says how the mask of a node is made, in `info`; answers DONE or a code to serve."""
    nodes, buckets, rows, table, values, frames, _, header = addresses(memory)
    info[WAY] = WALK
    if header[H_NODES] + NODE_RESERVE > header[H_NODE_CAPACITY]:
        return np.int32(GROW)
    kind = nodes[node * NODE + KIND]
    parent = nodes[node * NODE + PARENT]
    if kind == SET:
        info[WAY] = MEMBERS
        return np.int32(DONE)
    if kind == VALUE:
        return classify_value(nodes, rows, table, values, header, node, info)
    if kind not in (LEAF, COUNTED, KEY, NAME):
        return np.int32(DONE)
    row = nodes[node * NODE + C] if kind == NAME else nodes[node * NODE + A]
    if row < 0:
        return np.int32(DONE)
    at = row * ROW
    if rows[at + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, row, 0)
    if rows[at + FLAGS] & F_PLAIN == 0:
        if kind == LEAF:
            info[WAY] = IN_LEAF
            info[LEAF_ROW] = row
            info[SERIAL] = rows[at + ROW_SERIAL]
            info[ENDS] = rows[at + FLAGS] & F_ACCEPT
            info[EXIT] = parent
        return np.int32(DONE)
    info[TIDY] = np.int32(1 if rows[at + FLAGS] & F_TIDY else 0)
    info[ROOM] = -1
    info[LACK] = 0
    info[EXIT] = parent
    if kind == LEAF:
        info[WAY] = STRING
    elif kind == COUNTED:
        info[WAY] = STRING
        seen = nodes[node * NODE + B]
        bounds = nodes[node * NODE + C]
        info[LACK] = max(np.int32(0), table[bounds] - seen)
        if table[bounds + 1] >= 0:
            info[ROOM] = table[bounds + 1] - seen
    elif kind == NAME:
        info[WAY] = REST
        if nodes[node * NODE + B] == OFF:
            info[WAY] = NAMED
            info[EXIT] = end_key(nodes, buckets, table, frames, header, np.int32(CLASS_BASE), np.int32(OFF), parent)
    else:
        classes = rows[at + KEY_CLASSES]
        alone = rows[at + KEY_LO] == rows[at + KEY_HI] and classes & (classes - 1) == 0 and nodes[node * NODE + B] == OFF
        is_item = is_item_of(nodes, parent)
        if not is_item:
            classes &= table[frames[nodes[parent * NODE + A]] + FR_CLASSES]
        if classes == 0 or rows[at + KEY_TAILS] != -1 or nodes[node * NODE + C] != NIL:
            return np.int32(DONE)
        info[WAY] = REST
        if alone and not is_item:
            outcome = np.int32(CLASS_BASE)
            while classes & 1 == 0:
                classes >>= 1
                outcome += 1
            info[WAY] = STRING
            info[EXIT] = end_key(nodes, buckets, table, frames, header, outcome, np.int32(OFF), parent)
    return np.int32(DONE)


@kernel(types.boolean(P, i4, P, i8))
def row_takes_whole(rows, row, subtrees, i):
    """Whether everything below trie node `i` leads from `row` back to itself, or is part of a run that begins there."""
    flags = rows[row * ROW + FLAGS]
    if flags & F_LOOPS == 0:
        return False
    at = i * SUBTREE
    if flags & F_RUN and subtrees[at + HEIGHT] > rows[row * ROW + RUN]:
        return False
    wide = subtrees[at + WIDE]
    if wide == BROKEN or (wide == TEXT and flags & F_TEXT_LOOP == 0):
        return False
    outside = np.int32(0)
    for w in range(4):
        outside |= subtrees[at + ASCII + w] & ~rows[row * ROW + LOOP + w]
    return outside == 0


@kernel(types.boolean(P, P, i4, P, i8))
def taken_whole(nodes, rows, state, subtrees, i):
    """Whether everything below trie node `i` may follow `state`: a leaf that takes all these bytes in any order, or a key whose text
    does not matter."""
    kind = nodes[state * NODE + KIND]
    if kind != LEAF and kind != SWITCH and (kind != KEY or nodes[state * NODE + B] != OFF):
        return False
    return row_takes_whole(rows, nodes[state * NODE + A], subtrees, i)


@kernel(types.boolean(P, P, i4, i4))
def leads_nowhere(nodes, table, state, byte):
    """Whether `state` is inside a declared name that `byte` does not continue."""
    if nodes[state * NODE + KIND] != NAME or nodes[state * NODE + C] >= 0 or byte == 34 or byte == 92:
        return False
    return name_child(table, nodes[state * NODE + A], byte) < 0


@kernel(i4(MEMORY, TRIE, i4_1, i4_1, i4_1, i4_1, i4, i4, i4, i4, i4))
def walk(memory, trie, path, out, found, status, state, start, stop, count, answered):
    """Writes to `found[count:]` the tokens that lead from `state` to a living state, among those below the trie nodes from `start` to
    `stop` (siblings, and what is below them).

    Answers the new count, or a code to serve; then the walk goes on with state NIL and the start and count in `status`. `path` holds
    the state before each depth and survives an interruption. `answered` is a question that at `start` has the answer for a text that
    is not known, or OFF.
    """
    nodes, buckets, rows, table, values, frames, transitions, header = addresses(memory)
    members = pointer(out)
    tree, same, subtrees, order = at_address(trie[0]), at_address(trie[1]), at_address(trie[2]), at_address(trie[3])
    i = np.int64(start)
    if state != NIL and start < stop:
        path[tree[i * TRIE_NODE + DEPTH]] = state
    while i < stop:
        at = i * TRIE_NODE
        depth = tree[at + DEPTH]
        byte = tree[at + BYTE]
        before = path[depth]
        if leads_nowhere(nodes, table, before, byte):
            i = np.int64(tree[at + END])
            continue
        if taken_whole(nodes, rows, before, subtrees, i):
            for k in range(subtrees[i * SUBTREE + FIRST], subtrees[i * SUBTREE + LAST]):
                found[count] = order[k]
                count += 1
            i = np.int64(tree[at + END])
            continue
        known = answered if i == start else np.int32(OFF)
        after = step(nodes, buckets, rows, table, values, frames, transitions, header, before, byte, np.int32(1), known, members)
        if after >= 0:
            path[depth + 1] = after
            token = tree[at + TOKEN]
            while token >= 0:
                found[count] = token
                count += 1
                token = same[token]
            i += 1
        elif after == DEAD:
            i = np.int64(tree[at + END])
        else:
            status[POSITION] = np.int32(i)
            status[FOUND] = count
            return after
    return count


@kernel(i4(MEMORY, TRIE, i4_1, i4_1, i4_1, i4_1, u1_1, i4, i4, i4))
def walk_names(memory, trie, path, out, found, status, dropped, state, start, count):
    """As `walk` over the whole trie, from a key that is declared or any other, but only for tokens that end it as a declared name (or
    spell it with an escape): `dropped` is set for each of them, and those that may come are found."""
    nodes, buckets, rows, table, values, frames, transitions, header = addresses(memory)
    members = pointer(out)
    tree, same, subtrees, order = at_address(trie[0]), at_address(trie[1]), at_address(trie[2]), at_address(trie[3])
    i = np.int64(start)
    if state != NIL:
        path[0] = state
        status[DROPPED] = 0
    while i < trie[4]:
        at = i * TRIE_NODE
        depth = tree[at + DEPTH]
        byte = tree[at + BYTE]
        before = path[depth]
        if nodes[before * NODE + KIND] == NAME:
            name = nodes[before * NODE + A]
            if byte == 34 or byte == 92:
                ends = table[name + NAME_OUTCOME] >= 0 if byte == 34 else table[name + NAME_ESCAPE] != 0
                if ends:
                    for k in range(subtrees[i * SUBTREE + FIRST], subtrees[i * SUBTREE + LAST]):
                        dropped[order[k]] = 1
                    status[DROPPED] += subtrees[i * SUBTREE + LAST] - subtrees[i * SUBTREE + FIRST]
            else:
                ends = name_child(table, name, byte) >= 0
            if not ends:
                i = np.int64(tree[at + END])
                continue
        after = step(nodes, buckets, rows, table, values, frames, transitions, header, before, byte, np.int32(1), np.int32(OFF), members)
        if after >= 0:
            path[depth + 1] = after
            token = tree[at + TOKEN]
            while token >= 0:
                found[count] = token
                count += 1
                token = same[token]
            i += 1
        elif after == DEAD:
            i = np.int64(tree[at + END])
        else:
            status[POSITION] = np.int32(i)
            status[FOUND] = count
            return after
    return count


LAZY = -1  # in the path of `scan_leaf`: a row within a run, not made


@kernel(types.boolean(P, i4, i4, i8))
def has_byte(rows, row, column, byte):
    """Whether an ASCII byte is in the set in four words from a column of a row on."""
    return byte < 128 and (rows[row * ROW + column + (byte >> 5)] >> (byte & 31)) & 1 != 0


@kernel(i4(P, P, i4_1, i4))
def make_path(rows, header, path, depth):
    """Replaces the LAZY rows of a path down to `depth`, whose bytes stand in its second half. Answers DONE or a code to serve."""
    half = path.shape[0] // 2
    d = depth
    while path[d] == LAZY:
        d -= 1
    while d < depth:
        if rows[path[d] * ROW + FLAGS] & F_EXPANDED == 0:
            return ask(header, NEED_ROW, path[d], 0)
        path[d + 1] = rows[path[d] * ROW + path[half + d]]
        d += 1
    if rows[path[d] * ROW + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, path[d], 0)
    return np.int32(DONE)


@kernel(i4(MEMORY, TRIE, i4_1, i4_1, i4_1, i4_1))
def scan_leaf(memory, trie, path, found, exits, status):
    """Appends to `found` the tokens that the leaf in row `path[0]` may begin with or be, and to `exits` the trie nodes, if they have
    others below, after which it may end. Answers DONE or a code to serve, and goes on where `status` says."""
    half = path.shape[0] // 2
    _, _, rows, _, _, _, _, header = addresses(memory)
    tree, same, subtrees, order = at_address(trie[0]), at_address(trie[1]), at_address(trie[2]), at_address(trie[3])
    i = np.int64(status[POSITION])
    n = np.int64(status[STOP])
    count = status[FOUND]
    ends = status[EXITS]
    code = np.int32(DONE)
    while i < n:
        at = i * TRIE_NODE
        depth = tree[at + DEPTH]
        byte = tree[at + BYTE]
        anchor = depth
        while path[anchor] == LAZY:
            anchor -= 1
        before = path[anchor]
        if rows[before * ROW + FLAGS] & F_EXPANDED == 0:
            code = ask(header, NEED_ROW, before, 0)
            break
        if row_takes_whole(rows, before, subtrees, i):
            for k in range(subtrees[i * SUBTREE + FIRST], subtrees[i * SUBTREE + LAST]):
                found[count] = order[k]
                count += 1
            i = np.int64(tree[at + END])
            continue
        flags = rows[before * ROW + FLAGS]
        if anchor < depth or (flags & F_OTHERS and subtrees[i * SUBTREE + HEIGHT] <= rows[before * ROW + RUN]):
            if has_byte(rows, before, LOOP, byte):
                token = tree[at + TOKEN]
                while token >= 0:
                    found[count] = token
                    count += 1
                    token = same[token]
                path[depth + 1] = LAZY
                path[half + depth] = byte
                i += 1
                continue
            if not has_byte(rows, before, OTHER, byte):
                i = np.int64(tree[at + END])
                continue
            code = make_path(rows, header, path, np.int32(depth))
            if code != DONE:
                break
            before = path[depth]
        target = rows[before * ROW + byte]
        if target < 0:
            i = np.int64(tree[at + END])
            continue
        inner = i + 1 < tree[at + END]
        if target != FINAL_ROW and inner and rows[target * ROW + FLAGS] & F_EXPANDED == 0:
            code = ask(header, NEED_ROW, target, 0)
            break
        token = tree[at + TOKEN]
        while token >= 0:
            found[count] = token
            count += 1
            token = same[token]
        if inner and (target == FINAL_ROW or rows[target * ROW + FLAGS] & F_ACCEPT):
            exits[ends] = np.int32(i)
            ends += 1
        path[depth + 1] = target
        i = i + 1 if target != FINAL_ROW else np.int64(tree[at + END])
    status[POSITION] = np.int32(i)
    status[FOUND] = count
    status[EXITS] = ends
    return code


@kernel(i4(TRIE, i4_1, i4, i4_1, i4, u1_1))
def keep_useful(trie, found, num_found, exits, num_exits, marks):
    """Keeps those of `exits[:num_exits]` below which there are tokens that are not in `found[:num_found]` already; answers how many.
    `marks` is zero before and after."""
    tree, same, subtrees, order = at_address(trie[0]), at_address(trie[1]), at_address(trie[2]), at_address(trie[3])
    for k in range(num_found):
        marks[found[k]] = 1
    kept = np.int32(0)
    for k in range(num_exits):
        i = np.int64(exits[k])
        first = subtrees[i * SUBTREE + FIRST]
        token = tree[i * TRIE_NODE + TOKEN]
        while token >= 0:
            first += 1
            token = same[token]
        for j in range(first, subtrees[i * SUBTREE + LAST]):
            if marks[order[j]] == 0:
                exits[kept] = exits[k]
                kept += 1
                break
    for k in range(num_found):
        marks[found[k]] = 0
    return kept


@kernel(i4(i4_1, i4_1, i4_1, i4, u1_1))
def add_common(tokens, allowed, found, count, marks):
    """Appends to `found[:count]` those of `tokens` that are in `allowed`; answers the new count. `marks` is zero before and after."""
    for token in allowed:
        marks[token] = 1
    for token in tokens:
        if marks[token]:
            found[count] = token
            count += 1
    for token in allowed:
        marks[token] = 0
    return count


@kernel(i4(i4_1, i2_1, i4, i4, u1_1, i4_1, i4))
def add_fitting(tokens, lengths, low, high, dropped, found, count):
    """Appends to `found[:count]` those of `tokens` that have low to high characters and are not dropped; answers the new count."""
    for token in tokens:
        if low <= lengths[token] <= high and dropped[token] == 0:
            found[count] = token
            count += 1
    return count


@kernel(i4(i4_1, i4_1, i4))
def add_all(tokens, found, count):
    """Appends `tokens` to `found[:count]`; answers the new count."""
    for token in tokens:
        found[count] = token
        count += 1
    return count


@kernel(types.void(MEMORY, TRIE, i4, i4_1, i2_1, i2_1))
def scan_string(memory, trie, row, path, lengths, closed):
    """Reads all tokens from `row`, inside a JSON string whose rows are all filled.

    Args:
        lengths: for each token the characters it begins before it ends or closes the string, -1 where it cannot stand here.
        closed: for each token the bytes up to and including the closing quote, 0 where it does not close the string.
    """
    rows = at_address(memory[2])
    tree, same, subtrees, order = at_address(trie[0]), at_address(trie[1]), at_address(trie[2]), at_address(trie[3])
    lengths[:] = -1
    closed[:] = 0
    path[0] = row
    path[1] = 0
    i = np.int64(0)
    while i < trie[4]:
        at = i * TRIE_NODE
        depth = tree[at + DEPTH]
        before = path[2 * depth]
        count = path[2 * depth + 1]
        target = rows[before * ROW + tree[at + BYTE]]
        if target == FINAL_ROW:
            for k in range(subtrees[i * SUBTREE + FIRST], subtrees[i * SUBTREE + LAST]):
                lengths[order[k]] = count
                closed[order[k]] = depth + 1
        elif target >= 0:
            if rows[before * ROW + FLAGS] & F_BOUNDARY:
                count += 1
            path[2 * depth + 2] = target
            path[2 * depth + 3] = count
            token = tree[at + TOKEN]
            while token >= 0:
                lengths[token] = count
                token = same[token]
            i += 1
            continue
        i = np.int64(tree[at + END])
