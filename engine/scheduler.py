"""Which tokens of which requests are computed in the next step. Plain ints: no tensors, no clock, no model."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .config import EngineLimits
from .kv.manager import KVManager


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
    block_ids: tuple[int, ...]
    samples: bool
    num_drafts: int = 0

    @property
    def drafts(self) -> tuple[int, ...]:
        return self.token_ids[len(self.token_ids) - self.num_drafts :]

    @property
    def num_sampled(self) -> int:
        """Rows of logits: one behind the request's last token, and one behind each draft."""
        return 1 + self.num_drafts if self.samples else 0


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """The work of one step. Chunks that decode stand before chunks that prefill."""

    chunks: tuple[Chunk, ...] = ()
    num_preempted: int = 0

    @property
    def num_tokens(self) -> int:
        return sum(len(chunk.token_ids) for chunk in self.chunks)

    @property
    def sampling_ids(self) -> list[str]:
        """The requests that get a token, in the order of the rows of logits."""
        return [chunk.request_id for chunk in self.chunks if chunk.samples]


Propose = Callable[[str, int], Sequence[int]]
"""Guesses of what follows the last token of a request, as many as the number says or fewer."""


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The tokens that a step gave to each request that sampled and still runs: accepted drafts, then one more."""

    new_token_ids: Mapping[str, tuple[int, ...]]


@dataclass(eq=False)
class _Sequence:
    """Progress of one request.

    `num_computed` tokens have their keys and values in `block_ids`; `num_published` of these blocks are in the prefix
    tree.
    """

    request_id: str
    rank: tuple[int, int]
    token_ids: list[int]
    salt: str | None
    block_ids: list[int] = field(default_factory=list)
    num_computed: int = 0
    num_published: int = 0
    num_cached: int = 0
    started: bool = False
    closed: bool = False

    @property
    def num_left(self) -> int:
        return len(self.token_ids) - self.num_computed


class Scheduler:
    """Continuous batching under one token budget.

    There are no phases: a request whose tokens are all computed but the last decodes one token, any other computes as
    large a chunk as the budget leaves. Decoding goes first, then prompts that were begun, then new ones by priority and
    arrival. A new one is admitted when blocks for all its known tokens are available. When a decoding request finds no
    block, the last one in that order loses its blocks and waits to be computed again. What is left of the budget goes to
    drafts, which never cost anybody a block.
    """

    def __init__(self, limits: EngineLimits, kv: KVManager):
        self._limits = limits
        self._kv = kv
        self._sequences: dict[str, _Sequence] = {}
        self._running: list[_Sequence] = []
        self._waiting: list[tuple[tuple[int, int], _Sequence]] = []
        self._num_arrived = 0

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return len(self._sequences) - len(self._running)

    @property
    def has_work(self) -> bool:
        return bool(self._sequences)

    def num_cached(self, request_id: str) -> int:
        """Prompt tokens that were found in the prefix cache when the request was first admitted."""
        return self._sequences[request_id].num_cached

    def add(self, request_id: str, token_ids: Sequence[int], *, priority: int = 0, salt: str | None = None) -> None:
        """Queues a request of at least one token, whose id is not queued or running. Lower priorities run earlier."""
        self._num_arrived += 1
        sequence = _Sequence(request_id, (priority, self._num_arrived), list(token_ids), salt)
        self._sequences[request_id] = sequence
        self._wait(sequence)

    def finish(self, request_id: str) -> None:
        """Forgets a request and gives its blocks back; no effect on one that is gone."""
        sequence = self._sequences.pop(request_id, None)
        if sequence is None:
            return
        sequence.closed = True
        if sequence in self._running:
            self._running.remove(sequence)
        self._release(sequence)
        if len(self._waiting) > 2 * self.num_waiting + 64:
            self._waiting = [entry for entry in self._waiting if not entry[1].closed]
            heapq.heapify(self._waiting)

    def schedule(self, propose: Propose | None = None) -> StepPlan:
        """The plan of the next step; without chunks when there is nothing to compute.

        Args:
            propose: asked for drafts of the requests that decode.
        """
        plan = _PlanBuilder(self._limits.max_num_batched_tokens)
        decoding = [sequence for sequence in self._running if sequence.num_left == 1]
        prefilling = [sequence for sequence in self._running if sequence.num_left > 1]
        for sequence in decoding:
            if sequence.block_ids:
                self._plan_decode(sequence, plan)
        for sequence in prefilling:
            if sequence.block_ids:
                plan.add(sequence)
        if not plan.num_preempted:
            self._admit(plan)
        if propose is not None:
            for sequence in decoding:
                if sequence.block_ids:
                    self._draft(sequence, plan, propose)
        return plan.build()

    def commit(self, plan: StepPlan, result: StepResult) -> None:
        """Takes over what a plan's execution achieved. Requests that finished meanwhile are skipped."""
        for chunk in plan.chunks:
            sequence = self._sequences.get(chunk.request_id)
            if sequence is None:
                continue
            new_token_ids = result.new_token_ids.get(chunk.request_id, ())
            num_accepted = max(0, len(new_token_ids) - 1)
            sequence.num_computed = chunk.start + len(chunk.token_ids) - chunk.num_drafts + num_accepted
            sequence.token_ids.extend(new_token_ids)
            sequence.num_published = self._kv.publish(
                sequence.token_ids, sequence.num_computed, sequence.block_ids, sequence.num_published, sequence.salt
            )

    def _plan_decode(self, sequence: _Sequence, plan: _PlanBuilder) -> None:
        missing = self._kv.num_blocks_for(len(sequence.token_ids)) - len(sequence.block_ids)
        while missing > self._kv.num_available:
            victim = self._running[-1]
            self._preempt(victim)
            plan.num_preempted += 1
            if victim is sequence:
                return
        sequence.block_ids += self._kv.take(missing)
        plan.add(sequence)

    def _draft(self, sequence: _Sequence, plan: _PlanBuilder, propose: Propose) -> None:
        """Adds drafts to a request's chunk, as far as budget, context and spare blocks go."""
        size, num_tokens = self._kv.block_size, len(sequence.token_ids)
        spare = max(0, self._kv.num_available - len(self._running))
        room = min(
            plan.num_tokens_left, self._limits.max_model_len - num_tokens, (len(sequence.block_ids) + spare) * size - num_tokens
        )  # fmt: skip
        drafts = propose(sequence.request_id, room) if room > 0 else ()
        if drafts:
            missing = self._kv.num_blocks_for(num_tokens + len(drafts)) - len(sequence.block_ids)
            sequence.block_ids += self._kv.take(max(0, missing))
            plan.add_drafts(sequence, drafts)

    def _admit(self, plan: _PlanBuilder) -> None:
        while plan.num_tokens_left and len(self._running) < self._limits.max_num_seqs:
            sequence = self._next_waiting()
            if sequence is None or not self._take_blocks(sequence):
                return
            heapq.heappop(self._waiting)
            insort(self._running, sequence, key=lambda running: running.rank)
            plan.add(sequence)

    def _take_blocks(self, sequence: _Sequence) -> bool:
        """Blocks for every known token, cached ones first; false if there are too few.

        One block for each running request is left, so that what is admitted now is not preempted at once.
        """
        matched = self._kv.match(sequence.token_ids, sequence.salt)
        missing = self._kv.num_blocks_for(len(sequence.token_ids)) - len(matched)
        if missing + len(self._running) > self._kv.num_available - self._kv.num_idle(matched):
            return False
        self._kv.hold(matched)
        sequence.block_ids = matched + self._kv.take(missing)
        sequence.num_published = len(matched)
        sequence.num_computed = len(matched) * self._kv.block_size
        if not sequence.started:
            sequence.num_cached = sequence.num_computed
            sequence.started = True
        return True

    def _preempt(self, sequence: _Sequence) -> None:
        self._running.remove(sequence)
        self._release(sequence)
        self._wait(sequence)

    def _release(self, sequence: _Sequence) -> None:
        self._kv.release(sequence.block_ids)
        sequence.block_ids = []
        sequence.num_computed = 0
        sequence.num_published = 0

    def _wait(self, sequence: _Sequence) -> None:
        heapq.heappush(self._waiting, (sequence.rank, sequence))

    def _next_waiting(self) -> _Sequence | None:
        while self._waiting and self._waiting[0][1].closed:
            heapq.heappop(self._waiting)
        return self._waiting[0][1] if self._waiting else None


@dataclass
class _ChunkPlan:
    """A chunk in the making."""

    sequence: _Sequence
    size: int
    drafts: Sequence[int] = ()

    def build(self) -> Chunk:
        sequence, start, stop = self.sequence, self.sequence.num_computed, self.sequence.num_computed + self.size
        return Chunk(
            request_id=sequence.request_id,
            token_ids=(*sequence.token_ids[start:stop], *self.drafts),
            start=start,
            block_ids=tuple(sequence.block_ids),
            samples=stop == len(sequence.token_ids),
            num_drafts=len(self.drafts),
        )


class _PlanBuilder:
    """A plan in the making, and what is left of its token budget."""

    def __init__(self, num_tokens: int):
        self.num_tokens_left = num_tokens
        self.num_preempted = 0
        self._chunks: dict[str, _ChunkPlan] = {}

    def add(self, sequence: _Sequence) -> None:
        """As many tokens of the sequence as the budget allows, if any."""
        size = min(sequence.num_left, self.num_tokens_left)
        if size:
            self.num_tokens_left -= size
            self._chunks[sequence.request_id] = _ChunkPlan(sequence, size)

    def add_drafts(self, sequence: _Sequence, drafts: Sequence[int]) -> None:
        """Drafts behind the tokens of a sequence that was added, within the budget."""
        assert len(drafts) <= self.num_tokens_left
        self.num_tokens_left -= len(drafts)
        self._chunks[sequence.request_id].drafts = drafts

    def build(self) -> StepPlan:
        return StepPlan(chunks=tuple(chunk.build() for chunk in self._chunks.values()), num_preempted=self.num_preempted)
