from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from engine_fakes import Answer, FakeCompiler, Script, greedy, tiny_core

from formcast.engine.client import EngineClient
from formcast.engine.request import EngineOverloaded, EngineStopped, GenerationError, InvalidRequest, RequestOutput
from formcast.grammar.errors import GrammarError


class Inbox:
    """Collects the outputs of requests, and waits for their last ones."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self._changed = threading.Condition()

    def __call__(self, output: RequestOutput) -> None:
        with self._changed:
            self.answers.setdefault(output.request_id, Answer()).outputs.append(output)
            self._changed.notify_all()

    def wait(self, *request_ids: str, started: bool = False) -> list[Answer]:
        def arrived() -> bool:
            return all(i in self.answers and (started or self.answers[i].last.finished) for i in request_ids)

        with self._changed:
            assert self._changed.wait_for(arrived, timeout=60)
            return [self.answers[request_id] for request_id in request_ids]


@contextmanager
def client(compiler: FakeCompiler | None = None, **config: Any) -> Iterator[EngineClient]:
    made = EngineClient(tiny_core(compiler, **config))
    try:
        yield made
    finally:
        made.close()


def test_answers_come_from_the_engines_thread():
    threads = set()
    inbox = Inbox()

    def receive(output: RequestOutput) -> None:
        threads.add(threading.current_thread().name)
        inbox(output)

    with client() as engine:
        engine.submit(greedy("a", b"x"), receive)
        engine.submit(greedy("b", b"y", grammar=Script.literal(b"ok")), receive)
        first, second = inbox.wait("a", "b")
    assert first.last.num_generated_tokens == 16 and second.text == "ok"
    assert threads == {"formcast-engine"}


def test_many_threads_can_submit_at_once():
    inbox = Inbox()
    with client() as engine:
        workers = [
            threading.Thread(target=lambda i=i: [engine.submit(greedy(f"{i}.{j}", b"x"), inbox) for j in range(5)]) for i in range(4)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        answers = inbox.wait(*(f"{i}.{j}" for i in range(4) for j in range(5)))
    assert {answer.token_ids for answer in answers} == {answers[0].token_ids}
    assert all(answer.num_terminal == 1 for answer in answers)


def test_a_request_that_can_never_be_served_is_refused_at_once():
    with client(FakeCompiler()) as engine:
        with pytest.raises(InvalidRequest):
            engine.submit(greedy("r", b""), Inbox())
        inbox = Inbox()
        engine.submit(greedy("r", b"x", grammar="never"), inbox)
        with pytest.raises(InvalidRequest, match="in use"):
            engine.submit(greedy("r", b"x"), inbox)


def test_too_many_open_requests_are_refused():
    compiler, inbox = FakeCompiler(), Inbox()
    with client(compiler, max_num_seqs=1, max_waiting=2) as engine:
        for index in range(3):
            engine.submit(greedy(str(index), b"x", grammar=f"never {index}"), inbox)
        with pytest.raises(EngineOverloaded):
            engine.submit(greedy("one too many", b"x"), inbox)


def test_abort_ends_a_request_that_waits_for_its_grammar():
    compiler, inbox = FakeCompiler(), Inbox()
    with client(compiler) as engine:
        engine.submit(greedy("stuck", b"x", grammar="never"), inbox)
        engine.abort("stuck")
        engine.abort("unknown")
        (answer,) = inbox.wait("stuck")
    assert (answer.last.finish_reason, answer.num_terminal) == ("abort", 1)


def test_a_grammar_that_fails_late_wakes_the_engine():
    compiler, inbox = FakeCompiler(), Inbox()
    with client(compiler) as engine:
        engine.submit(greedy("bad", b"x", grammar="late"), inbox)
        engine.submit(greedy("free", b"x"), inbox)
        inbox.wait("free")
        compiler.futures["late"].set_exception(GrammarError("unsupported"))
        (answer,) = inbox.wait("bad")
    assert isinstance(answer.last.error, GrammarError)


def test_close_ends_everything_once():
    compiler, inbox = FakeCompiler(), Inbox()
    with client(compiler) as engine:
        engine.submit(greedy("stuck", b"x", grammar="never"), inbox)
        engine.submit(greedy("running", b"x", max_tokens=200), inbox)
        inbox.wait("running", started=True)
        engine.close()
        assert [answer.num_terminal for answer in inbox.wait("stuck", "running")] == [1, 1]
        with pytest.raises(EngineStopped):
            engine.submit(greedy("late", b"x"), inbox)
        engine.abort("running")


def test_a_receiver_that_raises_loses_its_own_request_only(caplog):
    inbox = Inbox()

    def broken(output: RequestOutput) -> None:
        raise ValueError("receiver")

    with client() as engine:
        engine.submit(greedy("broken", b"x", max_tokens=100), broken)
        engine.submit(greedy("fine", b"x"), inbox)
        (answer,) = inbox.wait("fine")
        engine.submit(greedy("broken", b"x"), inbox)
        inbox.wait("broken")
    assert answer.last.finish_reason == "length"


def test_an_engine_that_fails_tells_everyone(caplog):
    inbox = Inbox()
    core = tiny_core()

    class BrokenCore:
        """A core whose second step has a bug outside of any request."""

        steps = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(core, name)

        def step(self) -> list[RequestOutput]:
            self.steps += 1
            if self.steps == 2:
                raise ZeroDivisionError("a bug")
            return core.step()

    engine = EngineClient(BrokenCore())  # type: ignore[arg-type]
    engine.submit(greedy("a", b"x", max_tokens=100), inbox)
    (answer,) = inbox.wait("a")
    assert answer.last.finish_reason == "error" and isinstance(answer.last.error, GenerationError)
    engine.close()
    with pytest.raises(EngineStopped, match="failed"):
        engine.submit(greedy("b", b"x"), inbox)


def test_stats_follow_the_engine():
    inbox = Inbox()
    with client() as engine:
        engine.submit(greedy("a", b"x"), inbox)
        inbox.wait("a")
    stats = engine.stats()
    assert (stats.num_finished, stats.num_generated_tokens, stats.num_running) == (1, 16, 0)
    assert stats.kv.free + stats.kv.held + stats.kv.cached == stats.kv.total


def test_alive_until_closed_or_failed():
    engine = EngineClient(tiny_core())
    assert engine.alive
    engine.close()
    assert not engine.alive
