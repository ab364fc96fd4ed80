"""Unions of states.

A state is a node (a stack, whose top it is) or a SET of nodes. Stacks are merged from the top down: a SET holds at most one node for each
thing that can be read next, and where several stacks begin with the same thing, what may come after it is a SET again. A state is
thereby a deterministic automaton of stacks without a duplicate in it (Tomita's graph-structured stack, determinised), and equal unions
are equal ints. Unions of tails are remembered, so that stacks that grow together cost the same at every height.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ..kernel_cache import kernel
from ..machine_layout import (
    ARRAY_AFTER,
    ARRAY_OPEN,
    ASK,
    COUNTED,
    FORK,
    GROW,
    GUARD,
    H_NODE_CAPACITY,
    H_NODES,
    KIND,
    LEAF,
    MARK,
    NEXT,
    NIL,
    NODE,
    OBJECT_AFTER,
    OBJECT_COMMA,
    OBJECT_OPEN,
    PARENT,
    POSITION,
    SET,
    SWITCH,
    UNION,
    VALUE,
    A,
    B,
    C,
)
from .far import EITHER
from .far import either as call_either
from .memory import P, ask, i4, pointer
from .nodes import add_node, bucket_of, first_of, list_members, make_node, rest_of

MAX_MEMBERS = 2048  # members of one union, and pending nodes of one step; beyond, the kernels ask for nothing that helps
OUT_SIZE = 2 * MAX_MEMBERS
NODE_MARGIN = 3 * OUT_SIZE  # nodes that one step can make, apart from those of merged tails


@kernel(i4(P, P, P, i4, i4))
def recall_union(nodes, buckets, header, x, y):
    """The union of two states if it was made before, else -1."""
    if x == y:
        return x
    if x > y:
        x, y = y, x
    n = buckets[bucket_of(header, UNION, x, y, 0, NIL)]
    while n >= 0:
        at = n * NODE
        if nodes[at + KIND] == UNION and nodes[at + A] == x and nodes[at + B] == y:
            return nodes[at + PARENT]
        n = nodes[at + NEXT]
    return np.int32(-1)


@kernel(types.void(P, P, P, i4, i4, i4))
def remember_union(nodes, buckets, header, x, y, result):
    if x > y:
        x, y = y, x
    add_node(nodes, buckets, header, bucket_of(header, UNION, x, y, 0, NIL), UNION, x, y, 0, result)


@kernel(i4(P, i4, i4))
def compare(nodes, m, n):
    """Order of two nodes by what they read first: negative, positive, or 0 if they differ in their parent at most."""
    if m == n:
        return np.int32(0)
    kind = nodes[m * NODE + KIND]
    for column in (KIND, A, B, C):
        x, y = nodes[m * NODE + column], nodes[n * NODE + column]
        if x != y:
            return np.int32(-1) if x < y else np.int32(1)
    if (
        kind in (LEAF, POSITION, VALUE, COUNTED)
        or kind in (FORK, SWITCH, MARK)
        or kind in (GUARD, ASK)
        or kind in (ARRAY_OPEN, ARRAY_AFTER)
        or kind in (OBJECT_OPEN, OBJECT_AFTER, OBJECT_COMMA)
    ):
        return np.int32(0)
    return np.int32(-1) if m < n else np.int32(1)  # a step looks into the parents of the other kinds


@kernel(i4(P, P, P, P, i4))
def state_of(nodes, buckets, header, members, count):
    """The state of distinct nodes in order."""
    if count == 1:
        return members[0]
    rest = np.int32(NIL)
    for i in range(count - 1, -1, -1):
        rest = make_node(nodes, buckets, header, SET, members[i], 0, 0, rest, 1)
    return rest


@kernel(i4(P, P, P, i4, i4))
def with_parent(nodes, buckets, header, node, parent):
    """The same thing to read, with something else after it."""
    at = node * NODE
    return make_node(nodes, buckets, header, nodes[at + KIND], nodes[at + A], nodes[at + B], nodes[at + C], parent, 1)


@kernel(EITHER, far=True)
def either(nodes, buckets, header, x, y):
    """The union of two states, or a code."""
    result = recall_union(nodes, buckets, header, x, y)
    if result >= 0:
        return result
    size = 64
    todo = np.empty(size, np.int32)  # pairs of states, each waiting for those above it
    todo[0], todo[1] = x, y
    depth = 1
    members = np.empty(64, np.int32)
    while depth > 0:
        x, y = todo[2 * depth - 2], todo[2 * depth - 1]
        result = recall_union(nodes, buckets, header, x, y)
        if result >= 0:
            depth -= 1
            continue
        waiting = depth
        count = 0
        p, q = x, y
        while p != NIL or q != NIL:
            if p == NIL:
                order = np.int32(1)
            elif q == NIL:
                order = np.int32(-1)
            else:
                order = compare(nodes, first_of(nodes, p), first_of(nodes, q))
            node = first_of(nodes, q if order > 0 else p)
            if order == 0:
                left, right = nodes[node * NODE + PARENT], nodes[first_of(nodes, q) * NODE + PARENT]
                tail = recall_union(nodes, buckets, header, left, right)
                if tail >= 0:
                    node = with_parent(nodes, buckets, header, node, tail)
                else:
                    if 2 * depth + 2 > size:
                        size *= 2
                        grown = np.empty(size, np.int32)
                        for k in range(size // 2):
                            grown[k] = todo[k]
                        todo = grown
                    todo[2 * depth], todo[2 * depth + 1] = left, right
                    depth += 1
            if count >= members.shape[0]:
                grown = np.empty(2 * count, np.int32)
                for k in range(count):
                    grown[k] = members[k]
                members = grown
            members[count] = node
            count += 1
            if order <= 0:
                p = rest_of(nodes, p)
            if order >= 0:
                q = rest_of(nodes, q)
        if count > MAX_MEMBERS:
            return ask(header, 0, 0, 0)
        if header[H_NODES] + 2 * count + 1 + NODE_MARGIN > header[H_NODE_CAPACITY]:
            return np.int32(GROW)
        if depth == waiting:
            result = state_of(nodes, buckets, header, pointer(members), count)
            remember_union(nodes, buckets, header, x, y, result)
            depth -= 1
    return result


@kernel(types.void(P, P, i4))
def sort_members(nodes, members, count):
    """Sorts in place (Shell, 1959)."""
    gap = count // 2
    while gap > 0:
        for i in range(gap, count):
            node = members[i]
            j = i - gap
            while j >= 0 and compare(nodes, members[j], node) > 0:
                members[j + gap] = members[j]
                j -= gap
            members[j + gap] = node
        gap //= 2


@kernel(i4(P, P, P, P, i4), apart=True)
def union(nodes, buckets, header, members, count):
    """The union of the states `members[:count]`, or a code. `members` is scratch of OUT_SIZE ints."""
    given = count
    for i in range(given):
        state = members[i]
        if nodes[state * NODE + KIND] == SET:
            members[i] = nodes[state * NODE + A]
            count = list_members(nodes, nodes[state * NODE + PARENT], members, count, OUT_SIZE)
            if count < 0:
                return ask(header, 0, 0, 0)
    sort_members(nodes, members, count)
    last = 0
    for i in range(1, count):
        node = members[i]
        if node == members[last]:
            continue
        if compare(nodes, members[last], node) == 0:
            tail = call_either(nodes, buckets, header, nodes[members[last] * NODE + PARENT], nodes[node * NODE + PARENT])
            if tail < 0:
                return tail
            members[last] = with_parent(nodes, buckets, header, members[last], tail)
        else:
            last += 1
            members[last] = node
    if last >= MAX_MEMBERS:
        return ask(header, 0, 0, 0)
    return state_of(nodes, buckets, header, members, np.int32(last + 1))


@kernel(i4(P, P, P, i4, i4))
def push(nodes, buckets, header, position, parent):
    """The state before a place (2 * value + nullable) that `parent` follows, or a code. What may come at once is in it."""
    node = make_node(nodes, buckets, header, POSITION, position >> 1, 0, 0, parent, 1)
    return call_either(nodes, buckets, header, node, parent) if position & 1 else node
