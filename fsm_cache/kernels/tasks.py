"""Tasks of a mask: the stack they lie on, and how tokens are added."""

from __future__ import annotations

import numpy as np
from numba import types

from ...grammar.kernel_cache import kernel
from ...grammar.kernels.memory import LONGS, P, ask, at_address, bytes_at, i4, longs_at, shorts_at
from ...grammar.kernels.unions import MAX_MEMBERS
from .book import closing_slot
from .kit import (
    ASKED_A,
    ASKED_B,
    BASES,
    BOOK_ARENA,
    BOOK_ARENA_SIZE,
    BOOK_ARENA_USED,
    BOOK_CLOSINGS,
    BOOK_CLOSINGS_MASK,
    BOOK_NUM_CLOSINGS,
    COUNT,
    DEPTH,
    DOUBTED,
    DROPPED_MARKS,
    FOUND,
    KEYS,
    LENGTHS,
    LONGEST,
    MAIN,
    MARK,
    NUM_BASES,
    PLAIN,
    STRINGS,
    SUFFIXES,
    TRIE_LENGTH,
    WALKED,
)

# Tasks: what is to be done, and up to four ints.
TASK = 5
MAX_TASKS = 4 * MAX_MEMBERS
VISIT = 0  # add the tokens of a node. a: node
READ = 1  # walk. a: trie, b: first node, c: end, d: state, NIL once the walk has begun
NAMES = 2  # inside a key that is declared or any other. a: tidy, b: state after the quote, c: trie node, d: as READ
EXIT_WALKS = 3  # add the tokens that end a leaf. a: key of its table, b: next exit, c: what follows the leaf, d: as `part` of a LEAF
KEEP = 4  # keep the tokens found since status[MARK]. a: key of those that close a string
FINISH = 5  # end tokens
LEAF = 6  # add the tokens that a leaf allows. a: key of its table, b: what follows the leaf, c: part, d: its node
# parts: all, those that leave a key open, those that end it, and FITTING + n: those that fit into n characters
WHOLE, INSIDE, ENDING, FITTING = range(4)
DECLARED_KEYS = 7  # add the tokens in a key that may be a declared one. c: trie node, d: as READ
REMEMBER = 8  # keep the tokens of a walk. a: key of these, b: where they begin in those found
READ_AT, NAMES_AT = 2, 3  # where these have the trie node at which they go on

MAX_REMEMBERED = 1 << 14  # tokens of one walk

# Codes beside those of a step, for Python to serve; what is asked for is in status[ASKED_A], status[ASKED_B].
NEED_LEAF = -21  # the table of a row
NEED_PLAIN = -22  # a plain row. tidy, room
NEED_SPACE = -23  # in the book
TRY = -24  # tokens that are in doubt after the quote. tidy, state after the quote
SPILL = -25  # the tokens found as a row


@kernel(i4(P, P, P, i4, i4, i4, i4, i4))
def push_task(tasks, status, header, what, a, b, c, d):
    """Puts a task on the stack. Answers 0, or a code."""
    depth = status[DEPTH]
    if depth >= MAX_TASKS:
        return ask(header, 0, 0, 0)
    at = depth * TASK
    tasks[at], tasks[at + 1], tasks[at + 2], tasks[at + 3], tasks[at + 4] = what, a, b, c, d
    status[DEPTH] = depth + 1
    return np.int32(0)


@kernel(i4(P, i4, i4, i4))
def need(status, code, a, b):
    status[ASKED_A] = a
    status[ASKED_B] = b
    return code


@kernel(types.void(LONGS, P, P, types.int64))
def add_ids(kit, status, ids, number):
    found = at_address(kit[FOUND])
    count = status[COUNT]
    for k in range(number):
        found[count + k] = ids[k]
    status[COUNT] = count + np.int32(number)


@kernel(i4(LONGS, LONGS, P, P, P, i4, i4), apart=True)
def find_closing(kit, book, tasks, status, header, tidy, after):
    """Slot of the tokens that close a string and go on from `after`; -1 where tasks have to find them first, or a code below."""
    key = KEYS * after + tidy
    slot = closing_slot(book, key)
    if at_address(book[BOOK_CLOSINGS])[slot] >= 0:
        return np.int32(slot)
    trie = longs_at(kit[SUFFIXES + tidy])
    code = push_task(tasks, status, header, np.int32(KEEP), key, 0, 0, 0)
    if code == 0:
        code = push_task(tasks, status, header, np.int32(READ), SUFFIXES + tidy, 0, np.int32(trie[TRIE_LENGTH]), after)
    status[MARK] = status[COUNT]
    return code if code < 0 else np.int32(-1)


@kernel(i4(LONGS, LONGS, P, i4, i4), apart=True)
def enter(kit, book, status, key, first):
    """Copies the tokens found since `first` into the book. Answers 0, or a code."""
    count = status[COUNT] - first
    used = book[BOOK_ARENA_USED]
    if used + count > book[BOOK_ARENA_SIZE] or 2 * book[BOOK_NUM_CLOSINGS] > book[BOOK_CLOSINGS_MASK]:
        return need(status, np.int32(NEED_SPACE), count, 0)
    slot = closing_slot(book, key)
    closings, arena, found = at_address(book[BOOK_CLOSINGS]), at_address(book[BOOK_ARENA]), at_address(kit[FOUND])
    closings[slot], closings[slot + 1], closings[slot + 2] = key, np.int32(used), count
    for k in range(count):
        arena[used + k] = found[first + k]
    book[BOOK_ARENA_USED] = used + count
    book[BOOK_NUM_CLOSINGS] += 1
    return np.int32(0)


@kernel(i4(LONGS, LONGS, P, i4), apart=True)
def keep_closing(kit, book, status, key):
    """Moves the tokens found since status[MARK] into the book. Answers 0, or a code."""
    if status[DOUBTED]:
        return need(status, np.int32(TRY), key % KEYS, key // KEYS)
    code = enter(kit, book, status, key, status[MARK])
    if code == 0:
        status[COUNT] = status[MARK]
        status[MARK] = -1
    return code


@kernel(i4(LONGS, LONGS, P, P, P, i4), apart=True)
def push_walk(kit, book, tasks, status, header, node):
    """Leaves tasks that add the tokens of a node by walking all, and remember them; adds them at once where they are remembered. Answers
    0, or a code."""
    key = KEYS * node + WALKED
    slot = closing_slot(book, key)
    closings = at_address(book[BOOK_CLOSINGS])
    if closings[slot] >= 0:
        add_ids(kit, status, at_address(book[BOOK_ARENA] + 4 * np.int64(closings[slot + 1])), np.int64(closings[slot + 2]))
        return np.int32(0)
    code = push_task(tasks, status, header, np.int32(REMEMBER), key, status[COUNT], 0, 0)
    if code < 0:
        return code
    return push_task(tasks, status, header, np.int32(READ), MAIN, 0, np.int32(longs_at(kit[MAIN])[TRIE_LENGTH]), node)


@kernel(i4(LONGS, LONGS, P, i4, i4), apart=True)
def remember(kit, book, status, key, first):
    """Copies the tokens found since `first` into the book if they are few and all that there are. Answers 0, or a code."""
    count = status[COUNT] - first
    if status[DOUBTED] or count < 0 or count > MAX_REMEMBERED:  # count < 0: they were taken away as a row
        return np.int32(0)
    return enter(kit, book, status, key, first)


@kernel(types.void(LONGS, P, types.int64))
def add_base(kit, status, base):
    bases, number = longs_at(kit[BASES]), status[NUM_BASES]
    for k in range(number):
        if bases[k] == base:
            return
    bases[number] = base
    status[NUM_BASES] = number + 1


@kernel(types.void(LONGS, P, i4, P, types.int64, i4, i4), apart=True)
def add_fitting(kit, status, tidy, ids, number, low, high):
    """Adds those tokens that have low to high characters and are not dropped."""
    found, dropped = at_address(kit[FOUND]), bytes_at(kit[DROPPED_MARKS])
    lengths = shorts_at(longs_at(kit[STRINGS + tidy])[LENGTHS])
    count = status[COUNT]
    for k in range(number):
        token = ids[k]
        if low <= lengths[token] <= high and dropped[token] == 0:
            found[count] = token
            count += 1
    status[COUNT] = count


@kernel(types.void(LONGS, P, P, types.int64, P, types.int64), apart=True)
def add_common(kit, status, ids, number, allowed, num_allowed):
    """Adds those of `ids` that are in `allowed`."""
    found, marks = at_address(kit[FOUND]), bytes_at(kit[DROPPED_MARKS])
    count = status[COUNT]
    for k in range(num_allowed):
        marks[allowed[k]] = 1
    for k in range(number):
        if marks[ids[k]]:
            found[count] = ids[k]
            count += 1
    for k in range(num_allowed):
        marks[allowed[k]] = 0
    status[COUNT] = count


@kernel(types.void(LONGS, P, i4, i4, i4))
def keep_short(kit, status, tidy, first, high):
    """Drops those of `found[first:status[COUNT]]` that have more than `high` characters before the quote that they close."""
    found = at_address(kit[FOUND])
    lengths = shorts_at(longs_at(kit[STRINGS + tidy])[LENGTHS])
    count = first
    for k in range(first, status[COUNT]):
        if lengths[found[k]] <= high:
            found[count] = found[k]
            count += 1
    status[COUNT] = count


@kernel(types.int64(P, types.int64, i4))
def num_fitting(needs, number, room):
    """How many of ascending `needs` are at most `room`."""
    low, high = np.int64(0), number
    while low < high:
        middle = (low + high) // 2
        if needs[middle] <= room:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(types.int64(LONGS, P, i4, i4))
def plain_row(kit, status, tidy, room):
    """Address of the row of tokens that stay inside a string, with at most `room` characters (-1: any number), 0 if it is not made."""
    strings = longs_at(kit[STRINGS + tidy])
    longest = np.int32(strings[LONGEST])
    room = longest if room < 0 else min(room, longest)
    status[ASKED_A], status[ASKED_B] = tidy, room
    return longs_at(strings[PLAIN])[room]
