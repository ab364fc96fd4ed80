"""All tokens as one trie in flat depth-first arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numba import types

from ..grammar.kernel_cache import kernel

BYTE, DEPTH, END, TOKEN = range(4)  # columns of Trie.nodes

_i4_1 = types.Array(types.int32, 1, "C")
_i4_2 = types.Array(types.int32, 2, "C")
_u1_1 = types.Array(types.uint8, 1, "C", readonly=True)


@dataclass(frozen=True)
class Trie:
    """Attributes:
    nodes: int32 [N, 4]: byte, depth (root's children 0), index after the subtree, first token that ends here or -1.
    same: int32 [V]: next token with the same bytes, or -1.
    max_depth: length of the longest token in bytes.
    """

    nodes: np.ndarray
    same: np.ndarray
    max_depth: int

    @staticmethod
    def build(tokens: Iterable[tuple[bytes, int]], vocab_size: int) -> Trie:
        """Trie of `(bytes, id)` pairs; empty byte strings are not allowed."""
        ordered = sorted(tokens)
        same = np.full(vocab_size, -1, np.int32)
        if not ordered:
            return Trie(np.zeros((0, 4), np.int32), same, 0)
        data = np.frombuffer(b"".join(b for b, _ in ordered), np.uint8)
        ends = np.cumsum(np.fromiter((len(b) for b, _ in ordered), np.int32, len(ordered)), dtype=np.int32)
        ids = np.fromiter((i for _, i in ordered), np.int32, len(ordered))
        nodes = np.zeros((len(data), 4), np.int32)
        max_depth = max(len(b) for b, _ in ordered)
        count = _fill(data, ends, ids, nodes, same, np.zeros(max_depth + 1, np.int32))
        return Trie(np.ascontiguousarray(nodes[:count]), same, max_depth)


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
