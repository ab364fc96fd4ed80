"""The work of one step, and what it came to. Plain ints: no tensors, no clock, no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .sequence import TokenSequence


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Consecutive tokens of one request to compute in a step.

    Attributes:
        token_ids: the tokens, at positions `start, start + 1, ...` of the request.
        start: number of tokens before them, whose keys and values are in the blocks already.
        block_ids: the request's blocks, enough for all tokens up to the last of the chunk.
        samples: whether the chunk holds the request's last token, so that the next one is sampled.
        num_drafts: how many tokens at the end of the chunk are guesses, to be verified; only where it samples.
    """

    request_id: str
    token_ids: tuple[int, ...]
    start: int
    block_ids: Sequence[int]
    samples: bool
    num_drafts: int = 0

    @property
    def drafts(self) -> tuple[int, ...]:
        return self.token_ids[len(self.token_ids) - self.num_drafts :]

    def without_drafts(self) -> Chunk:
        return replace(self, token_ids=self.token_ids[: len(self.token_ids) - self.num_drafts], num_drafts=0)

    @property
    def num_sampled(self) -> int:
        """Rows of logits: one behind the request's last token, and one behind each draft."""
        return 1 + self.num_drafts if self.samples else 0


class BlockCopy(NamedTuple):
    """A block whose keys and values another one must have before the step begins."""

    source: int
    target: int


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """The work of one step. Chunks that decode stand before chunks that prefill.

    Attributes:
        copies: made before anything is computed.
    """

    chunks: tuple[Chunk, ...] = ()
    copies: tuple[BlockCopy, ...] = ()
    num_preempted: int = 0

    @property
    def num_tokens(self) -> int:
        return sum(len(chunk.token_ids) for chunk in self.chunks)

    @property
    def sampling_ids(self) -> list[str]:
        """The requests that get a token, in the order of the rows of logits."""
        return [chunk.request_id for chunk in self.chunks if chunk.samples]


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The tokens that a step gave to each request that sampled and still runs: accepted drafts, then one more.

    A request that sampled and gets none pauses until `Scheduler.extend`.
    """

    new_token_ids: Mapping[str, tuple[int, ...]]


@dataclass
class _ChunkPlan:
    """A chunk in the making."""

    sequence: TokenSequence
    size: int
    drafts: Sequence[int] = ()

    def build(self) -> Chunk:
        sequence, start, stop = self.sequence, self.sequence.num_computed, self.sequence.num_computed + self.size
        return Chunk(
            request_id=sequence.request_id,
            token_ids=(*sequence.token_ids[start:stop], *self.drafts),
            start=start,
            block_ids=sequence.block_ids[:],
            samples=stop == len(sequence.token_ids),
            num_drafts=len(self.drafts),
        )


@dataclass
class PlanBuilder:
    """A plan in the making, and what is left of its token budget."""

    num_tokens_left: int
    num_preempted: int = 0
    copies: list[BlockCopy] = field(default_factory=list)
    _chunks: dict[str, _ChunkPlan] = field(default_factory=dict)

    def copy(self, source: int, target: int) -> None:
        """A copy of a block. Copies are made all at once: what a copy is copied from, that is copied."""
        source = next((made.source for made in self.copies if made.target == source), source)
        self.copies.append(BlockCopy(source=source, target=target))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not self._chunks

    def add(self, sequence: TokenSequence) -> None:
        """As many tokens of the sequence as the budget allows, if any."""
        size = min(sequence.num_left, self.num_tokens_left)
        if size:
            self.num_tokens_left -= size
            self._chunks[sequence.request_id] = _ChunkPlan(sequence, size)

    def add_drafts(self, sequence: TokenSequence, drafts: Sequence[int]) -> None:
        """Drafts behind the tokens of a sequence that was added, within the budget."""
        assert len(drafts) <= self.num_tokens_left
        self.num_tokens_left -= len(drafts)
        self._chunks[sequence.request_id].drafts = drafts

    def build(self) -> StepPlan:
        chunks = tuple(chunk.build() for chunk in self._chunks.values())
        return StepPlan(chunks=chunks, copies=tuple(self.copies), num_preempted=self.num_preempted)
