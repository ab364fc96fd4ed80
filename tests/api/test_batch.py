from __future__ import annotations

import threading

import pytest
from api_fakes import FakeEngine, echoes, fails, fake_runtime, hangs, says

from formcast.api.batch import run_jobs
from formcast.api.jobs import Job
from formcast.api.prompts import Prompt
from formcast.api.session import Session
from formcast.engine.request import EngineOverloaded, GenerationError, Request, RequestOutput, SamplingParams
from formcast.grammar.errors import GrammarError


def job(text: str, n: int = 1, seed: int | None = None) -> Job:
    prompt = Prompt(text=text, token_ids=tuple(text.encode()), source="prompt")
    return Job(prompt=prompt, params=SamplingParams(n=n, seed=seed))


def test_results_come_in_the_order_of_the_prompts():
    texts = [f"prompt {number}" for number in range(20)]
    results = run_jobs(FakeEngine(echoes), [job(text) for text in texts], max_in_flight=3)
    assert [result.outputs[0].text for result in results] == texts
    assert [result.prompt for result in results] == texts


def test_each_of_n_answers_is_a_request_with_its_own_seed():
    engine = FakeEngine(echoes)
    (result,) = run_jobs(engine, [job("a", n=3, seed=7)], max_in_flight=8)
    assert [output.index for output in result.outputs] == [0, 1, 2]
    assert [request.params.seed for request in engine.submitted] == [7, 8, 9]


def test_a_full_queue_makes_the_batch_wait_not_fail():
    seen: list[int] = []
    engine = SlowEngine(max_live=2)
    results = run_jobs(engine, [job(str(number)) for number in range(10)], max_in_flight=100, report=seen.append)
    assert [result.outputs[0].text for result in results] == [str(number) for number in range(10)]
    assert seen == list(range(1, 11))


class SlowEngine(FakeEngine):
    """Answers on a thread, so that requests overlap; holds `max_live` at most."""

    def __init__(self, max_live: int):
        super().__init__(echoes)
        self._room = threading.Semaphore(max_live)

    def submit(self, request: Request, on_output) -> None:
        if not self._room.acquire(blocking=False):
            raise EngineOverloaded("full")

        def release_at_the_end(output: RequestOutput) -> None:
            if output.finished:
                self._room.release()
            on_output(output)

        threading.Thread(target=FakeEngine.submit, args=(self, request, release_at_the_end)).start()


def test_a_queue_filled_by_others_is_reported():
    engine = FakeEngine(hangs(), max_live=1)
    engine.submit(Request(request_id="other", prompt_token_ids=[1]), lambda output: None)
    with pytest.raises(EngineOverloaded):
        run_jobs(engine, [job("a")], max_in_flight=4)


def test_a_refused_constraint_raises_and_aborts_the_rest():
    engine = FakeEngine(lambda request: hangs()(request) if request.prompt_token_ids[0] == ord("a") else fails(GrammarError("no"))(request))
    with pytest.raises(GrammarError):
        run_jobs(engine, [job("a"), job("b")], max_in_flight=4)
    assert len(engine.aborted) == 1


def test_a_failure_stays_with_its_request():
    def script(request: Request):
        return fails(GenerationError("boom"))(request) if request.prompt_token_ids[0] == ord("b") else echoes(request)

    good, bad = run_jobs(FakeEngine(script), [job("a"), job("b")], max_in_flight=4)
    assert good.outputs[0].finish_reason == "stop"
    assert (bad.outputs[0].finish_reason, str(bad.outputs[0].error)) == ("error", "boom")


def test_leaving_a_session_aborts_what_runs():
    engine = FakeEngine(hangs("x"))
    with pytest.raises(KeyboardInterrupt), Session[int](engine) as session:
        session.submit(Request(request_id="r", prompt_token_ids=[1]), 0)
        raise KeyboardInterrupt
    assert engine.aborted == ["r"]


def test_a_finished_request_is_not_aborted():
    engine = FakeEngine(says("ok"))
    with Session[str](engine) as session:
        session.submit(Request(request_id="r", prompt_token_ids=[1]), "tag")
        outputs = []
        while session.num_live:
            outputs.append(session.next())
    assert [tag for tag, _ in outputs] == ["tag"] * 3
    assert engine.aborted == []


def test_the_runtime_closes_its_engine():
    runtime = fake_runtime(hangs())
    runtime.engine.submit(Request(request_id="r", prompt_token_ids=[1]), lambda output: None)
    runtime.close()
    runtime.close()
    assert runtime.engine.aborted == ["r"]  # pyright: ignore[reportAttributeAccessIssue]
