"""All tokens as one trie in flat depth-first arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import types

from ..grammar.kernel_cache import kernel

BYTE, DEPTH, END, TOKEN, TRIE_NODE = range(5)  # columns of Trie.nodes, and their number
ASCII, WIDE, FIRST, LAST, HEIGHT, SUBTREE = 0, 4, 5, 6, 7, 8  # columns of Trie.subtrees, and their number
NARROW, TEXT, BROKEN = range(3)  # WIDE: only ASCII below; also well-formed UTF-8; also other bytes

_i4_1 = types.Array(types.int32, 1, "C")
_i4_2 = types.Array(types.int32, 2, "C")
_u1_1 = types.Array(types.uint8, 1, "C", readonly=True)


@dataclass(frozen=True)
class Trie:
    """Attributes:
    nodes: int32 [N, 4]: byte, depth (root's children 0), index after the subtree, first token that ends here or -1.
    same: int32 [V]: next token with the same bytes, or -1.
    subtrees: int32 [N, 8]: what is below and including a node: set of ASCII bytes (4 words), kind of other bytes (as read from
        the start of a token), the range of its tokens in `order`, and the bytes of the longest way down.
    order: int32 [T]: tokens in depth-first order.
    max_depth: length of the longest token in bytes.
    """

    nodes: np.ndarray
    same: np.ndarray
    subtrees: np.ndarray
    order: np.ndarray
    max_depth: int

    @cached_property
    def memory(self) -> np.ndarray:
        """For kernels, see `kernels.kit`."""
        arrays = (self.nodes, self.same, self.subtrees, self.order)
        return np.array([*(a.ctypes.data for a in arrays), len(self.nodes), len(self.order), self.first.ctypes.data], np.int64)

    @cached_property
    def first(self) -> np.ndarray:
        """int32 [256, 2]: first node and end of what begins with each byte."""
        nodes = np.zeros((256, 2), np.int32)
        i = 0
        while i < len(self.nodes):
            end = int(self.nodes[i, END])
            nodes[self.nodes[i, BYTE]] = i, end
            i = end
        return nodes

    def below(self, node: int) -> np.ndarray:
        """Tokens that go on after a node, which ends none of them."""
        ends, token = 0, int(self.nodes[node, TOKEN])
        while token >= 0:
            ends, token = ends + 1, int(self.same[token])
        return self.order[int(self.subtrees[node, FIRST]) + ends : int(self.subtrees[node, LAST])]

    def through(self, node: int) -> np.ndarray:
        """Tokens that end with a node or go on after it."""
        return self.order[int(self.subtrees[node, FIRST]) : int(self.subtrees[node, LAST])]

    def spelt_with(self, ascii_set: np.ndarray, *, wide: bool) -> np.ndarray:
        """Tokens of whole characters, all of them from a set.

        Args:
            ascii_set: int32 [4], bits of the ASCII characters in it.
            wide: whether all others are in it.
        """
        found = np.zeros(len(self.order), np.int32)
        count = _spelt_with(self.nodes, self.same, ascii_set, wide, np.zeros(self.max_depth + 1, np.int32), found)
        return found[:count].copy()

    @staticmethod
    def build(tokens: Iterable[tuple[bytes, int]], vocab_size: int) -> Trie:
        """Trie of `(bytes, id)` pairs; empty byte strings are not allowed."""
        ordered = sorted(tokens)
        same = np.full(vocab_size, -1, np.int32)
        if not ordered:
            return Trie(np.zeros((0, 4), np.int32), same, np.zeros((0, SUBTREE), np.int32), np.zeros(0, np.int32), 0)
        data = np.frombuffer(b"".join(b for b, _ in ordered), np.uint8)
        ends = np.cumsum(np.fromiter((len(b) for b, _ in ordered), np.int32, len(ordered)), dtype=np.int32)
        ids = np.fromiter((i for _, i in ordered), np.int32, len(ordered))
        nodes = np.zeros((len(data), 4), np.int32)
        max_depth = max(len(b) for b, _ in ordered)
        count = _fill(data, ends, ids, nodes, same, np.zeros(max_depth + 1, np.int32))
        nodes = np.ascontiguousarray(nodes[:count])
        subtrees = np.zeros((count, SUBTREE), np.int32)
        order = np.zeros(len(ordered), np.int32)
        _summarise(nodes, same, subtrees, order, np.zeros(max_depth + 1, np.int32), np.zeros(max_depth + 2, np.int32))
        return Trie(nodes, same, subtrees, order, max_depth)


@kernel(types.int64(_u1_1, _i4_1, _i4_1, _i4_2, _i4_1, _i4_1))
def _fill(data, ends, ids, nodes, same, path):
    """Writes the nodes of sorted tokens; answers their number. `path` holds the open node of each depth."""
    count = 0
    open_depth = 0  # nodes path[0:open_depth] are open
    start = 0
    for t in range(ends.shape[0]):
        end = ends[t]
        length = end - start
        common = 0
        while common < length and common < open_depth and nodes[path[common], BYTE] == data[start + common]:
            common += 1
        for d in range(common, open_depth):
            nodes[path[d], END] = count
        if common == length:  # the same bytes as the token before
            last = path[length - 1]
            same[ids[t]] = nodes[last, TOKEN]
            nodes[last, TOKEN] = ids[t]
        for d in range(common, length):
            nodes[count, BYTE] = data[start + d]
            nodes[count, DEPTH] = d
            nodes[count, TOKEN] = -1
            path[d] = count
            count += 1
        if common < length:
            nodes[count - 1, TOKEN] = ids[t]
        open_depth = length
        start = end
    for d in range(open_depth):
        nodes[path[d], END] = count
    return count


@kernel(types.int32(types.int32, types.int32))
def utf8_next(state, byte):
    """The state of a UTF-8 decoder (RFC 3629 section 4) after `byte`; 0 between characters, -1 not well formed.

    Other states hold the continuation bytes to come and the bounds of the next one: `left << 16 | low << 8 | high`.
    """
    if state < 0:
        return np.int32(-1)
    if state > 0:
        if byte < (state >> 8) & 0xFF or byte > state & 0xFF:
            return np.int32(-1)
        left = (state >> 16) - 1
        return np.int32(left << 16 | 0x80BF) if left > 0 else np.int32(0)
    if byte < 0x80:
        return np.int32(0)
    if byte < 0xC2 or byte > 0xF4:
        return np.int32(-1)
    if byte < 0xE0:
        return np.int32(1 << 16 | 0x80BF)
    if byte == 0xE0:
        return np.int32(2 << 16 | 0xA0BF)
    if byte == 0xED:
        return np.int32(2 << 16 | 0x809F)
    if byte < 0xF0:
        return np.int32(2 << 16 | 0x80BF)
    if byte == 0xF0:
        return np.int32(3 << 16 | 0x90BF)
    if byte == 0xF4:
        return np.int32(3 << 16 | 0x808F)
    return np.int32(3 << 16 | 0x80BF)


@kernel(types.void(_i4_2, _i4_1, _i4_2, _i4_1, _i4_1, _i4_1))
def _summarise(nodes, same, subtrees, order, path, decoder):
    """Fills `subtrees` and `order`. `path` and `decoder` are scratch: the node, and the UTF-8 state before it, of each depth."""
    count = 0
    for i in range(nodes.shape[0]):
        depth = nodes[i, DEPTH]
        byte = nodes[i, BYTE]
        path[depth] = i
        decoder[depth + 1] = utf8_next(decoder[depth], byte)
        subtrees[i, FIRST] = count
        if byte < 0x80:
            subtrees[i, ASCII + (byte >> 5)] |= np.int32(1) << (byte & 31)
        wide = BROKEN if decoder[depth + 1] < 0 else TEXT if byte >= 0x80 else NARROW
        for d in range(depth + 1):
            subtrees[path[d], WIDE] = max(subtrees[path[d], WIDE], wide)
        token = nodes[i, TOKEN]
        while token >= 0:
            order[count] = token
            count += 1
            token = same[token]
    for i in range(nodes.shape[0] - 1, -1, -1):
        end = nodes[i, END]
        subtrees[i, LAST] = count if end == nodes.shape[0] else subtrees[end, FIRST]
        child = i + 1
        subtrees[i, HEIGHT] = 1
        while child < end:
            subtrees[i, HEIGHT] = max(subtrees[i, HEIGHT], 1 + subtrees[child, HEIGHT])
            for w in range(4):
                subtrees[i, ASCII + w] |= subtrees[child, ASCII + w]
            child = nodes[child, END]


@kernel(types.int64(_i4_2, _i4_1, _i4_1, types.boolean, _i4_1, _i4_1))
def _spelt_with(nodes, same, ascii_set, wide, decoder, found):
    """See `Trie.spelt_with`. `decoder` is scratch: the UTF-8 state before each depth."""
    count = 0
    i = 0
    decoder[0] = 0
    while i < nodes.shape[0]:
        depth = nodes[i, DEPTH]
        byte = nodes[i, BYTE]
        after = utf8_next(decoder[depth], byte)
        inside = wide if byte >= 0x80 else (ascii_set[byte >> 5] >> (byte & 31)) & 1 != 0
        if after < 0 or not inside:
            i = nodes[i, END]
            continue
        decoder[depth + 1] = after
        if after == 0:
            token = nodes[i, TOKEN]
            while token >= 0:
                found[count] = token
                count += 1
                token = same[token]
        i += 1
    return count
