"""The prefix tree: which blocks hold the keys and values of which token prefixes."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(eq=False)
class _Root:
    """The empty prefix of one salt."""

    salt: str | None
    children: dict[tuple[int, ...], _Node] = field(default_factory=dict)


@dataclass(eq=False)
class _Node:
    """One full block: its tokens, given the tokens of all nodes above it.

    `idle_since` is the tick at which its last holder left, or None while a sequence holds it.
    """

    tokens: tuple[int, ...]
    block_id: int
    parent: _Node | _Root
    children: dict[tuple[int, ...], _Node] = field(default_factory=dict)
    idle_since: int | None = None


class RadixTree:
    """Full blocks by the token ids that lead to them.

    Edges are compared token by token (a dictionary keyed by the tokens themselves), so two different prefixes never
    share a block, and each salt has a tree of its own. A block is *idle* when no sequence holds it. Sequences hold
    whole paths from the root, so whatever hangs below an idle block is idle too. Idle leaves are evicted least recently
    used first, in O(log n).
    """

    def __init__(self, block_size: int):
        self._block_size = block_size
        self._roots: dict[str | None, _Root] = {}
        self._nodes: dict[int, _Node] = {}
        self._idle_leaves: list[tuple[int, int]] = []
        self._num_idle = 0
        self._tick = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, block_id: int) -> bool:
        return block_id in self._nodes

    @property
    def num_idle(self) -> int:
        """Blocks that no sequence holds. All of them can be evicted, one after the other."""
        return self._num_idle

    def match(self, token_ids: Sequence[int], salt: str | None) -> list[int]:
        """The blocks of the longest known prefix, whole blocks only."""
        node: _Node | _Root | None = self._roots.get(salt)
        block_ids: list[int] = []
        while node is not None:
            start = len(block_ids) * self._block_size
            node = node.children.get(tuple(token_ids[start : start + self._block_size]))
            if node is not None:
                block_ids.append(node.block_id)
        return block_ids

    def insert(self, token_ids: Sequence[int], block_ids: Sequence[int], start_block: int, salt: str | None) -> list[int]:
        """Makes the full blocks of a held path known.

        Args:
            token_ids: tokens of the path, at least `len(block_ids) * block_size`.
            block_ids: the path's blocks, of which those before `start_block` are in the tree already.
            start_block: index of the first block to insert, below `len(block_ids)`.

        Returns:
            The path's blocks from `start_block` on. One differs from the block given where another sequence had
            published the same tokens first: the caller must hold that one instead of its own.
        """
        size = self._block_size
        node = self._nodes[block_ids[start_block - 1]] if start_block else self._roots.setdefault(salt, _Root(salt))
        kept: list[int] = []
        for index in range(start_block, len(block_ids)):
            tokens = tuple(token_ids[index * size : (index + 1) * size])
            child = node.children.get(tokens)
            if child is None:
                child = _Node(tokens, block_ids[index], node)
                node.children[tokens] = child
                self._nodes[child.block_id] = child
            kept.append(child.block_id)
            node = child
        return kept

    def set_idle(self, block_id: int) -> None:
        """The last sequence that held the block left."""
        node = self._nodes[block_id]
        assert node.idle_since is None
        self._tick += 1
        node.idle_since = self._tick
        self._num_idle += 1
        self._offer(node)

    def set_held(self, block_id: int) -> None:
        """Some sequence holds the block; no effect if one did before."""
        node = self._nodes[block_id]
        if node.idle_since is not None:
            node.idle_since = None
            self._num_idle -= 1

    def evict(self) -> int:
        """Forgets the least recently used idle leaf and returns its block. At least one block must be idle."""
        node = self._pop_idle_leaf()
        del self._nodes[node.block_id]
        self._num_idle -= 1
        parent = node.parent
        del parent.children[node.tokens]
        if isinstance(parent, _Node):
            self._offer(parent)
        elif not parent.children:
            del self._roots[parent.salt]
        return node.block_id

    def _offer(self, node: _Node) -> None:
        """Lists a node for eviction if it is an idle leaf. Entries that become stale are skipped when popped."""
        if node.idle_since is None or node.children:
            return
        heapq.heappush(self._idle_leaves, (node.idle_since, node.block_id))
        if len(self._idle_leaves) > 2 * len(self._nodes) + 64:
            self._idle_leaves = [entry for entry in self._idle_leaves if self._is_current(*entry)]
            heapq.heapify(self._idle_leaves)

    def _pop_idle_leaf(self) -> _Node:
        while True:
            idle_since, block_id = heapq.heappop(self._idle_leaves)
            if self._is_current(idle_since, block_id):
                return self._nodes[block_id]

    def _is_current(self, idle_since: int, block_id: int) -> bool:
        node = self._nodes.get(block_id)
        return node is not None and node.idle_since == idle_since and not node.children
