"""Hash-consed nodes and their unions, in numba.

A state is a node (a stack, whose top it is) or a SET of nodes. Stacks are merged from the top down: a SET holds at most one node for each
thing that can be read next, and where several stacks begin with the same thing, what may come after it is a SET again. A state is
thereby a deterministic automaton of stacks without a duplicate in it (Tomita's graph-structured stack, determinised), and equal unions
are equal ints. Unions of tails are remembered, so that stacks that grow together cost the same at every height.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from .kernel_cache import kernel
from .machine_layout import (
    ARRAY_AFTER,
    ARRAY_OPEN,
    ASK,
    COUNTED,
    FORK,
    GROW,
    GUARD,
    H_BUCKET_MASK,
    H_NEED,
    H_NEED_A,
    H_NEED_B,
    H_NODE_CAPACITY,
    H_NODES,
    KIND,
    LEAF,
    MARK,
    NEED,
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

i4 = types.int32
i4_1 = types.Array(types.int32, 1, "C")
# Addresses of nodes, buckets, rows, table, values, frames, transitions, header: unpacking one array costs a call from Python
# 0.2 us, unpacking eight of them 2 us.
MEMORY = types.Array(types.int64, 1, "C")

P = types.CPointer(types.int32)


def _pointer(_typing, array):
    """Address of the first element. Inner functions take addresses: an array argument costs seven machine words a call."""

    def codegen(context, builder, signature, args):
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), codegen


def _at_address(_typing, address):
    """The int32 array at an address."""

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return P(address), codegen


pointer: Any = intrinsic(_pointer)
at_address: Any = intrinsic(_at_address)


MAX_MEMBERS = 2048  # members of one union, and pending nodes of one step; beyond, the kernels ask for nothing that helps
OUT_SIZE = 2 * MAX_MEMBERS
NODE_MARGIN = 3 * OUT_SIZE  # nodes that one step can make, apart from those of merged tails


@kernel(i4(P, i4, i4, i4))
def ask(header, what, a, b):
    header[H_NEED] = what
    header[H_NEED_A] = a
    header[H_NEED_B] = b
    return np.int32(NEED)


@kernel(types.int64(P, i4, i4, i4, i4, i4))
def bucket_of(header, kind, a, b, c, parent):
    h = np.uint32(kind) * np.uint32(0x9E3779B1)
    h = (h ^ np.uint32(a)) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(15)) ^ np.uint32(b)) * np.uint32(0xC2B2AE35)
    h = (h ^ (h >> np.uint32(13)) ^ np.uint32(c)) * np.uint32(0x27D4EB2F)
    h = (h ^ (h >> np.uint32(16)) ^ np.uint32(parent)) * np.uint32(0x165667B1)
    return np.int64((h ^ (h >> np.uint32(15))) & np.uint32(header[H_BUCKET_MASK]))


@kernel(i4(P, P, P, types.int64, i4, i4, i4, i4, i4))
def add_node(nodes, buckets, header, slot, kind, a, b, c, parent):
    n = header[H_NODES]
    header[H_NODES] = n + 1
    nodes[n * NODE + KIND] = kind
    nodes[n * NODE + A] = a
    nodes[n * NODE + B] = b
    nodes[n * NODE + C] = c
    nodes[n * NODE + PARENT] = parent
    nodes[n * NODE + NEXT] = buckets[slot]
    buckets[slot] = n
    return n


@kernel(i4(P, P, P, i4, i4, i4, i4, i4, i4))
def make_node(nodes, buckets, header, kind, a, b, c, parent, insert):
    """The node with these fields; made when absent and `insert`, else -1."""
    slot = bucket_of(header, kind, a, b, c, parent)
    n = buckets[slot]
    while n >= 0:
        at = n * NODE
        same = nodes[at + KIND] == kind and nodes[at + A] == a and nodes[at + B] == b
        if same and nodes[at + C] == c and nodes[at + PARENT] == parent:
            return n
        n = nodes[at + NEXT]
    if insert == 0:
        return np.int32(-1)
    return add_node(nodes, buckets, header, slot, kind, a, b, c, parent)


@kernel(types.void(P, P, P))
def rebuild_buckets(nodes, buckets, header):
    for n in range(header[H_NODES]):
        at = n * NODE
        kind = nodes[at + KIND]
        parent = np.int32(NIL) if kind == UNION else nodes[at + PARENT]
        slot = bucket_of(header, kind, nodes[at + A], nodes[at + B], nodes[at + C], parent)
        nodes[at + NEXT] = buckets[slot]
        buckets[slot] = np.int32(n)


# --- unions --------------------------------------------------------------------------------------------------------


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


@kernel(i4(P, i4))
def first_of(nodes, state):
    """The first node of a state."""
    return nodes[state * NODE + A] if nodes[state * NODE + KIND] == SET else state


@kernel(i4(P, i4))
def rest_of(nodes, state):
    """The state without its first node, NIL if that is all."""
    return nodes[state * NODE + PARENT] if nodes[state * NODE + KIND] == SET else np.int32(NIL)


@kernel(i4(P, i4, P, i4, i4))
def list_members(nodes, state, out, count, limit):
    """Appends the nodes of a state to `out[:count]`. Answers the new count, or -1 if it would exceed `limit`."""
    while state != NIL:
        if count >= limit:
            return np.int32(-1)
        out[count] = first_of(nodes, state)
        count += 1
        state = rest_of(nodes, state)
    return count


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


@kernel(i4(P, P, P, i4, i4))
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
                        grown[: size // 2] = todo
                        todo = grown
                    todo[2 * depth], todo[2 * depth + 1] = left, right
                    depth += 1
            if count >= members.shape[0]:
                grown = np.empty(2 * count, np.int32)
                grown[:count] = members
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


@kernel(i4(P, P, P, P, i4))
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
            tail = either(nodes, buckets, header, nodes[members[last] * NODE + PARENT], nodes[node * NODE + PARENT])
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
    return either(nodes, buckets, header, node, parent) if position & 1 else node
