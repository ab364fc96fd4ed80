"""A scheduler with an executor that stores tokens instead of keys and values."""

from __future__ import annotations

from formcast.engine.config import EngineLimits
from formcast.engine.kv.manager import KVManager
from formcast.engine.scheduler import Scheduler
from formcast.engine.step_plan import StepPlan, StepResult

SIZE = 4


def limits(**overrides) -> EngineLimits:
    settings = {
        "max_model_len": 40,
        "max_num_seqs": 4,
        "max_num_batched_tokens": 8,
        "block_size": SIZE,
        "num_blocks": 12,
        "max_waiting": 100,
        "enable_prefix_caching": False,
    }
    return EngineLimits(**{**settings, **overrides})


class World:
    """A scheduler and an executor that checks every plan and answers with the token 7.

    Attributes:
        pausing: requests that get no token, but wait for `extend`.
    """

    def __init__(self, **overrides):
        self.limits = limits(**overrides)
        self.kv = KVManager(self.limits.num_blocks, SIZE, enable_prefix_caching=self.limits.enable_prefix_caching)
        self.scheduler = Scheduler(self.limits, self.kv)
        self.tokens: dict[str, list[int]] = {}
        self.written: dict[int, list[int]] = {}
        self.num_computed = 0
        self.pausing: set[str] = set()

    def add(self, request_id: str, tokens: list[int], **options) -> None:
        self.scheduler.add(request_id, tokens, **options)
        self.tokens[request_id] = list(tokens)

    def finish(self, request_id: str) -> None:
        self.scheduler.finish(request_id)
        self.tokens.pop(request_id, None)

    def fork(self, request_id: str, new_id: str) -> None:
        self.scheduler.fork(request_id, new_id)
        self.tokens[new_id] = list(self.tokens[request_id])
        self.pausing.add(new_id)

    def extend(self, request_id: str, token: int) -> None:
        self.scheduler.extend(request_id, token)
        self.tokens[request_id].append(token)

    def step(self) -> StepPlan:
        plan = self.scheduler.schedule()
        assert plan.num_tokens <= self.limits.max_num_batched_tokens
        assert len({chunk.request_id for chunk in plan.chunks}) == len(plan.chunks) <= self.limits.max_num_seqs
        self.written |= {copied.target: list(self.written[copied.source]) for copied in plan.copies}  # all at once
        for chunk in plan.chunks:
            self._write(chunk)
        self.num_computed += plan.num_tokens
        new = {request_id: (7,) for request_id in plan.sampling_ids if request_id not in self.pausing}
        self.scheduler.commit(plan, StepResult(new_token_ids=new))
        for request_id in new:
            self.tokens[request_id].append(7)
        usage = self.kv.usage
        assert usage.free + usage.held + usage.cached == usage.total
        return plan

    def _write(self, chunk) -> None:
        """A chunk continues its request exactly, and finds all earlier tokens in its blocks."""
        tokens, stop = self.tokens[chunk.request_id], chunk.start + len(chunk.token_ids)
        assert list(chunk.token_ids) == tokens[chunk.start : stop] and chunk.token_ids
        assert chunk.samples == (stop == len(tokens))
        assert len(chunk.block_ids) * SIZE >= stop
        self.put(chunk.block_ids, chunk.start, chunk.token_ids)
        stored = [self.written[block] for block in chunk.block_ids[: -(-stop // SIZE)]]
        assert [token for slots in stored for token in slots][:stop] == tokens[:stop]

    def put(self, block_ids, start: int, tokens) -> None:
        for position, token in enumerate(tokens, start=start):
            self.written.setdefault(block_ids[position // SIZE], [0] * SIZE)[position % SIZE] = token


def shape(plan: StepPlan) -> list[tuple[str, int, bool]]:
    return [(chunk.request_id, len(chunk.token_ids), chunk.samples) for chunk in plan.chunks]
