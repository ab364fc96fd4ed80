"""One mask: shared rows, and ids of the tokens that they lack.

A mask is made by tasks on a stack, so that what needs Python can be interrupted and taken up again.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ...grammar.kernel_cache import kernel
from ...grammar.kernels.far import step
from ...grammar.kernels.keys import end_key
from ...grammar.kernels.memory import LONGS, MEMORY, P, addresses, ask, at_address, bytes_at, i4, longs_at, pointer
from ...grammar.kernels.places import begin_alternative
from ...grammar.kernels.step import MAY_END as ENDS_FOUND
from ...grammar.kernels.step import look_ahead
from ...grammar.machine_layout import CLASS_BASE, DEAD, F_TIDY, FLAGS, NIL, NODE, OFF, P_ALTERNATIVES, P_LIST, PARENT, ROW, A, B
from ..trie import BYTE, TRIE_NODE
from .book import closing_slot, leaf_slot
from .classify import (
    ARRAY,
    AT_POSITION,
    AT_VALUE,
    BEGINS,
    CLASSES,
    ENDS,
    EXIT,
    HAS_NAMES,
    IN_KEY,
    IN_LEAF,
    LACK,
    LEAF_ROW,
    MEMBERS,
    NAMED,
    OBJECT,
    QUOTE,
    REST,
    ROOM,
    SPACE,
    SPARE,
    STRING,
    TIDY,
    WALK,
    WAY,
    classify,
    takes_many,
)
from .kit import (
    BOOK_ARENA,
    BOOK_CLOSINGS,
    BOOK_LEAVES,
    CLASS_STRIDE,
    CLOSABLE,
    CLOSERS,
    CLOSING,
    COUNT,
    DEPTH,
    DOUBTED,
    DROPPED,
    DROPPED_MARKS,
    EOS,
    EXIT_SIZE,
    FOUND,
    INFO,
    KEYS,
    LEAF_ALL,
    LEAF_BASE,
    LEAF_BOUNDED,
    LEAF_CLOSING,
    LEAF_ENDERS,
    LEAF_EXIT_NEEDS,
    LEAF_EXITS,
    LEAF_IDS,
    LEAF_MOST,
    LEAF_NEEDS,
    LEAF_NUM_ALL,
    LEAF_NUM_CLOSING,
    LEAF_NUM_ENDERS,
    LEAF_NUM_EXITS,
    LEAF_NUM_IDS,
    LEAF_TIDY,
    LONGEST,
    MAIN,
    MARK,
    MAY_END,
    NUM_BASES,
    NUM_CLOSERS,
    NUM_EOS,
    NUM_SEEN,
    OUT,
    PATH,
    PLAIN,
    POSITION,
    SEEN,
    STATE,
    STATUS,
    STRINGS,
    TASKS,
    TRIE_FIRST,
    TRIE_LENGTH,
    TRIE_NODES,
    TRIE_ORDER,
    TRIE_TOKENS,
    VOCABULARY,
)
from .tasks import (
    DECLARED_KEYS,
    ENDING,
    EXIT_WALKS,
    FINISH,
    FITTING,
    INSIDE,
    KEEP,
    LEAF,
    MAX_TASKS,
    NAMES,
    NAMES_AT,
    NEED_LEAF,
    NEED_PLAIN,
    READ,
    READ_AT,
    REMEMBER,
    SPILL,
    TASK,
    VISIT,
    WHOLE,
    add_base,
    add_common,
    add_fitting,
    add_ids,
    find_closing,
    keep_closing,
    keep_short,
    need,
    num_fitting,
    plain_row,
    push_task,
    push_walk,
    remember,
)
from .walk import DECLARED, leads_nowhere, walk


@kernel(i4(LONGS, LONGS, P, P, P, P), apart=True)
def add_string(kit, book, tasks, status, header, info):
    """The tokens inside any string. Answers 1 once they are added, 0 where other tasks come first, or a code."""
    tidy, room, lack, after = info[TIDY], info[ROOM], info[LACK], info[EXIT]
    base = plain_row(kit, status, tidy, room)
    if base == 0:
        return np.int32(NEED_PLAIN)
    slot = find_closing(kit, book, tasks, status, header, tidy, after)
    if slot < 0:
        return np.int32(0) if slot == -1 else slot
    closings = at_address(book[BOOK_CLOSINGS])
    ids, number = at_address(book[BOOK_ARENA] + 4 * np.int64(closings[slot + 1])), np.int64(closings[slot + 2])
    strings = longs_at(kit[STRINGS + tidy])
    if room < 0 and lack == 0:
        add_base(kit, status, strings[CLOSABLE])
        add_ids(kit, status, ids, number)
    else:
        high = room if room >= 0 else np.int32(strings[LONGEST])
        add_base(kit, status, base)
        add_fitting(kit, status, tidy, at_address(strings[CLOSERS]), strings[NUM_CLOSERS], lack, high)
        add_fitting(kit, status, tidy, ids, number, lack, high)
    return np.int32(1)


@kernel(types.void(LONGS, LONGS, P, i4, i4), apart=True)
def add_names(kit, book, status, tidy, after):
    """What may follow inside a key that is declared or any other, once the tokens that end a declared one are known."""
    strings = longs_at(kit[STRINGS + tidy])
    slot = closing_slot(book, KEYS * after + tidy)
    closings = at_address(book[BOOK_CLOSINGS])
    ids, number = at_address(book[BOOK_ARENA] + 4 * np.int64(closings[slot + 1])), np.int64(closings[slot + 2])
    if status[DROPPED] == 0:
        add_base(kit, status, strings[CLOSABLE])
        add_ids(kit, status, ids, number)
        return
    longest = np.int32(strings[LONGEST])
    add_base(kit, status, longs_at(strings[PLAIN])[longest])
    add_fitting(kit, status, tidy, at_address(strings[CLOSERS]), strings[NUM_CLOSERS], 0, longest)
    add_fitting(kit, status, tidy, ids, number, 0, longest)
    trie, dropped = longs_at(kit[CLOSING + tidy]), bytes_at(kit[DROPPED_MARKS])
    order = at_address(trie[TRIE_ORDER])
    for k in range(trie[TRIE_TOKENS]):
        dropped[order[k]] = 0


@kernel(i4(LONGS, LONGS, P, P, P, i4, i4, i4, i4), apart=True)
def add_leaf(kit, book, tasks, status, header, key, after, part, node):
    """Does a LEAF task, the top one, but for the walks that it leaves to others. Answers 0, or a code."""
    at = leaf_slot(book, key)
    leaves = longs_at(book[BOOK_LEAVES])
    if leaves[at] < 0:
        return need(status, np.int32(NEED_LEAF), key, 0)
    table = longs_at(leaves[at + 1])
    if part >= FITTING and part - FITTING >= table[LEAF_MOST]:
        part = np.int32(WHOLE)
    slot = np.int32(0)
    closes = part != INSIDE and table[LEAF_NUM_CLOSING] >= 0
    if closes:
        slot = find_closing(kit, book, tasks, status, header, np.int32(table[LEAF_TIDY]), after)
        if slot < 0:
            return np.int32(0) if slot == -1 else slot
    status[DEPTH] -= 1
    if part == INSIDE and table[LEAF_BOUNDED]:
        return push_task(tasks, status, header, np.int32(READ), MAIN, 0, np.int32(longs_at(kit[MAIN])[TRIE_LENGTH]), node)
    if part >= FITTING:
        fitting = num_fitting(at_address(table[LEAF_NEEDS]), table[LEAF_NUM_ALL], part - np.int32(FITTING))
        add_ids(kit, status, at_address(table[LEAF_ALL]), fitting)
    elif part != ENDING:
        if table[LEAF_BASE]:
            add_base(kit, status, table[LEAF_BASE])
        add_ids(kit, status, at_address(table[LEAF_IDS]), table[LEAF_NUM_IDS])
    if part == INSIDE:
        return np.int32(0)
    add_ids(kit, status, at_address(table[LEAF_ENDERS]), table[LEAF_NUM_ENDERS])
    if not closes:
        return push_task(tasks, status, header, np.int32(EXIT_WALKS), key, 0, after, part)
    closings = at_address(book[BOOK_CLOSINGS])
    ids, number = at_address(book[BOOK_ARENA] + 4 * np.int64(closings[slot + 1])), np.int64(closings[slot + 2])
    first = status[COUNT]
    add_common(kit, status, ids, number, at_address(table[LEAF_CLOSING]), table[LEAF_NUM_CLOSING])
    if part >= FITTING:
        keep_short(kit, status, np.int32(table[LEAF_TIDY]), first, part - np.int32(FITTING))
    return np.int32(0)


@kernel(i4(P, P, P, P, P, P, LONGS, P, P, P, i4), apart=True)
def push_key(nodes, buckets, rows, table, frames, header, kit, tasks, status, info, node):
    """Leaves tasks for the tokens inside a key. Answers 0, or a code."""
    row, classes, parent = info[LEAF_ROW], info[CLASSES], nodes[node * NODE + PARENT]
    tidy = np.int32(1 if rows[row * ROW + FLAGS] & F_TIDY else 0)
    code = np.int32(0)
    if info[HAS_NAMES]:
        code = push_task(tasks, status, header, np.int32(DECLARED_KEYS), 0, 0, 0, node)
    whole = nodes[node * NODE + B] == OFF
    if not whole and code == 0:  # what it has in common with keys seen before decides how it may end
        stop = np.int32(longs_at(kit[CLOSING + tidy])[TRIE_LENGTH])
        code = push_task(tasks, status, header, np.int32(READ), CLOSING + tidy, 0, stop, node)
    part = np.int32(WHOLE if whole else INSIDE)
    number = np.int32(0)
    while classes != 0 and code == 0:
        if classes & 1:
            after = np.int32(NIL)
            if whole:
                after = end_key(nodes, buckets, table, frames, header, CLASS_BASE + number, np.int32(OFF), parent)
            code = push_task(tasks, status, header, np.int32(LEAF), row + (number + 1) * np.int32(CLASS_STRIDE), after, part, node)
            part = np.int32(ENDING)
            if not whole:
                break
        classes >>= 1
        number += 1
    return code


@kernel(i4(LONGS, P, P, P, i4, i4), apart=True)
def push_beginnings(kit, tasks, status, header, node, begins):
    """Walks of the tokens with which a value begins other than a scalar, or after whitespace. Answers 0, or a code."""
    first = at_address(longs_at(kit[MAIN])[TRIE_FIRST])
    for kind, byte in ((OBJECT, 123), (ARRAY, 91), (QUOTE, 34), (SPACE, 9), (SPACE, 10), (SPACE, 13), (SPACE, 32)):
        if begins & kind and first[2 * byte] < first[2 * byte + 1]:
            code = push_task(tasks, status, header, np.int32(READ), MAIN, first[2 * byte], first[2 * byte + 1], node)
            if code < 0:
                return code
    return np.int32(0)


@kernel(i4(P, P, P, P, P, P, LONGS, LONGS, P, P, i4))
def push_alternatives(nodes, buckets, rows, table, values, header, kit, book, tasks, status, node):
    """Leaves tasks for the tokens at a place in a context-free grammar. Answers 0, or a code."""
    at = values[nodes[node * NODE + A]]
    alternatives = table[at + P_ALTERNATIVES]
    at += P_LIST
    code = np.int32(0)
    for _ in range(alternatives):
        row = table[at]
        leaf = begin_alternative(nodes, buckets, table, header, np.int32(at), nodes[node * NODE + PARENT])
        if takes_many(rows, row):
            code = push_task(tasks, status, header, np.int32(LEAF), row, nodes[leaf * NODE + PARENT], WHOLE, leaf)
        else:
            code = push_walk(kit, book, tasks, status, header, leaf)
        if code < 0:
            return code
        at += 2 + table[at + 1]
    return code


@kernel(types.boolean(P, P, P, P, P, P, P, P, LONGS, P, i4, i4))
def begins_nothing(nodes, buckets, rows, table, values, frames, transitions, header, kit, out, state, at):
    """Whether `state` surely reads nothing that begins with the byte of trie node `at`."""
    byte = at_address(longs_at(kit[MAIN])[TRIE_NODES])[at * TRIE_NODE + BYTE]
    if leads_nowhere(nodes, rows, table, values, state, byte):
        return True
    return step(nodes, buckets, rows, table, values, frames, transitions, header, state, byte, np.int32(1), np.int32(OFF), out) == DEAD


@kernel(types.boolean(P, P, i4))
def was_visited(seen, status, node):
    k = 0
    while k < status[NUM_SEEN] and seen[k] != node:
        k += 1
    return k < status[NUM_SEEN]


@kernel(i4(P, P, P, P, P, P, P, LONGS, LONGS, P, P, i4, i4), apart=True)
def visit(nodes, buckets, rows, table, values, frames, header, kit, book, tasks, status, node, recorded):
    """Adds the tokens of a node, the top of the tasks, or leaves other tasks that add them. Answers 0, or a code."""
    seen, info = at_address(kit[SEEN]), at_address(kit[INFO])
    if was_visited(seen, status, node):
        status[DEPTH] -= 1
        return np.int32(0)
    code = classify(nodes, buckets, rows, table, values, frames, header, node, info)
    if code < 0:
        return code
    way = info[WAY]
    if recorded and way in (STRING, NAMED):
        way = np.int32(REST)
    elif recorded and way in (IN_LEAF, IN_KEY, AT_VALUE, AT_POSITION):
        way = np.int32(WALK)
    base = np.int64(0)
    done = np.int32(1)
    if way == STRING:
        done = add_string(kit, book, tasks, status, header, info)
    elif way == NAMED:
        done = find_closing(kit, book, tasks, status, header, info[TIDY], info[EXIT])
        done = np.int32(1) if done >= 0 else np.int32(0) if done == -1 else done
    elif way == REST:
        base = plain_row(kit, status, info[TIDY], info[ROOM])
        if base == 0:
            return np.int32(NEED_PLAIN)
    if done <= 0:
        return done
    if status[NUM_SEEN] >= MAX_TASKS:
        return ask(header, 0, 0, 0)
    seen[status[NUM_SEEN]] = node
    status[NUM_SEEN] += 1
    status[DEPTH] -= 1
    if way == STRING:
        return np.int32(0)
    if way == NAMED:
        return push_task(tasks, status, header, np.int32(NAMES), info[TIDY], info[EXIT], 0, node)
    if way == REST:
        add_base(kit, status, base)
        trie = longs_at(kit[CLOSING + info[TIDY]])
        return push_task(tasks, status, header, np.int32(READ), CLOSING + info[TIDY], 0, np.int32(trie[TRIE_LENGTH]), node)
    if way == AT_POSITION:
        return push_alternatives(nodes, buckets, rows, table, values, header, kit, book, tasks, status, node)
    if way == IN_KEY:
        return push_key(nodes, buckets, rows, table, frames, header, kit, tasks, status, info, node)
    if way == IN_LEAF and info[ENDS]:
        code = push_task(tasks, status, header, np.int32(VISIT), info[EXIT], 0, 0, 0)
    elif way == AT_VALUE:
        code = push_beginnings(kit, tasks, status, header, node, info[BEGINS])
    if way in (IN_LEAF, AT_VALUE):
        if info[LEAF_ROW] < 0 or code < 0:
            return code
        fits = way == IN_LEAF and info[SPARE] >= 0
        return push_task(
            tasks, status, header, np.int32(LEAF), info[LEAF_ROW], info[EXIT], np.int32(FITTING + info[SPARE] if fits else WHOLE), node
        )
    if way == MEMBERS:
        while node != NIL and code == 0:
            code = push_task(tasks, status, header, np.int32(VISIT), nodes[node * NODE + A], 0, 0, 0)
            node = nodes[node * NODE + PARENT]
        return code
    if recorded or node == status[STATE]:  # what depends on text is not remembered, what is asked for once need not be
        return push_task(tasks, status, header, np.int32(READ), MAIN, 0, np.int32(longs_at(kit[MAIN])[TRIE_LENGTH]), node)
    return push_walk(kit, book, tasks, status, header, node)


@kernel(i4(MEMORY, types.Array(types.int64, 1, "C"), types.Array(types.int64, 1, "C"), i4, i4))
def collect(memory, kit_array, book_array, state, recorded):
    """Finds the tokens of a state: `found[:status[COUNT]]` and the rows `bases[:status[NUM_BASES]]`. Answers 0, or a code to serve;
    then it goes on with state NIL.

    Args:
        kit_array, book_array: see `kit`.
        recorded: the state is inside recorded text: what follows a string or another leaf may depend on it.
    """
    nodes, buckets, rows, table, values, frames, transitions, header = addresses(memory)
    kit, book = pointer(kit_array), pointer(book_array)
    tasks, status = at_address(kit[TASKS]), at_address(kit[STATUS])
    path, out, found, dropped = at_address(kit[PATH]), at_address(kit[OUT]), at_address(kit[FOUND]), bytes_at(kit[DROPPED_MARKS])
    code = np.int32(0)
    if state != NIL:
        status[COUNT] = status[DEPTH] = status[NUM_SEEN] = status[NUM_BASES] = status[DOUBTED] = status[MAY_END] = 0
        status[MARK] = -1
        status[STATE] = state
        push_task(tasks, status, header, np.int32(FINISH), 0, 0, 0, 0)
        push_task(tasks, status, header, np.int32(VISIT), state, 0, 0, 0)
    while status[DEPTH] > 0:
        at = (status[DEPTH] - 1) * TASK
        what, a, b, c, d = tasks[at], tasks[at + 1], tasks[at + 2], tasks[at + 3], tasks[at + 4]
        if what == VISIT:
            code = visit(nodes, buckets, rows, table, values, frames, header, kit, book, tasks, status, a, recorded)
        elif what == EXIT_WALKS:
            leaf = longs_at(longs_at(book[BOOK_LEAVES])[leaf_slot(book, a) + 1])
            if b >= leaf[LEAF_NUM_EXITS]:
                status[DEPTH] -= 1
            else:
                exits = at_address(leaf[LEAF_EXITS] + 4 * EXIT_SIZE * np.int64(b))
                first, stop, past = exits[0], exits[1], exits[2]
                tasks[at + 2] = b + 1
                if past > b + 1 and begins_nothing(nodes, buckets, rows, table, values, frames, transitions, header, kit, out, c, first):
                    tasks[at + 2] = past
                elif d < FITTING or at_address(leaf[LEAF_EXIT_NEEDS])[b] <= d - FITTING:
                    code = push_task(tasks, status, header, np.int32(READ), MAIN, first, stop, c)
        elif what == LEAF:
            code = add_leaf(kit, book, tasks, status, header, a, b, c, d)
        elif what in (READ, NAMES, DECLARED_KEYS):
            names = np.int32(0 if what == READ else 1 if what == NAMES else DECLARED)
            trie = longs_at(kit[a if what == READ else CLOSING + a if what == NAMES else MAIN])
            start = b if what == READ else c
            stop = c if what == READ else np.int32(trie[TRIE_LENGTH])
            if d != NIL:
                status[DROPPED] = 0
            tasks[at + 4] = NIL
            code = walk(
                nodes, buckets, rows, table, values, frames, transitions, header, trie, path, out, found, status, dropped,
                d, start, stop, names,
            )  # fmt: skip
            tasks[at + (READ_AT if what == READ else NAMES_AT)] = status[POSITION]
            if code == 0:
                if what == NAMES:
                    add_names(kit, book, status, a, b)
                status[DEPTH] -= 1
        elif what == REMEMBER:
            code = remember(kit, book, status, a, b)
            if code == 0:
                status[DEPTH] -= 1
        elif what == KEEP:
            code = keep_closing(kit, book, status, a)
            if code == 0:
                status[DEPTH] -= 1
        else:
            info = at_address(kit[INFO])
            code = look_ahead(nodes, buckets, rows, table, values, header, status[STATE], out, info)
            if code >= 0:
                code = np.int32(0)
                status[DEPTH] -= 1
                status[MAY_END] = info[0] & ENDS_FOUND
                if status[MAY_END]:
                    add_ids(kit, status, at_address(kit[EOS]), kit[NUM_EOS])
        if code < 0:
            return code
        if status[COUNT] > kit[VOCABULARY] and status[MARK] < 0:
            return np.int32(SPILL)
    return np.int32(0)
