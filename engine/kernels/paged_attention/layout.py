"""Shapes that every version of paged attention shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch

NO_WINDOW = 2**31 - 1
"""A sliding window longer than any context."""


@dataclass(frozen=True, kw_only=True)
class LayerCache:
    """Keys and values of one layer, in blocks.

    Attributes:
        keys: [num_blocks, num_kv_heads, block_size, head_dim]
        values: [num_blocks, num_kv_heads, block_size, value_dim]
    """

    keys: torch.Tensor
    values: torch.Tensor

    @property
    def block_size(self) -> int:
        return self.keys.shape[2]

    def copy(self, blocks: torch.Tensor) -> None:
        """Copies blocks [0] into blocks [1], of which none is twice or among the others: [2, C] int64."""
        self.keys[blocks[1]] = self.keys[blocks[0]]
        self.values[blocks[1]] = self.values[blocks[0]]


@dataclass(frozen=True, kw_only=True)
class AttentionScale:
    """How scores are formed.

    Attributes:
        scaling: factor on the products of queries and keys.
        window: a query attends to itself and the `window - 1` tokens before it; `NO_WINDOW` for all.
        softcap: scores become `softcap * tanh(score / softcap)`; None leaves them.
    """

    scaling: float
    window: int = NO_WINDOW
    softcap: float | None = None


@dataclass(frozen=True, kw_only=True)
class Span:
    """The rows of one sequence: queries `row_start .. row_stop - 1` follow `context_len` tokens in the cache."""

    sequence: int
    row_start: int
    row_stop: int
    context_len: int

    @property
    def num_rows(self) -> int:
        return self.row_stop - self.row_start

    @property
    def num_keys(self) -> int:
        return self.context_len + self.num_rows


@dataclass(frozen=True, kw_only=True)
class AttentionBatch:
    """Where the keys of each row of a step are.

    Attributes:
        block_tables: [S, max_blocks] int32, block ids of each sequence; entries beyond its length are 0 and unread.
        row_sequences: [T] int32, the sequence of each row.
        positions: [T] int32, the position of each row in its sequence.
        spans: the same by sequence, as plain ints; they cover the rows in order.
        masks: additive masks by span and window, kept so that all layers of a step share them.
        tiles: likewise, how the rows from one on are divided among the programs of a GPU, by that row and the most rows of each.
    """

    block_tables: torch.Tensor
    row_sequences: torch.Tensor
    positions: torch.Tensor
    spans: tuple[Span, ...]
    masks: dict[tuple[Span, int], torch.Tensor] = field(default_factory=dict)
    tiles: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict)

    @cached_property
    def num_scores(self) -> int:
        """Pairs of a row and a key that it may attend to, over all rows."""
        return sum(span.num_rows * (span.context_len + span.num_keys + 1) for span in self.spans) // 2
