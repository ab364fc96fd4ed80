"""The pool of KV blocks: who holds which, and nothing about what is in them."""

from __future__ import annotations

from collections.abc import Iterable


class BlockPool:
    """Reference-counted ids `0 .. num_blocks - 1`.

    A block is *free* (in the pool's list), *held* (by one or more sequences) or *idle*: held by nobody, but kept by
    whoever asked for it, the prefix cache. The caller decides at `release` what becomes of a block nobody holds.
    """

    def __init__(self, num_blocks: int):
        self._free = list(range(num_blocks - 1, -1, -1))
        self._holders = [0] * num_blocks
        self._num_held = 0

    @property
    def num_blocks(self) -> int:
        return len(self._holders)

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_held(self) -> int:
        return self._num_held

    def holders(self, block_id: int) -> int:
        """How many sequences hold the block."""
        return self._holders[block_id]

    def take(self) -> int:
        """A free block, held once by the caller."""
        block_id = self._free.pop()
        self.hold(block_id)
        return block_id

    def hold(self, block_id: int) -> None:
        """One more holder."""
        self._holders[block_id] += 1
        self._num_held += self._holders[block_id] == 1

    def release(self, block_id: int) -> bool:
        """One holder fewer; true when it was the last. The block is idle then, until `free` or `hold`."""
        assert self._holders[block_id] > 0, f"block {block_id} is released more often than it was held"
        self._holders[block_id] -= 1
        last = self._holders[block_id] == 0
        self._num_held -= last
        return last

    def free(self, block_ids: Iterable[int]) -> None:
        """Puts idle blocks back into the list."""
        for block_id in block_ids:
            assert self._holders[block_id] == 0, f"block {block_id} is freed while it is held"
            self._free.append(block_id)
