"""The scheduler for a long time under a fake executor: whatever comes, blocks are conserved and everyone ends once, in fair order."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from formcast.engine.config import EngineLimits
from formcast.engine.deadlines import Deadlines
from formcast.engine.kv.manager import KVManager
from formcast.engine.scheduler import Scheduler
from formcast.engine.step_plan import StepPlan, StepResult

STEPS = 20_000
SIZE = 4
MAX_LEN = 48


class Walk:
    """A world in which requests arrive, are aborted, are late, fail together, fork, finish, and run out of blocks at random.

    Attributes:
        beams: by search, the sequences that are its beams, and whether each is computed.
        search_of: by sequence, the search.
    """

    def __init__(self, seed: int, *, num_blocks: int, budget: int):
        self.rng = random.Random(seed)
        limits = EngineLimits(
            max_model_len=MAX_LEN, max_num_seqs=6, max_num_batched_tokens=budget, block_size=SIZE, num_blocks=num_blocks, max_waiting=100,
            enable_prefix_caching=True,
        )  # fmt: skip
        self.kv = KVManager(num_blocks, SIZE, enable_prefix_caching=True)
        self.scheduler = Scheduler(limits, self.kv)
        self.deadlines = Deadlines()
        self.now = 0
        self.beams: dict[str, dict[str, bool]] = {}
        self.search_of: dict[str, str] = {}
        self.goals: dict[str, int] = {}
        self.lengths: dict[str, int] = {}
        self.priorities: dict[str, int] = {}
        self.first_tokens: list[str] = []
        self.ended: Counter[str] = Counter()
        self.num_added = self.num_preempted = self.num_accepted = self.num_late = self.num_forks = 0

    def add(self) -> None:
        prompt = [self.rng.randrange(2) for _ in range(self.rng.randrange(1, 30))]
        priority, salt = self.rng.choice([0, 0, 0, 1]), self.rng.choice([None, None, "s"])
        family = str(self.num_added) if self.rng.random() < 0.2 else None
        searches = family is None and self.rng.random() < 0.2
        for _ in range(self.rng.randrange(2, 5) if family else 1):
            request_id = str(self.num_added)
            self.num_added += 1
            self.priorities[request_id] = priority
            self.scheduler.add(request_id, prompt, priority=priority, salt=salt, family=family)
            self.goals[request_id] = min(MAX_LEN, len(prompt) + self.rng.randrange(1, 20))
            self.lengths[request_id] = len(prompt)
            if self.rng.random() < 0.1:
                self.deadlines.add(request_id, self.now + self.rng.randrange(60))
            if searches:
                self.beams[request_id] = {request_id: False}
                self.search_of[request_id] = request_id

    def end(self, request_id: str) -> None:
        for sequence_id in self.beams.pop(request_id, [request_id]):
            self.scheduler.finish(sequence_id)
        self.deadlines.discard(request_id)
        self.ended[request_id] += 1
        for table in (self.goals, self.lengths):
            del table[request_id]

    def step(self) -> None:
        self.now += 1
        for request_id in self.deadlines.expired(self.now):
            self.num_late += 1
            self.end(request_id)
        plan = self.scheduler.schedule(self.propose)
        self.num_preempted += plan.num_preempted
        if self.rng.random() < 0.003:  # the executor raises: all that took part end
            for request_id in dict.fromkeys(self.search_of.get(chunk.request_id, chunk.request_id) for chunk in plan.chunks):
                self.end(request_id)
        else:
            self.execute(plan)
        usage = self.kv.usage
        assert self.scheduler.num_running <= 6 and len(plan.chunks) <= 6
        assert usage.free + usage.held + usage.cached == usage.total
        assert plan.chunks or not self.goals

    def propose(self, request_id: str, limit: int) -> list[int]:
        if request_id in self.search_of:
            return []
        return [self.rng.randrange(2) for _ in range(min(limit, self.rng.randrange(4)))]

    def execute(self, plan: StepPlan) -> None:
        new = {}
        for chunk in plan.chunks:
            if chunk.samples and chunk.request_id in self.search_of:
                self.beams[self.search_of[chunk.request_id]][chunk.request_id] = True
            elif chunk.samples:
                num_new = min(self.rng.randint(1, 1 + chunk.num_drafts), self.goals[chunk.request_id] - self.lengths[chunk.request_id])
                new[chunk.request_id] = (*chunk.drafts[: num_new - 1], self.rng.randrange(2))
                self.num_accepted += num_new - 1
        self.scheduler.commit(plan, StepResult(new_token_ids=new))
        for request_id, tokens in new.items():
            if request_id not in self.first_tokens[-50:]:
                self.first_tokens.append(request_id)
            self.lengths[request_id] += len(tokens)
            if self.lengths[request_id] >= self.goals[request_id]:
                self.end(request_id)
        for name in [name for name, beams in self.beams.items() if all(beams.values())]:
            self.search(name)

    def search(self, name: str) -> None:
        """A step of a search: some beams end, others fork, all that are left grow."""
        beams = list(self.beams[name])
        self.lengths[name] += 1
        if self.lengths[name] >= self.goals[name]:
            self.end(name)
            return
        parents = self.rng.choices(beams, k=self.rng.randint(1, 4))
        for dropped in set(beams) - set(parents):
            self.scheduler.finish(dropped)
        self.beams[name] = {}
        for index, parent in enumerate(parents):
            child = parent
            if parent in parents[:index]:
                self.num_forks += 1
                child = f"{name}/{self.num_forks}"
                self.scheduler.fork(parent, child)
                self.search_of[child] = name
            self.beams[name][child] = False
        for child in self.beams[name]:
            self.scheduler.extend(child, self.rng.randrange(2))


@pytest.mark.parametrize(("num_blocks", "budget"), [(13, 16), (24, 7), (60, 64)], ids=["scarce", "narrow", "ample"])
def test_a_long_random_walk(num_blocks, budget):
    walk = Walk(num_blocks, num_blocks=num_blocks, budget=budget)
    for _ in range(STEPS // 3 + 1):
        if len(walk.goals) < 40 and walk.rng.random() < 0.3:
            walk.add()
        if walk.goals and walk.rng.random() < 0.02:
            walk.end(walk.rng.choice(list(walk.goals)))
        walk.step()
    for _ in range(5_000):
        if not walk.goals:
            break
        walk.step()
    assert not walk.goals and not walk.scheduler.has_work and walk.kv.usage.held == 0
    assert set(walk.ended.values()) == {1} and len(walk.ended) == walk.num_added
    assert min(walk.num_accepted, walk.num_late, walk.num_forks, walk.num_preempted) > 40


def test_equal_priorities_get_their_first_token_in_order_of_arrival():
    walk = Walk(1, num_blocks=60, budget=64)
    for _ in range(3_000):
        if len(walk.goals) < 40 and walk.rng.random() < 0.5:
            walk.add()
        plan = walk.scheduler.schedule()
        walk.execute(plan)
    order = [int(request_id) for request_id in dict.fromkeys(walk.first_tokens) if walk.priorities[request_id] == 0]
    # Prompts differ in length: those that begin together may end their prompts in another order, but nobody is overtaken by many.
    assert all(later > earlier - 10 for earlier, later in itertools.pairwise(order)) and len(order) > 300


def test_a_mixed_load_wastes_little_of_the_blocks_it_holds():
    """Prompts and answers of all sizes, blocks of the usual size, scarce. Of a request only the last block has room to spare."""
    rng = random.Random(0)
    limits = EngineLimits(
        max_model_len=2500, max_num_seqs=16, max_num_batched_tokens=512, block_size=16, num_blocks=700, max_waiting=100,
        enable_prefix_caching=True,
    )  # fmt: skip
    kv = KVManager(limits.num_blocks, limits.block_size, enable_prefix_caching=True)
    scheduler = Scheduler(limits, kv)
    left: dict[str, int] = {}
    held = unused = num_added = num_preempted = 0
    for _ in range(3_000):
        while len(left) < 24:
            scheduler.add(str(num_added), [rng.randrange(1 << 30)] * rng.choice([30, 120, 400, 900, 2000]))
            left[str(num_added)] = rng.choice([20, 100, 400])
            num_added += 1
        plan = scheduler.schedule()
        num_preempted += plan.num_preempted
        held += kv.usage.held * limits.block_size
        unused += scheduler.num_unused_slots
        scheduler.commit(plan, StepResult(new_token_ids=dict.fromkeys(plan.sampling_ids, (1,))))
        for request_id in plan.sampling_ids:
            left[request_id] -= 1
            if not left[request_id]:
                scheduler.finish(request_id)
                del left[request_id]
    assert 0 < unused / held < 0.04 and num_preempted > 0


def test_waiting_requests_cost_a_step_nothing():
    """Of 10,000 that wait, only the first is looked at."""
    looked_at = []

    class Watched(KVManager):
        def match(self, token_ids, salt):
            looked_at.append(len(token_ids))
            return super().match(token_ids, salt)

    limits = EngineLimits(
        max_model_len=MAX_LEN, max_num_seqs=6, max_num_batched_tokens=64, block_size=SIZE, num_blocks=20, max_waiting=10_000,
        enable_prefix_caching=True,
    )  # fmt: skip
    scheduler = Scheduler(limits, Watched(20, SIZE, enable_prefix_caching=True))
    for number in range(10_000):
        scheduler.add(str(number), [number % 7] * 20)
    for _ in range(20):
        plan = scheduler.schedule()
        scheduler.commit(plan, StepResult(new_token_ids=dict.fromkeys(plan.sampling_ids, (1,))))
    assert len(looked_at) < 40 and scheduler.num_waiting > 9_990
