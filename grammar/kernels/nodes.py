"""Hash-consed nodes, and states as lists of them."""

from __future__ import annotations

import numpy as np
from numba import types

from ..kernel_cache import kernel
from ..machine_layout import H_BUCKET_MASK, H_NODES, KIND, NEXT, NIL, NODE, PARENT, SET, UNION, A, B, C
from .memory import P, i4


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
