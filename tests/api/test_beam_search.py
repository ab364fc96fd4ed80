"""Beam search over the Python API and the server: over scripts, and over a tiny engine of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from api_fakes import FakeEngine, FakeModel, fake_runtime, says
from engine_fakes import NUM_TOKENS, tiny_core
from engine_fakes import FakeModel as TinyModel
from starlette.testclient import TestClient

from formcast import BeamSearchParams, DeadlineExceeded, SamplingParams
from formcast.api.async_engine import AsyncLLM
from formcast.api.llm import LLM
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings
from formcast.engine.client import EngineClient
from formcast.engine.request import Beam, InvalidRequest, Request, RequestOutput
from formcast.fsm_cache import FsmCompiler, Vocabulary

CHAT, PLAIN = "/v1/chat/completions", "/v1/completions"
HELLO = {"messages": [{"role": "user", "content": "x"}], "use_beam_search": True}
PROMPT = {"prompt": "x", "use_beam_search": True}
BOTH = [(CHAT, HELLO), (PLAIN, PROMPT)]


def finds(*texts: str) -> Any:
    """A script: these answers, one beam each."""

    def script(request: Request) -> Iterator[RequestOutput]:
        beams = tuple(
            Beam(token_ids=tuple(text.encode()), text=text, logprob=-2.0 * rank, score=-1.0 * rank, finish_reason="stop")
            for rank, text in enumerate(texts)
        )
        yield RequestOutput(request_id=request.request_id, finish_reason="stop", beams=beams, num_prompt_tokens=2, num_cached_tokens=1)

    return script


def client(runtime: Runtime, **settings: Any) -> TestClient:
    return TestClient(create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",), **settings)))


def submitted(runtime: Runtime) -> list[Request]:
    assert isinstance(runtime.engine, FakeEngine)
    return runtime.engine.submitted


def test_answers_come_best_first_with_their_scores():
    model = LLM.over(fake_runtime(finds("yes", "no", "well")))
    results = model.beam_search(["a", "b"], BeamSearchParams(beam_width=3, max_tokens=5, length_penalty=0.5))
    assert [[output.text for output in result.outputs] for result in results] == [["yes", "no", "well"]] * 2
    best, second, _ = results[0].outputs
    assert (second.index, second.cumulative_logprob, second.score, second.finish_reason) == (1, -2.0, -1.0, "stop")
    assert best.token_ids == tuple(b"yes")
    requests = submitted(model.runtime)
    assert [request.beam_search for request in requests] == [BeamSearchParams(beam_width=3, max_tokens=5, length_penalty=0.5)] * 2
    assert (requests[0].params.n, requests[0].params.max_tokens) == (1, 5)


def test_values_are_read_from_each_answer():
    model = LLM.over(fake_runtime(finds('{"a": 1}', '{"a": 2}')))
    (result,) = model.beam_search("x", BeamSearchParams(beam_width=2), schema={"type": "object"})
    assert [output.parsed for output in result.outputs] == [{"a": 1}, {"a": 2}]


def test_fewer_answers_than_beams():
    (result,) = LLM.over(fake_runtime(finds("a", "b"))).beam_search("x", BeamSearchParams(beam_width=5))
    assert [output.text for output in result.outputs] == ["a", "b"]


def test_a_conversation_is_searched_too():
    model = LLM.over(fake_runtime(finds('{"a": 1}', "{}")))
    (result,) = model.chat([{"role": "user", "content": "x"}], BeamSearchParams(beam_width=2), schema={"type": "object"})
    assert [output.parsed for output in result.outputs] == [{"a": 1}, {}]


def test_the_same_on_an_event_loop():
    async def ask() -> list[str]:
        async with AsyncLLM(fake_runtime(finds("a", "b"))) as model:
            return [output.text for output in (await model.beam_search("x", BeamSearchParams(beam_width=2), regex="a|b")).outputs]

    assert asyncio.run(ask()) == ["a", "b"]


def test_each_prompt_may_have_params_of_its_own_kind():
    (searched, sampled) = LLM.over(fake_runtime(lambda request: finds("a", "b")(request) if request.beam_search else says("c")(request))).generate(
        ["x", "y"], [BeamSearchParams(beam_width=2), SamplingParams()]
    )
    assert [output.text for output in (*searched.outputs, *sampled.outputs)] == ["a", "b", "c"]


def test_beams_cannot_be_streamed():
    model: Any = LLM.over(fake_runtime(finds("a")))
    beams = BeamSearchParams(beam_width=2)
    for call in (model.stream, model.stream_chat):
        with pytest.raises(InvalidRequest, match="beam_search"):
            call([{"role": "user", "content": "x"}] if call == model.stream_chat else "x", beams)
    with pytest.raises(InvalidRequest, match="BeamSearchParams"):
        model.beam_search("x", SamplingParams())
    assert submitted(model.runtime) == []


def test_a_search_that_is_late_says_so():
    model = LLM.over(fake_runtime(lambda request: []))
    (result,) = model.beam_search("x", BeamSearchParams(beam_width=2, timeout=0.05))
    (output,) = result.outputs
    assert output.finish_reason == "error" and isinstance(output.error, DeadlineExceeded)


@pytest.mark.parametrize(("path", "body"), BOTH)
def test_n_is_the_width_and_the_number_of_choices(path: str, body: dict[str, Any]):
    runtime = fake_runtime(finds("yes", "no"))
    answer = client(runtime).post(path, json=body | {"n": 2, "max_tokens": 7, "length_penalty": 2, "temperature": 0.5, "ignore_eos": True})
    choices = answer.json()["choices"]
    assert [choice.get("text") or choice["message"]["content"] for choice in choices] == ["yes", "no"]
    assert [choice["index"] for choice in choices] == [0, 1]
    assert answer.json()["usage"]["completion_tokens"] == 5
    (request,) = submitted(runtime)
    assert request.beam_search == BeamSearchParams(beam_width=2, max_tokens=7, length_penalty=2, temperature=0.5, ignore_eos=True)


@pytest.mark.parametrize(("path", "body"), BOTH)
def test_a_width_of_its_own(path: str, body: dict[str, Any]):
    runtime = fake_runtime(finds("yes", "no", "well"))
    served = client(runtime)
    answer = served.post(path, json=body | {"n": 2, "beam_width": 8})
    assert len(answer.json()["choices"]) == 2 and submitted(runtime)[0].beam_search == BeamSearchParams(beam_width=8)
    assert 'request_success_total{finished_reason="stop",model_name="fake"} 2.0' in served.get("/metrics").text


def test_choices_that_do_not_exist_are_left_out_and_not_counted():
    served = client(fake_runtime(finds("only")))
    assert len(served.post(PLAIN, json=PROMPT | {"n": 4, "prompt": ["a", "b"]}).json()["choices"]) == 2
    assert 'request_success_total{finished_reason="abort",model_name="fake"} 0.0' in served.get("/metrics").text


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"stream": True}, "stream"),
    ({"top_p": 0.5}, "top_p"),
    ({"stop": "x"}, "stop"),
    ({"logit_bias": {"1": 2}}, "logit_bias"),
    ({"repetition_penalty": 1.2}, "repetition_penalty"),
    ({"min_tokens": 2}, "min_tokens"),
    ({"n": 3, "beam_width": 2}, "n"),
    ({"beam_width": 0}, "beam_width"),
    ({"beam_width": 2, "length_penalty": 1e9}, "length_penalty"),
    ({"beam_width": True}, "beam_width"),
]


@pytest.mark.parametrize(("given", "param"), REFUSED, ids=str)
@pytest.mark.parametrize(("path", "body"), BOTH)
def test_what_does_not_go_with_beams_is_refused(path: str, body: dict[str, Any], given: dict[str, Any], param: str):
    answer = client(fake_runtime(finds("a"))).post(path, json=body | given)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(("path", "more"), [(CHAT, {"logprobs": True}), (PLAIN, {"logprobs": 1})])
def test_log_probabilities_of_tokens_are_refused(path: str, more: dict[str, Any]):
    answer = client(fake_runtime(finds("a"))).post(path, json=dict(BOTH)[path] | more)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "logprobs")


@pytest.fixture(scope="module")
def tiny() -> Iterator[Runtime]:
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    vocabulary = Vocabulary(tokens + [None] * (NUM_TOKENS - 256), {256}, NUM_TOKENS)
    engine = EngineClient(tiny_core(FsmCompiler(vocabulary), TinyModel()))
    runtime = Runtime(
        model=FakeModel(bos_token_id=None, add_bos=False, vocab_size=NUM_TOKENS), engine=engine, max_model_len=256, max_waiting=64,
        token_bytes=lambda token: bytes([token % 256]), vocabulary=vocabulary,
    )  # fmt: skip
    yield runtime
    engine.close()


def test_an_engine_finds_the_texts_of_a_constraint(tiny: Runtime):
    body = PROMPT | {"n": 4, "beam_width": 8, "structured_outputs": {"choice": ["yes", "no", "maybe"]}}
    answer = client(tiny).post(PLAIN, json=body)
    assert sorted(choice["text"] for choice in answer.json()["choices"]) == ["maybe", "no", "yes"]
    (result,) = LLM.over(tiny).beam_search("x", BeamSearchParams(beam_width=8), choice=["yes", "no", "maybe"])
    assert [output.parsed for output in result.outputs] == [choice["text"] for choice in answer.json()["choices"]]


def test_more_beams_than_places_is_a_400(tiny: Runtime):
    answer = client(tiny).post(CHAT, json=HELLO | {"beam_width": 9})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "beam_width")


def test_the_header_ends_a_search_with_a_504(tiny: Runtime):
    answer = client(tiny).post(CHAT, json=HELLO | {"n": 4}, headers={"X-Request-Timeout": "0.000001"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "deadline_exceeded")
