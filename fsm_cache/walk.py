"""The trie walk: which tokens an automaton state allows, in numba.

A mask row is int32 [ceil(V / 32)]; bit (t & 31) of word (t >> 5) is set where token t is allowed.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ..grammar.kernel_cache import kernel
from ..grammar.kernels import MEMORY, P, addresses, pointer, step
from ..grammar.machine_layout import DEAD, F_LOOPS, F_TEXT_LOOP, FLAGS, KEY, KIND, LEAF, LOOP, NODE, OFF, ROW, A, B
from .trie import ASCII, BROKEN, BYTE, DEPTH, END, FIRST, LAST, TEXT, TOKEN, WIDE, utf8_next

i4 = types.int32
i8 = types.int64
i4_1 = types.Array(types.int32, 1, "C")
i4_2 = types.Array(types.int32, 2, "C")
u1_1_ro = types.Array(types.uint8, 1, "C", readonly=True)


# answers of plain_characters
ENDS = -1
NEVER = -2


@kernel(types.void(i4_1, i4_1))
def set_bits(mask, tokens):
    """Sets the bits of all `tokens`."""
    for t in tokens:
        mask[t >> 5] |= np.int32(1) << (t & 31)


@kernel(types.boolean(P, P, i4, i4_2, i8))
def taken_whole(nodes, rows, state, subtrees, i):
    """Whether everything below trie node `i` leads from `state` back to itself: a leaf that loops over all these bytes, or a
    key whose text does not matter."""
    kind = nodes[state * NODE + KIND]
    if kind != LEAF and (kind != KEY or nodes[state * NODE + B] != OFF):
        return False
    row = nodes[state * NODE + A] * ROW
    if rows[row + FLAGS] & F_LOOPS == 0:
        return False
    wide = subtrees[i, WIDE]
    if wide == BROKEN or (wide == TEXT and rows[row + FLAGS] & F_TEXT_LOOP == 0):
        return False
    outside = np.int32(0)
    for w in range(4):
        outside |= subtrees[i, ASCII + w] & ~rows[row + LOOP + w]
    return outside == 0


@kernel(i8(MEMORY, i4_2, i4_1, i4_2, i4_1, i4_1, i4_1, i4_1, i8, i4, i4_1))
def walk(memory, trie, same, subtrees, order, path, out, mask, position, answered, status):
    """Sets the bits of the tokens that lead from state `path[0]` to a living state, from trie node `position` on.

    Answers the number of trie nodes when done, else the node to resume at, with the code to serve in `status[0]`.
    `path` holds the state before each depth and survives an interruption. `answered` is a question that at `position` has the
    answer for unknown text (or OFF).
    """
    nodes, buckets, rows, table, values, frames, transitions, header = addresses(memory)
    members = pointer(out)
    i = position
    n = trie.shape[0]
    while i < n:
        depth = trie[i, DEPTH]
        if taken_whole(nodes, rows, path[depth], subtrees, i):
            for k in range(subtrees[i, FIRST], subtrees[i, LAST]):
                mask[order[k] >> 5] |= np.int32(1) << (order[k] & 31)
            i = np.int64(trie[i, END])
            continue
        known = answered if i == position else np.int32(OFF)
        before, byte = path[depth], trie[i, BYTE]
        state = step(nodes, buckets, rows, table, values, frames, transitions, header, before, byte, np.int32(1), known, members)
        if state >= 0:
            path[depth + 1] = state
            token = trie[i, TOKEN]
            while token >= 0:
                mask[token >> 5] |= np.int32(1) << (token & 31)
                token = same[token]
            i += 1
        elif state == DEAD:
            i = np.int64(trie[i, END])
        else:
            status[0] = state
            return i
    return i


@kernel(i4(i4_1, i4_1))
def unpack(mask, tokens):
    """Writes the ids of the set bits to `tokens` and answers their number, or -1 if they do not fit."""
    total = np.int64(0)
    for w in range(mask.shape[0]):
        x = np.uint32(mask[w])
        x = x - ((x >> np.uint32(1)) & np.uint32(0x55555555))
        x = (x & np.uint32(0x33333333)) + ((x >> np.uint32(2)) & np.uint32(0x33333333))
        x = (x + (x >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
        total += np.int64((x * np.uint32(0x01010101)) >> np.uint32(24))
    if total > tokens.shape[0]:
        return np.int32(-1)
    count = np.int32(0)
    for w in range(mask.shape[0]):
        if mask[w] != 0:
            for bit in range(32):
                if (mask[w] >> bit) & 1:
                    tokens[count] = np.int32(w * 32 + bit)
                    count += 1
    return count


@kernel(i4(u1_1_ro))
def plain_characters(data):
    """Characters begun in `data` if it can stand inside any JSON string as it is (the last one may be unfinished).

    Else ENDS when a quotation mark or a backslash comes first, NEVER when something comes first that no JSON string
    may contain: a control character, or bytes that are not UTF-8 (RFC 3629).
    """
    count = np.int32(0)
    state = np.int32(0)
    for k in range(data.shape[0]):
        byte = np.int32(data[k])
        if state == 0:
            if byte == 0x22 or byte == 0x5C:
                return np.int32(ENDS)
            if byte < 0x20:
                return np.int32(NEVER)
            count += 1
        state = utf8_next(state, byte)
        if state < 0:
            return np.int32(NEVER)
    return count
