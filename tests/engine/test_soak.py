"""The real engine under random traffic: a few seconds with the slow tests, five minutes under `make soak`."""

from __future__ import annotations

import logging
import os
import random
import time
from collections import Counter
from dataclasses import replace

import pytest
from engine_fakes import NUM_TOKENS, SPECIAL, FakeCompiler, FakeModel, Poisoned, Script, greedy, tiny_core

from formcast.engine.config import SpeculativeConfig
from formcast.engine.core import EngineCore
from formcast.engine.request import Beam, BeamSearchParams, DeadlineExceeded, EngineOverloaded, Request, RequestOutput, expand

BROKEN = 255
"""The token after which logits are not numbers. After SPECIAL the model raises."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_SECONDS = float(os.environ.get("FORMCAST_SOAK_SECONDS", "300")) if os.environ.get("FORMCAST_HYPOTHESIS_PROFILE") == "soak" else 5


def _grammar(rng: random.Random, compiler: FakeCompiler) -> object:
    """None, a script that works, fails on the way or is a dead end, or something that is never compiled or refused later."""
    length = rng.randrange(1, 12)
    allowed = tuple(frozenset(rng.sample(range(256), rng.choice([1, 1, 2, 9]))) for _ in range(length))
    kind = rng.randrange(8)
    if kind < 3:
        return None
    if kind < 6:
        return Script(allowed)
    return Script(allowed, error_at=rng.randrange(length), error=ZeroDivisionError()) if kind == 6 else f"pending {rng.random()}"


def _search(rng: random.Random, request: Request) -> Request:
    """The same prompt and grammar for a beam search."""
    beams = BeamSearchParams(
        beam_width=rng.randrange(1, 9), max_tokens=request.params.max_tokens, ignore_eos=rng.random() < 0.5,
        length_penalty=rng.choice([0.0, 1.0, -1.0]), timeout=request.params.timeout,
    )  # fmt: skip
    return replace(request, params=beams.sampling_params(), beam_search=beams)


class Traffic:
    """A core under requests that come, go, fail and run out of room at random, and what is true of it after each step."""

    def __init__(self, rng: random.Random, *, overlap: bool):
        self.rng = rng
        self.compiler = FakeCompiler()
        self.core: EngineCore = tiny_core(
            self.compiler, FakeModel(module=Poisoned(nan_after=BROKEN, raise_after=SPECIAL)), block_size=4, max_model_len=100,
            kv_cache_memory_bytes=40 * 4 * 2 * 2 * 16 * 4, max_waiting=30, max_num_batched_tokens=24, async_scheduling=overlap,
            speculative=SpeculativeConfig(prompt_lookup_min=1),
        )  # fmt: skip
        self.ended: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.added: list[str] = []
        self.requests: dict[str, Request] = {}  # that are open
        self.num_late = self.num_beams = 0

    def add(self) -> None:
        rng = self.rng
        prompt = [rng.randrange(NUM_TOKENS if rng.random() < 0.02 else 255) % rng.choice([3, 1000]) for _ in range(rng.randrange(1, 60))]
        params = {
            "n": rng.choice([1, 1, 1, 4]), "temperature": rng.choice([0.0, 1.0]), "max_tokens": rng.randrange(1, 40),
            "stop": rng.choice([(), ("a", "bc")]), "repetition_penalty": rng.choice([1.0, 1.3]), "min_tokens": rng.choice([0, 1]),
            "logit_bias": rng.choice([{}, {SPECIAL: -100.0, BROKEN: -100.0}]), "timeout": rng.choice([None] * 9 + [rng.random() / 5]),
        }  # fmt: skip
        request = greedy(str(len(self.added)), prompt, grammar=_grammar(rng, self.compiler), priority=rng.randrange(2), **params)
        request = replace(request, cache_salt=rng.choice([None, "salt"]))
        if rng.random() < 0.25:
            request = _search(rng, request)
        for part in expand(request):
            self._submit(part)

    def _submit(self, request: Request) -> None:
        try:
            self.core.add(request)
            self.added.append(request.request_id)
            self.requests[request.request_id] = request
        except EngineOverloaded:
            pass

    def abort(self) -> None:
        if self.added:
            self._count(self.core.abort(self.rng.choice(self.added[-40:])))

    def compile(self, share: float) -> None:
        """Ends some of the compilations, well or not."""
        for grammar, future in list(self.compiler.futures.items()):
            if self.rng.random() < share:
                del self.compiler.futures[grammar]
                if self.rng.random() < 0.7:
                    future.set_result(Script.literal(b"ok"))
                else:
                    future.set_exception(ValueError(grammar))

    def step(self) -> None:
        if self.core.has_work and (self.core.stats.num_running + self.core.stats.num_waiting or not self.compiler.futures):
            self._count(self.core.step())
        usage = self.core.stats.kv
        assert usage.free + usage.held + usage.cached == usage.total

    def _check(self, request_id: str, beam: Beam) -> None:
        """An answer of a search obeys its grammar, and is whole unless it is as long as may be."""
        request = self.requests[request_id]
        if isinstance(request.grammar, Script):
            cursor = request.grammar.cursor()
            assert all(cursor.advance(token_id) for token_id in beam.token_ids)
            assert cursor.finished == (beam.finish_reason == "stop")
        assert (beam.finish_reason == "length") <= (len(beam.token_ids) == request.params.max_tokens)

    def _count(self, outputs: list[RequestOutput]) -> None:
        for output in outputs:
            assert output.request_id not in self.ended
            if output.finished:
                self.ended[output.request_id] += 1
                self.reasons[str(output.finish_reason)] += 1
                self.num_late += isinstance(output.error, DeadlineExceeded)
                self.num_beams += len(output.beams)
                for beam in output.beams:
                    self._check(output.request_id, beam)


@pytest.mark.parametrize("overlap", [False, True], ids=["", "overlap"])
def test_random_traffic(overlap):
    logging.getLogger("formcast").setLevel(logging.CRITICAL)
    traffic = Traffic(random.Random(int.from_bytes(os.urandom(4), "little") if _SECONDS > 5 else 3), overlap=overlap)
    until = time.monotonic() + _SECONDS / 2
    while time.monotonic() < until or traffic.core.has_work:
        is_over = time.monotonic() >= until
        if not is_over and traffic.rng.random() < 0.4:
            traffic.add()
        if traffic.rng.random() < 0.1:
            traffic.abort()
        traffic.compile(1.0 if is_over else 0.2)
        traffic.step()
    stats = traffic.core.stats
    assert set(traffic.ended.values()) == {1} and len(traffic.ended) == len(set(traffic.added)) == stats.num_finished
    assert traffic.core._sources == {} and min(traffic.num_late, traffic.num_beams) > 0
    assert stats.kv.held == 0 and stats.num_accepted_tokens > 0 and stats.num_preemptions > 0
    assert set(traffic.reasons) == {"stop", "length", "abort", "error"}
