"""`LLM` and `AsyncLLM` over an engine that plays scripts."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import pytest
from api_fakes import FakeEngine, echoes, fails, fake_runtime, hangs, says
from pydantic import BaseModel, field_validator

from formcast.api.async_engine import AsyncLLM
from formcast.api.constraints import ConstraintError
from formcast.api.llm import LLM
from formcast.api.prompts import ContextLengthExceeded
from formcast.engine.request import InvalidRequest, SamplingParams
from formcast.grammar import cancellation
from formcast.grammar.errors import GrammarError
from formcast.grammar.grammar import Grammar

HELLO = {"role": "user", "content": "x"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Fruit(BaseModel):
    name: str
    grams: int

    @field_validator("name")
    @classmethod
    def known(cls, name: str) -> str:
        if name == "stone":
            raise ValueError("a stone is no fruit")
        return name


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int


def llm(script: Any, **runtime: Any) -> LLM:
    return LLM.over(fake_runtime(script, **runtime))


def submitted(model: LLM) -> list[Any]:
    assert isinstance(model.runtime.engine, FakeEngine)
    return model.runtime.engine.submitted


def test_one_prompt_is_a_list_of_one():
    (result,) = llm(says("hi")).generate("hello")
    assert (result.prompt, result.prompt_token_ids) == ("hello", (256, *b"hello"))
    (answer,) = result.outputs
    assert (answer.text, answer.token_ids, answer.finish_reason) == ("hi", tuple(b"hi"), "stop")
    assert (answer.parsed, answer.parse_error, answer.error) == (None, None, None)


def test_many_prompts_keep_their_order():
    results = llm(echoes).generate(["a", "b", [99, 100]])  # pyright: ignore[reportArgumentType]
    assert [result.outputs[0].text for result in results] == ["a", "b", "cd"]
    assert results[2].prompt is None


def test_token_ids_are_one_prompt_and_get_no_begin_token():
    (result,) = llm(echoes).generate([104, 105])
    assert (result.prompt_token_ids, result.outputs[0].text) == ((104, 105), "hi")


def test_a_model_without_begin_token():
    assert llm(echoes, add_bos=False).generate("a")[0].prompt_token_ids == (97,)


def test_no_prompts_no_results():
    assert llm(echoes).generate([]) == []


def test_params_for_each_prompt():
    model = llm(echoes)
    model.generate(["a", "b"], [SamplingParams(max_tokens=1), SamplingParams(max_tokens=2)])
    assert [request.params.max_tokens for request in submitted(model)] == [1, 2]
    with pytest.raises(ValueError, match="2 prompts, but 1 sampling_params"):
        model.generate(["a", "b"], [SamplingParams()])


def test_chat_of_one_and_of_many_conversations():
    turn = {"role": "user", "content": "hello"}
    assert llm(echoes).chat([turn])[0].outputs[0].text == "user: hello\nassistant:"
    assert len(llm(echoes).chat([[turn], [turn]])) == 2
    assert llm(echoes).chat([]) == []


def test_a_model_without_template_cannot_chat():
    with pytest.raises(InvalidRequest, match="no chat template"):
        llm(echoes, chat_template=None).chat([{"role": "user", "content": "x"}])


@pytest.mark.parametrize(
    ("constraint", "text", "parsed"),
    [
        ({"schema": SCHEMA}, '{"a": 1}', {"a": 1}),
        ({"schema": Fruit}, '{"name": "fig", "grams": 5}', Fruit(name="fig", grams=5)),
        ({"choice": ["yes", "no"]}, "no", "no"),
        ({"regex": "a+"}, "aaa", None),
        ({"grammar": Grammar.lark('start: "[" start "]" | "1"')}, "[[1]]", None),
        ({"grammar": Grammar.gbnf('root ::= "[" root "]" | "1"')}, "[[1]]", None),
        ({"grammar": Grammar.ebnf("root ::= '[' root ']' | '1'")}, "[[1]]", None),
        ({"structural_tag": {"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": ">"}}, "<a>", None),
        ({"output_type": list[int]}, "[1, 2]", [1, 2]),
        ({"output_type": Colour}, '"red"', Colour.RED),
        ({"output_type": Point}, '{"x": 1, "y": 2}', Point(1, 2)),
        ({"output_type": Fruit}, '{"name": "fig", "grams": 5}', Fruit(name="fig", grams=5)),
    ],
)
def test_answers_are_parsed(constraint: dict[str, Any], text: str, parsed: Any):
    answer = llm(says(text)).generate("x", **constraint)[0].outputs[0]
    assert answer.parsed == parsed
    assert type(answer.parsed) is type(parsed)
    assert answer.parse_error is None


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        ({"schema": SCHEMA}, '{"a": '),
        ({"schema": {"type": "integer", "minimum": 10}}, "1"),
        ({"schema": Fruit}, '{"name": "fi'),
        ({"choice": ["yes", "no"]}, "ye"),
    ],
)
def test_a_cut_answer_has_no_value_and_says_why(constraint: dict[str, Any], text: str):
    answer = llm(says(text, finish_reason="length")).generate("x", **constraint)[0].outputs[0]
    assert answer.parsed is None
    assert "length" in (answer.parse_error or "")


def test_an_answer_complete_at_its_last_token_has_a_value():
    answer = llm(says('{"a": 1}', finish_reason="length")).generate("x", schema=SCHEMA)[0].outputs[0]
    assert (answer.parsed, answer.finish_reason) == ({"a": 1}, "length")


def test_a_validator_that_no_schema_can_say_leaves_no_value():
    answer = llm(says('{"name": "stone", "grams": 5}')).generate("x", schema=Fruit)[0].outputs[0]
    assert answer.parsed is None
    assert "a stone is no fruit" in (answer.parse_error or "")


@pytest.mark.parametrize(
    "given",
    [
        {"schema": SCHEMA, "grammar": Grammar.lark('start: "a"')},
        {"schema": SCHEMA, "regex": "a"},
        {"choice": ["a"], "output_type": int},
        {"schema": True, "choice": ["a"], "regex": "b"},
    ],
)
def test_two_constraints_are_refused_by_name(given: dict[str, Any]):
    model = llm(echoes)
    with pytest.raises(ValueError) as caught:
        model.generate("x", **given)
    assert all(f"'{name}'" in str(caught.value) for name in given)
    assert submitted(model) == []


@pytest.mark.parametrize("given", [{"choice": "yes"}, {"grammar": "root ::= x"}])
def test_arguments_of_the_wrong_kind(given: dict[str, Any]):
    with pytest.raises(ConstraintError):
        llm(echoes).generate("x", **given)


def test_a_constraint_that_cannot_be_enforced_raises():
    with pytest.raises(GrammarError):
        llm(echoes).generate("x", regex="(")
    with pytest.raises(GrammarError, match="late"):
        llm(fails(GrammarError("late"))).generate("x", regex="a")


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "param"), [("x" * 300, None, "prompt"), ("x", 256, "max_tokens"), ("x" * 255, None, "prompt")]
)
def test_what_cannot_fit_is_refused(prompt: str, max_tokens: int | None, param: str):
    model = llm(echoes, max_model_len=256)
    with pytest.raises(ContextLengthExceeded) as caught:
        model.generate(["fine", prompt], SamplingParams(max_tokens=max_tokens))
    assert caught.value.param == param
    assert submitted(model) == []


@pytest.mark.parametrize("prompt", [[300], [-1], "\ud800"])
def test_prompts_that_are_none(prompt: Any):
    with pytest.raises(InvalidRequest):
        llm(echoes).generate(prompt)


def test_progress_is_reported():
    seen: list[tuple[int, int]] = []
    llm(echoes).generate(["a", "b"], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


def test_the_context_manager_closes():
    with llm(hangs()) as model:
        pass
    with pytest.raises(Exception, match="closed"):
        model.generate("x")


def test_more_than_one_device_is_refused():
    with pytest.raises(InvalidRequest, match="tensor_parallel_size=2"):
        LLM("smollm2-135m", tensor_parallel_size=2)


def test_async_deltas_end_with_the_whole_answer():
    async def scenario() -> list[Any]:
        model = AsyncLLM(fake_runtime(says('{"a": 1}')))
        return [delta async for delta in model.generate("x", schema=SCHEMA)]

    *deltas, last = asyncio.run(scenario())
    assert "".join(delta.text for delta in deltas) == '{"a": 1}'
    assert all(delta.result is None for delta in deltas)
    assert last.result.parsed == {"a": 1}


def test_async_chat():
    async def scenario() -> str:
        model = AsyncLLM(fake_runtime(echoes))
        return "".join([delta.text async for delta in model.chat([{"role": "user", "content": "x"}])])

    assert asyncio.run(scenario()) == "user: x\nassistant:"


def test_cancelling_an_async_generation_aborts_it():
    async def scenario() -> FakeEngine:
        model = AsyncLLM(fake_runtime(hangs("a")))
        engine = model.runtime.engine
        assert isinstance(engine, FakeEngine)
        started = asyncio.Event()

        async def consume() -> None:
            async for _ in model.generate("x"):
                started.set()

        task = asyncio.create_task(consume())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return engine

    engine = asyncio.run(scenario())
    assert engine.aborted == [engine.submitted[0].request_id]


def test_leaving_an_async_generation_aborts_it():
    async def scenario() -> FakeEngine:
        model = AsyncLLM(fake_runtime(hangs("abc")))
        stream = model.generate("x", SamplingParams(n=2))
        await anext(stream)
        await stream.aclose()
        assert isinstance(model.runtime.engine, FakeEngine)
        return model.runtime.engine

    assert len(asyncio.run(scenario()).aborted) == 2


class Heavy(BaseModel):
    """A class whose schema, and whose values, are made by `work`."""

    work: ClassVar[Any] = None

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        cls.work()
        return {"type": "object"}

    @classmethod
    def model_validate_json(cls, *args: Any, **kwargs: Any) -> Any:
        cls.work()
        return cls()


async def beat(heart: threading.Semaphore) -> None:
    """Beats as long as the loop runs."""
    while True:
        heart.release()
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("ask", [lambda model: model.generate("x", schema=Heavy), lambda model: model.chat([HELLO], schema=Heavy)])
def test_the_loop_goes_on_while_a_schema_is_read_and_a_value_is_made(ask: Any, monkeypatch: pytest.MonkeyPatch):
    heart = threading.Semaphore(0)
    num_works: list[int] = []

    def waits_for_the_loop() -> None:
        while heart.acquire(blocking=False):
            pass
        for _ in range(10):
            assert heart.acquire(timeout=60), "the loop stands still"
        num_works.append(1)

    async def scenario() -> Any:
        heartbeat = asyncio.create_task(beat(heart))
        *_, last = [delta async for delta in ask(AsyncLLM(fake_runtime(says("{}"))))]
        heartbeat.cancel()
        return last.result

    monkeypatch.setattr(Heavy, "work", staticmethod(waits_for_the_loop))
    assert isinstance(asyncio.run(scenario()).parsed, Heavy)
    assert len(num_works) == 2


def test_a_schema_that_nobody_waits_for_is_read_no_further(monkeypatch: pytest.MonkeyPatch):
    started, stopped = threading.Event(), threading.Event()

    def endless() -> None:
        started.set()
        try:
            while True:
                cancellation.check()
        except cancellation.Cancelled:
            stopped.set()
            raise

    async def scenario() -> FakeEngine:
        model = AsyncLLM(fake_runtime(echoes))
        task = asyncio.create_task(anext(model.generate("x", schema=Heavy)))
        await asyncio.to_thread(started.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(model.runtime.engine, FakeEngine)
        return model.runtime.engine

    monkeypatch.setattr(Heavy, "work", staticmethod(endless))
    assert asyncio.run(scenario()).submitted == []
    assert stopped.wait(60)


def test_a_stream_ends_with_the_whole_answer():
    llm = LLM.over(fake_runtime(says('{"a": 1}')))
    *deltas, last = llm.stream("x", schema=SCHEMA)
    assert "".join(delta.text for delta in deltas) == '{"a": 1}'
    assert all(delta.result is None for delta in deltas)
    assert last.result is not None and last.result.parsed == {"a": 1}
    two = [delta.index for delta in llm.stream("x", SamplingParams(n=2)) if delta.result is not None]
    assert sorted(two) == [0, 1]


def test_a_chat_can_be_streamed_within_a_running_event_loop():
    async def notebook() -> str:
        return "".join(delta.text for delta in LLM.over(fake_runtime(echoes)).stream_chat([{"role": "user", "content": "x"}]))

    assert asyncio.run(notebook()) == "user: x\nassistant:"


def test_leaving_a_stream_aborts_it():
    runtime = fake_runtime(hangs("abc"))
    stream = LLM.over(runtime).stream("x")
    assert next(stream).text == "a"
    stream.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert len(runtime.engine.aborted) == 1  # pyright: ignore[reportAttributeAccessIssue]


def test_a_stream_that_cannot_be_served_is_refused_at_once():
    with pytest.raises(InvalidRequest):
        LLM.over(fake_runtime(echoes)).stream("x", SamplingParams(max_tokens=1000))
