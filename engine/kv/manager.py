"""KV blocks of sequences: taking, sharing, publishing and giving back."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass

from .blocks import BlockPool
from .radix import RadixTree


@dataclass(frozen=True, kw_only=True)
class KVUsage:
    """Where the blocks are. `free + held + cached == total` at any time."""

    free: int
    held: int
    cached: int
    total: int


class KVManager:
    """Hands out blocks and remembers full ones by their tokens.

    A block table is a list of block ids owned by the caller. Its full blocks can be published, after which other
    sequences with the same prefix share them. Blocks nobody holds stay in the prefix tree until room is needed.
    """

    def __init__(self, num_blocks: int, block_size: int, *, enable_prefix_caching: bool):
        self.block_size = block_size
        self._pool = BlockPool(num_blocks)
        self._tree = RadixTree(block_size)
        self._enable_prefix_caching = enable_prefix_caching

    @property
    def num_available(self) -> int:
        """Blocks that can be taken now."""
        return self._pool.num_free + self._tree.num_idle

    @property
    def usage(self) -> KVUsage:
        return KVUsage(free=self._pool.num_free, held=self._pool.num_held, cached=self._tree.num_idle, total=self._pool.num_blocks)

    def num_blocks_for(self, num_tokens: int) -> int:
        """Blocks that so many tokens fill or begin."""
        return -(-num_tokens // self.block_size)

    def match(self, token_ids: Sequence[int], salt: str | None) -> list[int]:
        """The cached blocks of the longest known proper prefix.

        At least the last token is left out, since its logits are still to be computed.
        """
        if not self._enable_prefix_caching:
            return []
        longest = (len(token_ids) - 1) // self.block_size
        return self._tree.match(token_ids, salt)[:longest]

    def num_idle(self, block_ids: Sequence[int]) -> int:
        """How many of these blocks nobody holds: holding them makes so many fewer available."""
        return sum(self._pool.holders(block_id) == 0 for block_id in block_ids)

    def hold(self, block_ids: Sequence[int]) -> None:
        """One more holder of blocks that `match` found or another sequence holds."""
        for block_id in block_ids:
            if block_id in self._tree:
                self._tree.set_held(block_id)
            self._pool.hold(block_id)

    def is_shared(self, block_id: int) -> bool:
        """Whether a holder of the block must not write into it: others hold it too, or it is known by its tokens."""
        return self._pool.holders(block_id) > 1 or block_id in self._tree

    def replace(self, block_id: int) -> int:
        """A fresh block in exchange for one hold on another, which is to be copied into it. Needs an available block."""
        (fresh,) = self.take(1)
        self.release([block_id])
        return fresh

    def take(self, num_blocks: int) -> list[int]:
        """Fresh blocks, evicting cached ones when none are free. Needs `num_available >= num_blocks`."""
        assert num_blocks <= self.num_available
        while self._pool.num_free < num_blocks:
            self._pool.free([self._tree.evict()])
        return [self._pool.take() for _ in range(num_blocks)]

    def publish(
        self, token_ids: Sequence[int], num_tokens: int, block_ids: MutableSequence[int], num_published: int, salt: str | None
    ) -> int:
        """Makes the full blocks of a sequence known.

        A block whose tokens were published by another sequence meanwhile is given back and replaced, in `block_ids`,
        by that one: both hold the same keys and values.

        Args:
            token_ids: tokens of the sequence.
            num_tokens: how many of them have their keys and values in the blocks.
            num_published: blocks of the sequence that are known already.

        Returns:
            The number of blocks that are known now.
        """
        num_full = num_tokens // self.block_size
        if not self._enable_prefix_caching or num_full <= num_published:
            return num_published
        kept = self._tree.insert(token_ids, block_ids[:num_full], num_published, salt)
        for index, block_id in enumerate(kept, start=num_published):
            own = block_ids[index]
            if block_id != own:
                self.hold([block_id])
                block_ids[index] = block_id
                self.release([own])
        return num_full

    def release(self, block_ids: Sequence[int]) -> None:
        """Gives up a sequence's hold on its blocks; the last ones are evicted first."""
        for block_id in reversed(block_ids):
            if not self._pool.release(block_id):
                continue
            if block_id in self._tree:
                self._tree.set_idle(block_id)
            else:
                self._pool.free([block_id])
