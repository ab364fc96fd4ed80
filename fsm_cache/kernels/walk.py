"""The trie walk: which tokens an automaton state allows."""

from __future__ import annotations

import numpy as np
from numba import types

from ...grammar.kernel_cache import kernel
from ...grammar.kernels.far import step
from ...grammar.kernels.keys import name_child
from ...grammar.kernels.memory import BYTES, LONGS, P, at_address, i4
from ...grammar.machine_layout import (
    ARRAY_AFTER,
    CLASS_BASE,
    COLON,
    DEAD,
    F_ACCEPT,
    F_EXPANDED,
    F_KEY_END,
    FLAGS,
    KEY,
    KEY_HI,
    KEY_LO,
    KIND,
    LEAF,
    NAME,
    NAME_ESCAPE,
    NAME_OUTCOME,
    NIL,
    NODE,
    OBJECT_AFTER,
    OBJECT_COMMA,
    OBJECT_OPEN,
    OFF,
    OUTCOME,
    ROW,
    SWITCH,
    V_DISTINCT_RAW,
    V_DISTINCT_STRING,
    V_SCALAR,
    VALUE,
    A,
    B,
    C,
)
from ..trie import BYTE, DEPTH, END, FIRST, LAST, SUBTREE, TOKEN, TRIE_NODE
from .kit import ANSWERED, ANSWERED_AT, COUNT, DROPPED, POSITION, TRIE_NODES, TRIE_ORDER, TRIE_SAME, TRIE_SUBTREES
from .leaf import row_takes_whole

i8 = types.int64


@kernel(types.boolean(P, P, i4, P, i8))
def taken_whole(nodes, rows, state, subtrees, i):
    """Whether everything below trie node `i` may follow `state`: a leaf that takes all these bytes in any order, or a key whose text
    does not matter."""
    kind = nodes[state * NODE + KIND]
    if kind != LEAF and kind != SWITCH and (kind != KEY or nodes[state * NODE + B] != OFF):
        return False
    return row_takes_whole(rows, nodes[state * NODE + A], subtrees, i)


@kernel(types.boolean(P, P, P, P, i4, i4))
def leads_nowhere(nodes, rows, table, values, state, byte):
    """Whether it is plain, without a step, that nothing in `state` begins with `byte`."""
    kind = nodes[state * NODE + KIND]
    if kind == NAME:
        if nodes[state * NODE + C] >= 0 or byte == 34 or byte == 92:
            return False
        return name_child(table, nodes[state * NODE + A], byte) < 0
    row = nodes[state * NODE + A] if kind == LEAF else nodes[state * NODE + B]
    if kind == LEAF:
        return rows[row * ROW + FLAGS] & (F_EXPANDED | F_ACCEPT) == F_EXPANDED and rows[row * ROW + byte] < 0
    if kind not in (OBJECT_OPEN, OBJECT_COMMA, OBJECT_AFTER, ARRAY_AFTER, COLON, VALUE):
        return False
    if byte == 34 or byte == 44 or byte == 58 or byte == 91 or byte == 93 or byte == 123 or byte == 125:
        return False
    if rows[row * ROW + FLAGS] & F_EXPANDED == 0 or rows[row * ROW + byte] >= 0:
        return False
    if kind != VALUE:
        return True
    at = values[nodes[state * NODE + A]]
    if at < 0 or table[at + V_DISTINCT_STRING] >= 0 or table[at + V_DISTINCT_RAW] >= 0:
        return False
    row = table[at + V_SCALAR]
    return row < 0 or (rows[row * ROW + FLAGS] & F_EXPANDED != 0 and rows[row * ROW + byte] < 0)


DECLARED = 2  # see `walk`


@kernel(types.boolean(P, i4, i4))
def is_undeclared(rows, row, byte):
    """Whether a key in `row` can be no declared one after `byte`."""
    if rows[row * ROW + FLAGS] & F_EXPANDED == 0:
        return False
    target = rows[row * ROW + byte]
    if target < 0:
        return True
    if rows[target * ROW + FLAGS] & F_KEY_END:
        return rows[target * ROW + OUTCOME] >= CLASS_BASE
    return rows[target * ROW + KEY_LO] >= rows[target * ROW + KEY_HI]


@kernel(types.boolean(P, P, i4, i4))
def ends_name(nodes, table, state, byte):
    """Whether `byte` is read as a part of a declared name, or ends one, and not of other keys alone."""
    name = nodes[state * NODE + A]
    if byte == 34:
        return table[name + NAME_OUTCOME] >= 0
    if byte == 92:
        return table[name + NAME_ESCAPE] != 0
    return name_child(table, name, byte) >= 0


@kernel(i4(P, P, P, P, P, P, P, P, LONGS, P, P, P, P, BYTES, i4, i4, i4, i4), apart=True)
def walk(
    nodes, buckets, rows, table, values, frames, transitions, header, trie, path, out, found, status, dropped, state, start, stop, names
):  # fmt: skip
    """Appends to `found[:status[COUNT]]` the tokens that lead from `state` to a living state, among those below the trie nodes from
    `start` to `stop` (siblings, and what is below them). Answers 0, or a code to serve.

    After a code the walk goes on with state NIL at `status[POSITION]`. `path` holds the state before each depth and survives an
    interruption. At the trie node `status[ANSWERED_AT]` the question `status[ANSWERED]` has the answer for a text that is not known.

    Args:
        names: of the tokens read in a key that is declared or any other, take only those that end it as a declared name (or spell it
            with an escape), and set `dropped` for all of these, also where they are not allowed; status[DROPPED] is their number.
            DECLARED: take only those after which a key still can be a declared one, or that end it as such.
    """
    tree, same = at_address(trie[TRIE_NODES]), at_address(trie[TRIE_SAME])
    subtrees, order = at_address(trie[TRIE_SUBTREES]), at_address(trie[TRIE_ORDER])
    count = status[COUNT]
    i = np.int64(start)
    if state != NIL and start < stop:
        path[tree[i * TRIE_NODE + DEPTH]] = state
        status[ANSWERED_AT] = -1
    code = np.int32(0)
    while i < stop:
        at = i * TRIE_NODE
        depth = tree[at + DEPTH]
        byte = tree[at + BYTE]
        before = path[depth]
        first, last = subtrees[i * SUBTREE + FIRST], subtrees[i * SUBTREE + LAST]
        in_key = names == DECLARED and nodes[before * NODE + KIND] == KEY
        if in_key:
            passed = is_undeclared(rows, nodes[before * NODE + A], byte)
        elif names and nodes[before * NODE + KIND] == NAME:
            passed = not ends_name(nodes, table, before, byte)
            if not passed and (byte == 34 or byte == 92):
                for k in range(first, last):
                    dropped[order[k]] = 1
                status[DROPPED] += last - first
        else:
            passed = leads_nowhere(nodes, rows, table, values, before, byte)
        if passed:
            i = np.int64(tree[at + END])
            continue
        if not in_key and taken_whole(nodes, rows, before, subtrees, i):
            for k in range(first, last):
                found[count] = order[k]
                count += 1
            i = np.int64(tree[at + END])
            continue
        known = status[ANSWERED] if i == status[ANSWERED_AT] else np.int32(OFF)
        after = step(nodes, buckets, rows, table, values, frames, transitions, header, before, byte, np.int32(1), known, out)
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
            code = after
            break
    status[POSITION] = np.int32(i)
    status[COUNT] = count
    return code
