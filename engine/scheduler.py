"""Which tokens of which requests are computed in the next step. Plain ints: no tensors, no clock, no model."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .config import EngineLimits
from .family import Family, FamilyBook
from .kv.manager import KVManager
from .sequence import TokenSequence, no_blocks
from .step_plan import PlanBuilder, StepPlan, StepResult

Propose = Callable[[str, int], Sequence[int]]
"""Guesses of what follows the last token of a request, as many as the number says or fewer."""


@dataclass(frozen=True, kw_only=True)
class _Prefix:
    """What is there of a sequence before it is computed.

    Attributes:
        block_ids: of its first `num_tokens` tokens; those before `num_published` are in the prefix tree.
        num_cached: how many of the tokens came from the tree.
    """

    block_ids: Sequence[int]
    num_tokens: int
    num_published: int
    num_cached: int


class Scheduler:
    """Continuous batching under one token budget.

    There are no phases: a request whose tokens are all computed but the last decodes one token, any other computes as
    large a chunk as the budget leaves. Decoding goes first, then prompts that were begun, then new ones by priority and
    arrival. A new one is admitted when blocks for all its known tokens are available. When a decoding request finds no
    block, the last one in that order loses its blocks and waits to be computed again. What is left of the budget goes to
    drafts, which never cost anybody a block.

    Members of a family wait while one of them computes their prompt, and then hold its blocks with it. Whoever writes into a block that
    others hold gets a copy first.

    A request may pause behind its last token, and fork there: the beams of a search do. It keeps its blocks, unless others need them.
    """

    def __init__(self, limits: EngineLimits, kv: KVManager):
        self._limits = limits
        self._kv = kv
        self._sequences: dict[str, TokenSequence] = {}
        self._families = FamilyBook()
        self._running: list[TokenSequence] = []
        self._waiting: list[tuple[tuple[int, ...], TokenSequence]] = []
        self._num_arrived = 0

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return len(self._sequences) - len(self._running)

    @property
    def num_unused_slots(self) -> int:
        """Places in the blocks of running requests that no token has."""
        size = self._kv.block_size
        return sum(len(sequence.block_ids) * size - len(sequence.token_ids) for sequence in self._running)

    @property
    def has_work(self) -> bool:
        return bool(self._sequences)

    def num_cached(self, request_id: str) -> int:
        """Prompt tokens that were found in the prefix cache when the request was first admitted."""
        return self._sequences[request_id].num_cached

    def add(
        self, request_id: str, token_ids: Sequence[int], *, priority: int = 0, salt: str | None = None, family: str | None = None
    ) -> None:
        """Queues a request of at least one token, whose id is not queued or running. Lower priorities run earlier.

        Args:
            family: requests of the same family, prompt and salt share the blocks of their prompt from the start.
        """
        self._num_arrived += 1
        sequence = TokenSequence(request_id=request_id, rank=(priority, self._num_arrived), token_ids=list(token_ids), salt=salt)
        self._sequences[request_id] = sequence
        if family is not None:
            self._families.join(family, sequence)
        self._wait(sequence)

    def fork(self, request_id: str, new_id: str) -> None:
        """A new request with the tokens of another one, and its rank, salt and family. It shares the blocks, as long as there is a place
        to run at; else its own are computed when there is one. To be called while the other pauses, and followed by `extend`.
        """
        self._num_arrived += 1
        parent = self._sequences[request_id]
        child = replace(
            parent, request_id=new_id, rank=(*parent.rank[:2], self._num_arrived), token_ids=parent.token_ids.copy(), block_ids=no_blocks(),
            num_computed=0, num_published=0,
        )  # fmt: skip
        self._sequences[new_id] = child
        self._families.add(child)
        if parent.block_ids and len(self._running) < self._limits.max_num_seqs:
            self._kv.hold(parent.block_ids)
            child.block_ids.extend(parent.block_ids)
            child.num_computed, child.num_published = parent.num_computed, parent.num_published
            self._run(child)

    def extend(self, request_id: str, token_id: int) -> None:
        """Ends the pause of a request: this token follows."""
        sequence = self._sequences[request_id]
        sequence.token_ids.append(token_id)
        sequence.paused = False
        if not sequence.block_ids:
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
        self._families.leave(sequence)
        if len(self._waiting) > 2 * self.num_waiting + 64:
            self._waiting = [entry for entry in self._waiting if not entry[1].closed]
            heapq.heapify(self._waiting)

    def schedule(self, propose: Propose | None = None) -> StepPlan:
        """The plan of the next step; without chunks when there is nothing to compute.

        Args:
            propose: asked for drafts of the requests that decode.
        """
        plan = PlanBuilder(self._limits.max_num_batched_tokens)
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
        while plan.is_empty and self._running and self._next_waiting() is not None:  # all that run are paused for those that wait
            plan.num_preempted += 1
            self._preempt(self._running[-1])
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
            sequence.paused = chunk.samples and not new_token_ids
            self._unpark(sequence.family)
            sequence.num_published = self._kv.publish(
                sequence.token_ids, sequence.num_computed, sequence.block_ids, sequence.num_published, sequence.salt
            )

    def _plan_decode(self, sequence: TokenSequence, plan: PlanBuilder) -> None:
        while self._num_missing(sequence) > self._kv.num_available:
            victim = self._running[-1]
            self._preempt(victim)
            plan.num_preempted += 1
            if victim is sequence:
                return
        self._complete(sequence, plan)
        plan.add(sequence)

    def _num_missing(self, sequence: TokenSequence) -> int:
        """Blocks to take before all known tokens of a sequence can be computed."""
        num_fresh = self._kv.num_blocks_for(len(sequence.token_ids)) - len(sequence.block_ids)
        return num_fresh + self._writes_shared(sequence)

    def _writes_shared(self, sequence: TokenSequence) -> bool:
        """Whether the next token goes into a block that others hold too. Those behind it are always its own."""
        index = sequence.num_computed // self._kv.block_size
        return index < len(sequence.block_ids) and self._kv.is_shared(sequence.block_ids[index])

    def _complete(self, sequence: TokenSequence, plan: PlanBuilder) -> None:
        """Takes the missing blocks, which must be available. The first one that is written becomes the sequence's own."""
        if self._writes_shared(sequence):
            index = sequence.num_computed // self._kv.block_size
            shared = sequence.block_ids[index]
            sequence.block_ids[index] = self._kv.replace(shared)
            plan.copy(shared, sequence.block_ids[index])
        sequence.block_ids.extend(self._kv.take(self._num_missing(sequence)))

    def _draft(self, sequence: TokenSequence, plan: PlanBuilder, propose: Propose) -> None:
        """Adds drafts to a request's chunk, as far as budget, context and spare blocks go."""
        size, num_tokens = self._kv.block_size, len(sequence.token_ids)
        spare = max(0, self._kv.num_available - len(self._running))
        room = min(
            plan.num_tokens_left, self._limits.max_model_len - num_tokens, (len(sequence.block_ids) + spare) * size - num_tokens
        )  # fmt: skip
        drafts = propose(sequence.request_id, room) if room > 0 else ()
        if drafts:
            missing = self._kv.num_blocks_for(num_tokens + len(drafts)) - len(sequence.block_ids)
            sequence.block_ids.extend(self._kv.take(max(0, missing)))
            plan.add_drafts(sequence, drafts)

    def _admit(self, plan: PlanBuilder) -> None:
        while plan.num_tokens_left and len(self._running) < self._limits.max_num_seqs:
            sequence = self._next_waiting()
            if sequence is None or not self._take_blocks(sequence, plan):
                return
            heapq.heappop(self._waiting)
            self._run(sequence)
            plan.add(sequence)

    def _run(self, sequence: TokenSequence) -> None:
        insort(self._running, sequence, key=lambda running: running.rank)
        if sequence.family is not None:
            sequence.family.running.append(sequence)

    def _take_blocks(self, sequence: TokenSequence, plan: PlanBuilder) -> bool:
        """Blocks for every known token, those that are there already first; false if there are too few.

        One block for each running request is left, so that what is admitted now is not preempted at once.
        """
        prefix, size = self._find_prefix(sequence), self._kv.block_size
        num_own = self._kv.num_blocks_for(len(sequence.token_ids)) - prefix.num_tokens // size
        if num_own > self._kv.num_available - self._kv.num_idle(prefix.block_ids) - len(self._running):
            return False
        self._kv.hold(prefix.block_ids)
        sequence.block_ids.extend(prefix.block_ids)
        sequence.num_computed = prefix.num_tokens
        sequence.num_published = prefix.num_published
        self._complete(sequence, plan)
        if not sequence.started:
            sequence.num_cached = prefix.num_cached
            sequence.started = True
        return True

    def _find_prefix(self, sequence: TokenSequence) -> _Prefix:
        """The most that is there of a sequence: in the prefix tree, or in the blocks of a member of its family."""
        matched = self._kv.match(sequence.token_ids, sequence.salt)
        num_matched = len(matched) * self._kv.block_size
        source = None if sequence.family is None else sequence.family.source
        if source is not None and sequence.family is not None:
            num_shared = sequence.family.num_shared(sequence)
            if num_shared > num_matched:
                return _Prefix(
                    block_ids=source.block_ids[: self._kv.num_blocks_for(num_shared)],
                    num_tokens=num_shared,
                    num_published=min(source.num_published, num_shared // self._kv.block_size),
                    num_cached=source.num_cached,
                )
        return _Prefix(block_ids=matched, num_tokens=num_matched, num_published=len(matched), num_cached=num_matched)

    def _preempt(self, sequence: TokenSequence) -> None:
        self._running.remove(sequence)
        self._release(sequence)
        if not sequence.paused:
            self._wait(sequence)

    def _release(self, sequence: TokenSequence) -> None:
        self._kv.release(sequence.block_ids)
        sequence.block_ids = no_blocks()
        sequence.num_computed = 0
        sequence.num_published = 0
        family = sequence.family
        if family is not None and sequence in family.running:
            family.running.remove(sequence)
            self._unpark(family)

    def _unpark(self, family: Family | None) -> None:
        """Lets members wait in line again, once nothing is gained by waiting for their prompt."""
        if family is not None and family.parked and not family.is_computing:
            for member in family.unpark():
                self._wait(member)

    def _wait(self, sequence: TokenSequence) -> None:
        heapq.heappush(self._waiting, (sequence.rank, sequence))

    def _next_waiting(self) -> TokenSequence | None:
        """The next in line. Those whose prompt is being computed step aside."""
        while self._waiting:
            sequence = self._waiting[0][1]
            family = sequence.family
            if not sequence.closed and (family is None or not family.is_computing):
                return sequence
            heapq.heappop(self._waiting)
            if not sequence.closed and family is not None:
                family.parked.append(sequence)
        return None
