"""The real engine under random traffic: a few seconds with the slow tests, five minutes under `make soak`."""

from __future__ import annotations

import os
import random
import time
from collections import Counter

import pytest
from engine_fakes import NUM_TOKENS, FakeCompiler, Script, greedy, tiny_core

from formcast.engine.config import SpeculativeConfig
from formcast.engine.request import EngineOverloaded

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_SECONDS = 300 if os.environ.get("FORMCAST_HYPOTHESIS_PROFILE") == "soak" else 5


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


def test_random_traffic(caplog):
    rng = random.Random(int.from_bytes(os.urandom(4), "little") if _SECONDS > 5 else 3)
    compiler = FakeCompiler()
    core = tiny_core(compiler, block_size=4, kv_cache_memory_bytes=40 * 4 * 2 * 2 * 16 * 4, max_model_len=100, max_waiting=30,
                     max_num_batched_tokens=24, speculative=SpeculativeConfig(prompt_lookup_min=1))  # fmt: skip
    ended: Counter[str] = Counter()
    added = 0
    until = time.monotonic() + _SECONDS

    def count(outputs) -> None:
        ended.update(output.request_id for output in outputs if output.finished)

    while time.monotonic() < until or core.has_work:
        if time.monotonic() < until and rng.random() < 0.4:
            prompt = [rng.randrange(NUM_TOKENS) % rng.choice([3, 256]) for _ in range(rng.randrange(1, 60))]
            options = {"temperature": rng.choice([0.0, 1.0]), "max_tokens": rng.randrange(1, 40), "priority": rng.randrange(2)}
            try:
                core.add(greedy(str(added), prompt, grammar=_grammar(rng, compiler), **options))
                added += 1
            except EngineOverloaded:
                pass
        if added and rng.random() < 0.1:
            count(core.abort(str(rng.randrange(max(0, added - 40), added))))
        for grammar, future in list(compiler.futures.items()):
            if rng.random() < 0.2 or time.monotonic() >= until:
                del compiler.futures[grammar]
                if future.cancelled():
                    continue
                future.set_result(Script.literal(b"ok")) if rng.random() < 0.7 else future.set_exception(ValueError(grammar))
        if core.has_work and (core.stats.num_running + core.stats.num_waiting or not compiler.futures):
            count(core.step())
        usage = core.stats.kv
        assert usage.free + usage.held + usage.cached == usage.total
    assert set(ended.values()) <= {1} and len(ended) == added == core.stats.num_finished
    assert core.stats.kv.held == 0 and core.stats.num_accepted_tokens > 0
