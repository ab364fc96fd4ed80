"""Requests with a deadline: they end when it passes, wherever they are, and take nothing from the others."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import pytest
from engine_fakes import FakeCompiler, FakeModel, Script, drain, greedy, tiny_core

from formcast.engine.config import EngineConfig
from formcast.engine.core import EngineCore
from formcast.engine.deadlines import Deadlines
from formcast.engine.request import DeadlineExceeded, InvalidRequest, Request, SamplingParams, expand


def due(request: Request, at: float) -> Request:
    """The request, arrived at 0 on the clock and due at a time."""
    return replace(request, arrival_time=0.0, params=replace(request.params, timeout=at))


class Timed:
    """A core whose clock counts its steps."""

    def __init__(self, compiler: FakeCompiler | None = None, **config):
        settings = {"max_num_seqs": 8, "kv_cache_memory_bytes": 1 << 20, "seed": 0, **config}
        self.now = 0.0
        self.core = EngineCore(FakeModel(), EngineConfig(**settings), compiler or FakeCompiler(), clock=lambda: self.now)

    def drain(self, *requests: Request):
        return drain(self.core, requests, before_step=self.at)

    def at(self, step: int) -> None:
        self.now = float(step)


@pytest.mark.parametrize("overlap", [False, True], ids=["plain", "overlapped"])
def test_a_running_request_ends_with_the_step_after_its_deadline(overlap):
    timed = Timed(async_scheduling=overlap)
    done = timed.drain(due(greedy("late", b"x"), 4), greedy("other", b"y"))
    assert isinstance(done["late"].last.error, DeadlineExceeded) and done["late"].last.finish_reason == "error"
    assert done["late"].last.error.timeout == 4 and "4 s" in str(done["late"].last.error)
    assert len(done["late"].token_ids) == (3 if overlap else 4) and done["late"].num_terminal == 1
    assert done["other"].token_ids == drain(tiny_core(), [greedy("other", b"y")])["other"].token_ids
    assert timed.core.stats.num_failed == 1


def test_a_request_in_time_is_untouched():
    done = Timed().drain(due(greedy("r", b"x"), 17))
    assert done["r"].last.finish_reason == "length" and len(done["r"].token_ids) == 16


def test_one_that_waits_for_a_place_never_starts():
    timed = Timed(max_num_seqs=1)
    done = timed.drain(greedy("first", b"x"), due(greedy("late", b"y"), 3))
    assert done["late"].token_ids == () and isinstance(done["late"].last.error, DeadlineExceeded)
    assert timed.core.stats.num_prompt_tokens == 1


def test_one_that_is_late_when_it_comes_costs_no_step():
    timed = Timed()
    timed.now = 9.0
    timed.core.add(due(greedy("late", b"x"), 5))
    assert [output.finish_reason for output in timed.core.step()] == ["error"]
    assert not timed.core.has_work and timed.core.stats.num_steps == 0


def test_one_that_waits_for_its_grammar_ends_and_nobody_compiles_on():
    compiler = FakeCompiler()
    timed = Timed(compiler)
    done = timed.drain(due(greedy("late", b"x", grammar="slow"), 3), greedy("other", b"y"))
    assert isinstance(done["late"].last.error, DeadlineExceeded)
    assert [future.cancelled() for future in compiler.waiting["slow"]] == [True]


def test_a_step_that_sleeps_for_grammars_wakes_at_the_deadline():
    core = tiny_core()
    core.add(greedy("late", b"x", grammar="slow", timeout=0.05))
    outputs = []
    thread = threading.Thread(target=lambda: outputs.extend([*core.step(), *core.step()]), daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert [isinstance(output.error, DeadlineExceeded) for output in outputs] == [True]


def test_all_answers_to_one_prompt_have_one_deadline():
    done = Timed().drain(*expand(due(greedy("r", b"x", n=3, temperature=1.0), 5)))
    assert [type(done[f"r#{index}"].last.error) for index in range(3)] == [DeadlineExceeded] * 3


def test_a_constrained_answer_that_is_cut_is_an_error_and_no_end():
    done = Timed(draft_from_grammar=False).drain(due(greedy("r", b"x", grammar=Script.literal(b"hello")), 3))
    assert (done["r"].text, done["r"].last.finish_reason) == ("hel", "error")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "5", True])
def test_a_timeout_is_a_positive_number(timeout):
    with pytest.raises(InvalidRequest) as caught:
        SamplingParams(timeout=timeout)
    assert caught.value.param == "timeout"


def test_deadlines_are_those_of_a_plain_list():
    rng = random.Random(0)
    deadlines, expected, now = Deadlines(), {}, 0.0
    for number in range(3_000):
        deadlines.add(str(number), now + rng.random() * 50)
        expected[str(number)] = deadlines._open[str(number)]
        if rng.random() < 0.5:
            gone = rng.choice([*expected, "nobody"])
            deadlines.discard(gone)
            expected.pop(gone, None)
        now += rng.random()
        over = sorted((at, name) for name, at in expected.items() if at <= now)
        assert deadlines.expired(now) == [name for _, name in over]
        for _, name in over:
            del expected[name]
        assert len(deadlines) == len(expected) and len(deadlines._heap) <= 2 * len(expected) + 65
    assert deadlines.until_next(1e9) == 0.0
    assert Deadlines().until_next(0.0) is None
