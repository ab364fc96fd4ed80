"""One request as the scheduler sees it: its tokens, its blocks, and how far it got."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .family import Family


def no_blocks() -> array[int]:
    """An empty block table. Tables are arrays of C ints, which go into tensors as they are."""
    return array("i")


@dataclass(eq=False, kw_only=True)
class TokenSequence:
    """Progress of one request.

    Attributes:
        rank: its place in the order of service, lowest first; no two are equal.
        token_ids: of prompt and answer so far.
        family: the requests that have the same prompt and know it, if any.
        block_ids: where the keys and values of `num_computed` tokens are; `num_published` of these blocks are in the prefix tree.
        num_cached: prompt tokens that were found in the prefix tree when it first ran.
        paused: whether what follows its last token is known and not yet said: nothing is to be computed.
        started, closed: whether it ever ran, and whether it has ended.
    """

    request_id: str
    rank: tuple[int, ...]
    token_ids: list[int]
    salt: str | None = None
    family: Family | None = None
    block_ids: array[int] = field(default_factory=no_blocks)
    num_computed: int = 0
    num_published: int = 0
    num_cached: int = 0
    paused: bool = False
    started: bool = False
    closed: bool = False

    @property
    def num_left(self) -> int:
        return len(self.token_ids) - self.num_computed
