"""How the mask of a node is made."""

from __future__ import annotations

import numpy as np

from ...grammar.kernel_cache import kernel
from ...grammar.kernels.items import is_item_of
from ...grammar.kernels.keys import end_key
from ...grammar.kernels.memory import P, ask, i4
from ...grammar.kernels.places import begin_alternative
from ...grammar.kernels.unions import NODE_MARGIN
from ...grammar.machine_layout import (
    CLASS_BASE,
    COUNTED,
    F_ACCEPT,
    F_BOUNDARY,
    F_ESCAPE,
    F_EXPANDED,
    F_LOOPS,
    F_PLAIN,
    F_TIDY,
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
    NAME,
    NEED_ROW,
    NEED_VALUE,
    NIL,
    NODE,
    NODE_RESERVE,
    OFF,
    P_ALTERNATIVES,
    P_LIST,
    PARENT,
    POSITION,
    ROW,
    SET,
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

# How a mask is made, answers of `classify` in info[WAY]
WALK = 0  # by walking all tokens
STRING = 1  # inside any string: tables, and what may follow the string
REST = 2  # inside any string whose end depends on its text: tables, room, and a walk over tokens that close it
NAMED = 3  # inside a key that is declared or any other: as STRING, but for the tokens that close a declared name
IN_LEAF = 4  # inside another leaf: its table, and what may follow it
AT_VALUE = 5  # before a value: the table of how scalars begin, and walks over tokens that begin otherwise
MEMBERS = 6  # a union: the members, one by one
AT_POSITION = 8  # at a place in a context-free grammar: the tables of leaves that begin there, walks for others, and what may follow each
IN_KEY = 7  # inside a key of some classes: for each its table, and what may follow it; and a walk over declared keys
INFO_SIZE = 5
WAY, TIDY, ROOM, LACK, EXIT = range(5)  # of STRING, REST and NAMED; ROOM: characters that still fit, -1 any; LACK: that must still come
_, LEAF_ROW, ENDS, BEGINS, _ = range(5)  # of IN_LEAF and AT_VALUE; ENDS: the leaf may end here; LEAF_ROW: -1 for none
SPARE = BEGINS  # of IN_LEAF: characters that still fit, -1 any
_, _, CLASSES, HAS_NAMES, _ = range(5)  # of IN_KEY, with LEAF_ROW; HAS_NAMES: it can still become a declared key
OBJECT, ARRAY, QUOTE, SPACE = 1, 2, 4, 8  # BEGINS: what else may begin
DONE = 0


@kernel(i4(P, P, P, P, P, i4, P), apart=True)
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
    info[ENDS] = 0
    info[EXIT] = nodes[node * NODE + PARENT]
    info[BEGINS] = begins
    return np.int32(DONE)


@kernel(i4(P, P, P, P, P, P, i4, P))
def classify_position(nodes, buckets, rows, table, values, header, node, info):
    """`classify` for a place in a context-free grammar: tables are worth their making where some leaf takes many tokens."""
    value = nodes[node * NODE + A]
    if values[value] < 0:
        return ask(header, NEED_VALUE, value, 0)
    at = values[value]
    alternatives, first = table[at + P_ALTERNATIVES], at + P_LIST
    wide = False
    at = first
    for _ in range(alternatives):
        if rows[table[at] * ROW + FLAGS] & F_EXPANDED == 0:
            return ask(header, NEED_ROW, table[at], 0)
        wide |= rows[table[at] * ROW + FLAGS] & F_LOOPS != 0
        at += 2 + table[at + 1]
    if not wide:
        return np.int32(DONE)
    at = first
    for _ in range(alternatives):
        if header[H_NODES] + NODE_MARGIN > header[H_NODE_CAPACITY]:
            return np.int32(GROW)
        leaf = begin_alternative(nodes, buckets, table, header, at, nodes[node * NODE + PARENT])
        if leaf < 0:
            return leaf
        at += 2 + table[at + 1]
    info[WAY] = AT_POSITION
    return np.int32(DONE)


@kernel(i4(P, P, P, P, P, P, P, i4, P), apart=True)
def classify(nodes, buckets, rows, table, values, frames, header, node, info):
    """Says how the mask of a node is made, in `info`; answers DONE or a code to serve."""
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
    if kind == POSITION:
        return classify_position(nodes, buckets, rows, table, values, header, node, info)
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
            info[ENDS] = rows[at + FLAGS] & F_ACCEPT
            info[EXIT] = parent
            info[SPARE] = -1
        elif kind == COUNTED:
            if rows[at + FLAGS] & F_BOUNDARY:
                info[WAY] = IN_LEAF
                info[LEAF_ROW] = row
                info[ENDS] = 0
                info[EXIT] = parent
                info[SPARE] = table[nodes[node * NODE + C] + 1] - nodes[node * NODE + B]
        elif kind == KEY and nodes[node * NODE + C] == NIL and not is_item_of(nodes, parent):
            classes = rows[at + KEY_CLASSES]
            if nodes[node * NODE + B] != OFF and rows[at + FLAGS] & (F_BOUNDARY | F_ESCAPE) != F_BOUNDARY:
                return np.int32(DONE)  # what closes the key here is not what closes any string
            if classes != 0 and classes & ~table[frames[nodes[parent * NODE + A]] + FR_CLASSES] == 0:
                info[WAY] = IN_KEY
                info[LEAF_ROW] = row
                info[CLASSES] = classes
                info[HAS_NAMES] = rows[at + KEY_LO] < rows[at + KEY_HI]
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
