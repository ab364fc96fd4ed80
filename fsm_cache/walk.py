"""The trie walk: which tokens an automaton state allows, in numba.

Walks collect token ids; a mask row is int32 [ceil(V / 32)], bit (t & 31) of word (t >> 5) set where token t is allowed.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ..grammar.kernel_cache import kernel
from ..grammar.kernels import MEMORY, P, addresses, ask, at_address, end_key, name_child, pointer, step
from ..grammar.machine_layout import (
    ARRAY_AFTER,
    CLASS_BASE,
    COUNTED,
    DEAD,
    F_BOUNDARY,
    F_EXPANDED,
    F_LOOPS,
    F_PLAIN,
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
    NIL,
    NODE,
    NODE_RESERVE,
    OFF,
    PARENT,
    ROW,
    RUN,
    A,
    B,
    C,
)
from .trie import ASCII, BROKEN, BYTE, DEPTH, END, FIRST, HEIGHT, LAST, SUBTREE, TEXT, TOKEN, TRIE_NODE, WIDE

i4 = types.int32
i8 = types.int64
i4_1 = types.Array(types.int32, 1, "C")
i4_2 = types.Array(types.int32, 2, "C")
i2_1 = types.Array(types.int16, 1, "C")
u1_1 = types.Array(types.uint8, 1, "C")
TRIE = types.Array(types.int64, 1, "C")  # addresses of the arrays of a trie, and its number of nodes

# How a mask is made, answers of `classify` in info[WAY]
WALK = 0  # by walking all tokens
STRING = 1  # inside any string: tables, and what may follow the string
REST = 2  # inside any string whose end depends on its text: tables, and a walk over tokens that close it
NAMED = 3  # inside a key that is declared or any other: as STRING, but for the tokens that close a declared name
WAY, TIDY, ROOM, LACK, EXIT, INFO_SIZE = range(6)  # ROOM: characters that still fit, -1 any; LACK: that must still come

POSITION, FOUND, DROPPED, STATUS_SIZE = range(4)  # of `status`: trie node to go on at, tokens found and dropped so far
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


@kernel(i4(MEMORY, i4, i4_1))
def classify(memory, node, info):
    """Says how the mask of a node (no union) is made, in `info`; answers DONE or a code to serve."""
    nodes, buckets, rows, table, _, frames, _, header = addresses(memory)
    info[WAY] = WALK
    if header[H_NODES] + NODE_RESERVE > header[H_NODE_CAPACITY]:
        return np.int32(GROW)
    kind = nodes[node * NODE + KIND]
    parent = nodes[node * NODE + PARENT]
    if kind not in (LEAF, COUNTED, KEY, NAME):
        return np.int32(DONE)
    row = nodes[node * NODE + C] if kind == NAME else nodes[node * NODE + A]
    if row < 0:
        return np.int32(DONE)
    at = row * ROW
    if rows[at + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, row, 0)
    if rows[at + FLAGS] & F_PLAIN == 0:
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
        is_item = nodes[parent * NODE + KIND] == ARRAY_AFTER
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


@kernel(types.boolean(P, P, i4, P, i8))
def taken_whole(nodes, rows, state, subtrees, i):
    """Whether everything below trie node `i` leads from `state` back to itself (a leaf that loops over all these bytes, or a
    key whose text does not matter), or runs on in a leaf that takes so many characters of this kind."""
    kind = nodes[state * NODE + KIND]
    if kind != LEAF and (kind != KEY or nodes[state * NODE + B] != OFF):
        return False
    row = nodes[state * NODE + A] * ROW
    if rows[row + FLAGS] & F_LOOPS == 0:
        return False
    at = i * SUBTREE
    if kind == LEAF and rows[row + RUN] > 0 and subtrees[at + HEIGHT] > rows[row + RUN]:
        return False
    wide = subtrees[at + WIDE]
    if wide == BROKEN or (wide == TEXT and rows[row + FLAGS] & F_TEXT_LOOP == 0):
        return False
    outside = np.int32(0)
    for w in range(4):
        outside |= subtrees[at + ASCII + w] & ~rows[row + LOOP + w]
    return outside == 0


@kernel(types.boolean(P, P, i4, i4))
def leads_nowhere(nodes, table, state, byte):
    """Whether `state` is inside a declared name that `byte` does not continue."""
    if nodes[state * NODE + KIND] != NAME or nodes[state * NODE + C] >= 0 or byte == 34 or byte == 92:
        return False
    return name_child(table, nodes[state * NODE + A], byte) < 0


@kernel(i4(MEMORY, TRIE, i4_1, i4_1, i4_1, i4_1))
def walk(memory, trie, path, out, found, status):
    """Appends to `found` the tokens that lead from state `path[0]` to a living state.

    Answers DONE or a code to serve; the walk then goes on where `status` says. `path` holds the state before each depth and
    survives an interruption.
    """
    nodes, buckets, rows, table, values, frames, transitions, header = addresses(memory)
    members = pointer(out)
    tree, same, subtrees, order = at_address(trie[0]), at_address(trie[1]), at_address(trie[2]), at_address(trie[3])
    n = trie[4]
    i = np.int64(status[POSITION])
    count = status[FOUND]
    while i < n:
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
        state = step(nodes, buckets, rows, table, values, frames, transitions, header, before, byte, np.int32(1), members)
        if state >= 0:
            path[depth + 1] = state
            token = tree[at + TOKEN]
            while token >= 0:
                found[count] = token
                count += 1
                token = same[token]
            i += 1
        elif state == DEAD:
            i = np.int64(tree[at + END])
        else:
            status[POSITION] = np.int32(i)
            status[FOUND] = count
            return state
    status[POSITION] = np.int32(i)
    status[FOUND] = count
    return np.int32(DONE)


@kernel(i4(MEMORY, TRIE, i4_1, i4_1, i4_1, i4_1, u1_1))
def walk_names(memory, trie, path, out, found, status, dropped):
    """As `walk`, from a key that is declared or any other, but only for tokens that end it as a declared name (or spell it with an
    escape): `dropped` is set for each of them, and those that may come are appended."""
    nodes, buckets, rows, table, values, frames, transitions, header = addresses(memory)
    members = pointer(out)
    tree, same, subtrees, order = at_address(trie[0]), at_address(trie[1]), at_address(trie[2]), at_address(trie[3])
    n = trie[4]
    i = np.int64(status[POSITION])
    count = status[FOUND]
    while i < n:
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
        state = step(nodes, buckets, rows, table, values, frames, transitions, header, before, byte, np.int32(1), members)
        if state >= 0:
            path[depth + 1] = state
            token = tree[at + TOKEN]
            while token >= 0:
                found[count] = token
                count += 1
                token = same[token]
            i += 1
        elif state == DEAD:
            i = np.int64(tree[at + END])
        else:
            status[POSITION] = np.int32(i)
            status[FOUND] = count
            return state
    status[POSITION] = np.int32(i)
    status[FOUND] = count
    return np.int32(DONE)


@kernel(i4(i4_1, i4, i2_1, i4, i4, u1_1))
def keep_fitting(found, count, lengths, low, high, dropped):
    """Keeps those of `found[:count]` that have low to high characters and are not dropped; answers how many."""
    kept = np.int32(0)
    for k in range(count):
        token = found[k]
        if low <= lengths[token] <= high and dropped[token] == 0:
            found[kept] = token
            kept += 1
    return kept


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
