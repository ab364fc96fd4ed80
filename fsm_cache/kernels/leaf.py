"""What tokens do inside one leaf."""

from __future__ import annotations

import numpy as np
from numba import types

from ...grammar.kernel_cache import kernel
from ...grammar.kernels.memory import MEMORY, P, addresses, ask, at_address, i4, i4_1
from ...grammar.machine_layout import (
    AHEAD,
    F_ACCEPT,
    F_BOUNDARY,
    F_EVEN,
    F_EXPANDED,
    F_KEY_END,
    F_LOOPS,
    F_OTHERS,
    F_RUN,
    F_RUN_ENDS,
    F_TEXT_LOOP,
    FINAL_ROW,
    FLAGS,
    KEY_CLASSES,
    KEY_TAILS,
    LEAST,
    LOOP,
    NEED_AHEAD,
    NEED_ROW,
    OTHER,
    OUTCOME,
    ROW,
    RUN,
)
from ..trie import ASCII, BROKEN, BYTE, DEPTH, END, FIRST, HEIGHT, LAST, SUBTREE, TEXT, TOKEN, TRIE_NODE, WIDE
from .kit import EXIT_SIZE, TRIE_LENGTH

SHORTS_1 = types.Array(types.int16, 1, "C")
TRIE = types.Array(types.int64, 1, "C")


@kernel(types.boolean(P, i4, P, types.int64, types.int64))
def run_takes_whole(rows, row, subtrees, i, past):
    """Whether everything below trie node `i` leads from `row` back to itself, or is in a run that began `past` bytes before at `row`."""
    flags = rows[row * ROW + FLAGS]
    if flags & F_LOOPS == 0:
        return False
    at = i * SUBTREE
    if flags & F_RUN and subtrees[at + HEIGHT] > rows[row * ROW + RUN] - past:
        return False
    wide = subtrees[at + WIDE]
    if wide == BROKEN or (wide == TEXT and flags & F_TEXT_LOOP == 0):
        return False
    outside = np.int32(0)
    for w in range(4):
        outside |= subtrees[at + ASCII + w] & ~rows[row * ROW + LOOP + w]
    return outside == 0


@kernel(types.boolean(P, i4, P, types.int64))
def row_takes_whole(rows, row, subtrees, i):
    """Whether everything below trie node `i` leads from `row` back to itself, or is part of a run that begins there."""
    return run_takes_whole(rows, row, subtrees, i, 0)


LAZY = -1  # in the path of `scan_leaf`: a row within a run, not made


@kernel(types.boolean(P, i4, i4, types.int64))
def has_byte(rows, row, column, byte):
    """Whether an ASCII byte is in the set in four words from a column of a row on."""
    return byte < 128 and (rows[row * ROW + column + (byte >> 5)] >> (byte & 31)) & 1 != 0


@kernel(types.boolean(types.int64))
def continues(byte):
    """Whether a byte of UTF-8 goes on with a character."""
    return 0x80 <= byte < 0xC0


@kernel(types.boolean(i4_1, types.int64, types.int64))
def ends_character(path, depth, byte):
    """Whether a byte at a depth of well-formed text is the last one of its character."""
    if byte < 0x80:
        return True
    half = path.shape[0] // 2
    left = np.int64(0)
    while continues(byte):
        left += 1
        byte = path[half + depth - left]
    return left == (1 if byte < 0xE0 else 2 if byte < 0xF0 else 3)


@kernel(i4(P, P, i4_1, i4, i4))
def make_path(rows, header, path, depth, byte):
    """Replaces the LAZY row of a path at `depth`, where `byte` comes next; the bytes before stand in its second half. Answers 0 or a code
    to serve."""
    half = path.shape[0] // 2
    d = depth
    while path[d] == LAZY:
        d -= 1
    row = path[d]
    if d < depth and rows[row * ROW + FLAGS] & F_EVEN:
        end = depth  # of the whole characters
        while continues(byte):
            end -= 1
            byte = path[half + end]
        count = 0
        for k in range(d, end):
            count += not continues(path[half + k])
        if count > 0:
            line = rows[row * ROW + AHEAD]
            if line == 0 or rows[line * ROW + count] < 0:
                return ask(header, NEED_AHEAD, row, np.int32(count))
            d = end
            path[d] = rows[line * ROW + count]
    while d < depth:
        if rows[path[d] * ROW + FLAGS] & F_EXPANDED == 0:
            return ask(header, NEED_ROW, path[d], 0)
        path[d + 1] = rows[path[d] * ROW + path[half + d]]
        d += 1
    if rows[path[d] * ROW + FLAGS] & F_EXPANDED == 0:
        return ask(header, NEED_ROW, path[d], 0)
    return np.int32(0)


SCAN_NODE, SCAN_FOUND, SCAN_EXITS, SCAN_ENDERS, SCAN_BOUNDED, SCAN_SIZE = range(6)  # of the status of a scan


@kernel(i4(MEMORY, TRIE, i4, i4_1, i4_1, i4_1, i4_1, i4_1))
def scan_leaf(memory, trie, outcome, path, found, exits, enders, status):
    """Appends to `found` the tokens that the leaf in row `path[0]` may begin with or be, and to `exits` the trie nodes, if they have
    others below, after which it may end. Answers 0 or a code to serve, and goes on where `status` says.

    Args:
        outcome: of a key, what it must end as (else -1). Tokens that end it so are in `enders`, those after which it can only be a
            declared one are left out.
    """
    _, _, rows, _, _, _, _, header = addresses(memory)
    tree, same, subtrees, order = at_address(trie[0]), at_address(trie[1]), at_address(trie[2]), at_address(trie[3])
    half = path.shape[0] // 2
    i = np.int64(status[SCAN_NODE])
    count, ends, ended = status[SCAN_FOUND], status[SCAN_EXITS], status[SCAN_ENDERS]
    code = np.int32(0)
    while i < trie[TRIE_LENGTH]:
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
        past = depth - anchor
        inner = i + 1 < tree[at + END]
        if run_takes_whole(rows, before, subtrees, i, past):
            for k in range(subtrees[i * SUBTREE + FIRST], subtrees[i * SUBTREE + LAST]):
                found[count] = order[k]
                count += 1
            i = np.int64(tree[at + END])
            continue
        flags = rows[before * ROW + FLAGS]
        if flags & F_OTHERS:
            within = past < rows[before * ROW + RUN]
            text = flags & F_TEXT_LOOP != 0
            if within and (has_byte(rows, before, LOOP, byte) or (byte >= 0x80 and text and subtrees[i * SUBTREE + WIDE] != BROKEN)):
                token = tree[at + TOKEN]
                while token >= 0:
                    found[count] = token
                    count += 1
                    token = same[token]
                path[half + depth] = byte
                if flags & F_RUN_ENDS and inner and ends_character(path, depth, byte):
                    exits[ends] = np.int32(i)
                    ends += 1
                path[depth + 1] = LAZY
                i += 1
                continue
            if within and past > 0 and not has_byte(rows, before, OTHER, byte) and not (byte >= 0x80 and text):
                i = np.int64(tree[at + END])
                continue
        if past > 0:
            code = make_path(rows, header, path, np.int32(depth), byte)
            if code != 0:
                break
            before = path[depth]
        target = rows[before * ROW + byte]
        closes = target >= 0 and rows[target * ROW + FLAGS] & F_KEY_END != 0
        if target < 0 or (outcome >= 0 and (rows[target * ROW + OUTCOME] != outcome if closes else rows[target * ROW + KEY_CLASSES] == 0)):
            i = np.int64(tree[at + END])
            continue
        if outcome >= 0 and not closes and rows[target * ROW + KEY_TAILS] > 0:
            status[SCAN_BOUNDED] = 1
        if target != FINAL_ROW and inner and rows[target * ROW + FLAGS] & F_EXPANDED == 0:
            code = ask(header, NEED_ROW, target, 0)
            break
        token = tree[at + TOKEN]
        while token >= 0:
            if closes:
                enders[ended] = token
                ended += 1
            else:
                found[count] = token
                count += 1
            token = same[token]
        if inner and (target == FINAL_ROW or closes or rows[target * ROW + FLAGS] & F_ACCEPT):
            exits[ends] = np.int32(i)
            ends += 1
        path[depth + 1] = target
        i = i + 1 if target != FINAL_ROW and not closes else np.int64(tree[at + END])
    status[SCAN_NODE], status[SCAN_FOUND], status[SCAN_EXITS], status[SCAN_ENDERS] = np.int32(i), count, ends, ended
    return code


@kernel(i4(MEMORY, TRIE, SHORTS_1, i4_1, i4_1, i4_1, i4_1, i4_1, i4_1))
def scan_counted(memory, trie, lengths, path, found, needs, exits, exit_needs, status):
    """As `scan_leaf`, in a counted string whose row `path[0]` is between two characters. `needs` and `exit_needs` say how many
    characters must fit for each to be allowed: those of the token, and those that must come after it.

    Args:
        lengths: characters of the tokens that stand in a string.
    """
    _, _, rows, _, _, _, _, header = addresses(memory)
    tree, same, subtrees, order = at_address(trie[0]), at_address(trie[1]), at_address(trie[2]), at_address(trie[3])
    half = path.shape[0] // 2
    i = np.int64(status[SCAN_NODE])
    count, ends = status[SCAN_FOUND], status[SCAN_EXITS]
    code = np.int32(0)
    while i < trie[TRIE_LENGTH]:
        at = i * TRIE_NODE
        depth = tree[at + DEPTH]
        before = path[depth]
        if rows[before * ROW + FLAGS] & F_EXPANDED == 0:
            code = ask(header, NEED_ROW, before, 0)
            break
        if row_takes_whole(rows, before, subtrees, i):
            for k in range(subtrees[i * SUBTREE + FIRST], subtrees[i * SUBTREE + LAST]):
                found[count] = order[k]
                needs[count] = lengths[order[k]] + rows[before * ROW + LEAST]
                count += 1
            i = np.int64(tree[at + END])
            continue
        target = rows[before * ROW + tree[at + BYTE]]
        read = path[half + depth]
        if target > 0 and rows[target * ROW + FLAGS] & F_BOUNDARY:
            read += 1
        if target >= 0:
            need = read if target == FINAL_ROW else read + rows[target * ROW + LEAST]
            token = tree[at + TOKEN]
            while token >= 0:
                found[count] = token
                needs[count] = need
                count += 1
                token = same[token]
        if target == FINAL_ROW and i + 1 < tree[at + END]:
            exits[ends] = np.int32(i)
            exit_needs[ends] = read
            ends += 1
        if target > 0:
            path[depth + 1] = target
            path[half + depth + 1] = read
            i += 1
        else:
            i = np.int64(tree[at + END])
    status[SCAN_NODE], status[SCAN_FOUND], status[SCAN_EXITS] = np.int32(i), count, ends
    return code


@kernel(types.void(TRIE, i4_1, i4_1, i4, i4_1))
def count_new(trie, row, exits, num_exits, new):
    """Counts tokens that are not in a row: of tokens `a` to `b` of the order that lie below one of `exits[:num_exits]`, which are sorted,
    there are `new[b] - new[a]`."""
    tree, subtrees, order = at_address(trie[0]), at_address(trie[2]), at_address(trie[3])
    past, total = np.int64(0), np.int32(0)
    for k in range(num_exits):
        i = np.int64(exits[k])
        if i >= past:  # not below an earlier one
            first, last = subtrees[i * SUBTREE + FIRST], subtrees[i * SUBTREE + LAST]
            new[first] = total
            for j in range(first, last):
                token = order[j]
                total += np.int32(1) - ((row[token >> 5] >> (token & 31)) & np.int32(1))
                new[j + 1] = total
            past = np.int64(tree[i * TRIE_NODE + END])


@kernel(i4(TRIE, i4_1, i4, i4_1))
def keep_useful(trie, exits, num_exits, new):
    """Keeps those of `exits[:num_exits]` below which there are new tokens, see `count_new`; answers how many."""
    tree, same, subtrees = at_address(trie[0]), at_address(trie[1]), at_address(trie[2])
    kept = np.int32(0)
    for k in range(num_exits):
        i = np.int64(exits[k])
        first = subtrees[i * SUBTREE + FIRST]
        token = tree[i * TRIE_NODE + TOKEN]
        while token >= 0:
            first += 1
            token = same[token]
        if new[subtrees[i * SUBTREE + LAST]] != new[first]:
            exits[kept] = exits[k]
            kept += 1
    return kept


@kernel(i4(TRIE, i4_1, i4, i4_1, i4_1))
def useful_ways(trie, exits, num_exits, new, ways):
    """Lists in `ways` the beginnings and ends of those subtrees right below `exits[:num_exits]` in which there are new tokens, see
    `count_new`; answers how many."""
    tree, subtrees = at_address(trie[0]), at_address(trie[2])
    count = np.int32(0)
    for k in range(num_exits):
        child = np.int64(exits[k]) + 1
        end = tree[np.int64(exits[k]) * TRIE_NODE + END]
        while child < end:
            if new[subtrees[child * SUBTREE + LAST]] != new[subtrees[child * SUBTREE + FIRST]]:
                ways[2 * count] = np.int32(child)
                ways[2 * count + 1] = tree[child * TRIE_NODE + END]
                count += 1
            child = np.int64(tree[child * TRIE_NODE + END])
    return count


@kernel(types.void(TRIE, i4_1, i4, i4_1, i4_1))
def group_by_byte(trie, ways, count, ends, exits):
    """Writes the exits of a table, see `LeafTable`, from `count` pairs in `ways`. `ends` is zero."""
    tree = at_address(trie[0])
    for k in range(count):
        ends[tree[np.int64(ways[2 * k]) * TRIE_NODE + BYTE]] += 1
    total = np.int32(0)
    for byte in range(256):  # where the exits with each byte begin
        number = ends[byte]
        ends[byte] = total
        total += number
    for k in range(count):
        byte = tree[np.int64(ways[2 * k]) * TRIE_NODE + BYTE]
        at = EXIT_SIZE * ends[byte]
        exits[at], exits[at + 1], exits[at + 2] = ways[2 * k], ways[2 * k + 1], np.int32(0)
        ends[byte] += 1
    first = np.int32(0)
    for byte in range(256):
        if ends[byte] > first:
            exits[EXIT_SIZE * first + 2] = ends[byte]
            first = ends[byte]


@kernel(types.void(MEMORY, TRIE, i4, i4_1, SHORTS_1, SHORTS_1))
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
    while i < trie[TRIE_LENGTH]:
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
