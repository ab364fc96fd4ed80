"""Ollama's protocol, by hand and with its Python client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import ollama
import pytest
from api_fakes import echoes, fails, fake_runtime, hangs, says
from api_processes import API_KEY, Server
from pydantic import BaseModel, ConfigDict, Field
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings
from formcast.engine.request import GenerationError

HELLO: dict[str, Any] = {"model": "fake", "messages": [{"role": "user", "content": "hello"}], "stream": False}
PROMPT: dict[str, Any] = {"model": "fake", "prompt": "hello", "stream": False}
BOTH = [("/api/chat", HELLO), ("/api/generate", PROMPT)]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def api(runtime: Runtime, **settings: Any) -> TestClient:
    app = create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",), **settings))
    return TestClient(app, raise_server_exceptions=False)


def text_of(answer: dict[str, Any]) -> str:
    return answer["message"]["content"] if "message" in answer else answer["response"]


@pytest.mark.parametrize(("path", "body"), BOTH)
def test_a_whole_answer(path: str, body: dict[str, Any]):
    answer = api(fake_runtime(says("hi"))).post(path, json=body).json()
    assert (text_of(answer), answer["model"], answer["done"], answer["done_reason"]) == ("hi", "fake", True, "stop")
    assert answer["eval_count"] == 2 and answer["prompt_eval_count"] > 0
    assert all(isinstance(answer[name], int) for name in ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"))


@pytest.mark.parametrize(("path", "body"), BOTH)
def test_answers_are_streamed_unless_told_otherwise(path: str, body: dict[str, Any]):
    asked = {name: value for name, value in body.items() if name != "stream"}
    answer = api(fake_runtime(says("hi", finish_reason="length"))).post(path, json=asked)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    *pieces, last = [json.loads(line) for line in answer.text.splitlines()]
    assert [text_of(piece) for piece in pieces] == ["h", "i"] and not any(piece["done"] for piece in pieces)
    assert (text_of(last), last["done"], last["done_reason"], last["eval_count"]) == ("", True, "length", 2)


@pytest.mark.parametrize(
    ("path", "body", "prompt"),
    [
        ("/api/chat", HELLO, "user: hello\nassistant:"),
        ("/api/generate", PROMPT, "user: hello\nassistant:"),
        ("/api/generate", PROMPT | {"system": "be"}, "system: be\nuser: hello\nassistant:"),
        ("/api/generate", PROMPT | {"raw": True}, "hello"),
    ],
)
def test_prompts(path: str, body: dict[str, Any], prompt: str):
    assert text_of(api(fake_runtime(echoes)).post(path, json=body).json()) == prompt


@pytest.mark.parametrize(("path", "body"), [("/api/chat", {"model": "fake"}), ("/api/generate", {"model": "fake", "prompt": ""})])
def test_an_empty_request_loads(path: str, body: dict[str, Any]):
    answer = api(fake_runtime(hangs())).post(path, json=body | {"keep_alive": "5m"}).json()
    assert (answer["done"], answer["done_reason"]) == (True, "load")


@pytest.mark.parametrize(("path", "body"), BOTH)
@pytest.mark.parametrize(("given", "admits", "refuses"), [("json", "{}", "[]"), (SCHEMA, '{"a": 1}', "{}")])
def test_formats(path: str, body: dict[str, Any], given: Any, admits: str, refuses: str):
    runtime = fake_runtime(says("{}"))
    assert api(runtime).post(path, json=body | {"format": given}).status_code == 200
    grammar = runtime.engine.submitted[0].grammar  # pyright: ignore[reportAttributeAccessIssue]
    assert grammar.accepts(admits) and not grammar.accepts(refuses)


def test_options_reach_the_engine():
    given = {"temperature": 0.5, "top_k": 3, "top_p": 0.5, "min_p": 0.1, "seed": 4, "stop": ["E"], "presence_penalty": 0.5}
    more = {"num_predict": 7, "repeat_penalty": 1.2, "num_ctx": 4096, "num_thread": 2, "mirostat": 0, "repeat_last_n": -1}
    runtime = fake_runtime(says("x"))
    assert api(runtime).post("/api/chat", json=HELLO | {"options": given | more}).status_code == 200
    params = runtime.engine.submitted[0].params  # pyright: ignore[reportAttributeAccessIssue]
    assert {name: getattr(params, name) for name in given} == given | {"stop": ("E",)}
    assert (params.max_tokens, params.repetition_penalty) == (7, 1.2)


def test_defaults_are_those_of_ollama():
    runtime = fake_runtime(says("x"))
    api(runtime).post("/api/chat", json=HELLO | {"options": {"num_predict": -1}})
    params = runtime.engine.submitted[0].params  # pyright: ignore[reportAttributeAccessIssue]
    assert (params.temperature, params.top_k, params.top_p, params.max_tokens) == (0.8, 40, 0.9, None)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"frmat": "json"}, "did you mean 'format'"),
    ({"format": "yaml"}, "'format'"),
    ({"format": 5}, "'format'"),
    ({"format": {"type": "objekt"}}, "/type"),
    ({"options": {"temprature": 1}}, "did you mean 'temperature'"),
    ({"options": {"temperature": -1}}, "options.temperature"),
    ({"options": {"num_predict": 0}}, "options.num_predict"),
    ({"options": {"num_predict": 1000}}, "options.num_predict"),
    ({"options": {"mirostat": 2}}, "options.mirostat"),
    ({"options": {"repeat_penalty": 1.1, "repeat_last_n": 64}}, "repeat_last_n"),
    ({"think": True}, "think"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"model": 5}, "model"),
]


@pytest.mark.parametrize(("given", "says_so"), BAD)
@pytest.mark.parametrize(("path", "body"), BOTH)
def test_bad_bodies(path: str, body: dict[str, Any], given: dict[str, Any], says_so: str):
    answer = api(fake_runtime(echoes)).post(path, json=body | given)
    assert answer.status_code == 400 and list(answer.json()) == ["error"]
    assert says_so in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "given", "says_so"),
    [
        ("/api/chat", {"tools": [{"type": "function"}]}, "tools"),
        ("/api/chat", {"messages": [{"role": "user", "content": "x", "tool_name": "f"}]}, "tool_name"),
        ("/api/chat", {"messages": [{"role": "user", "content": "x", "images": ["aaaa"]}]}, "images"),
        ("/api/generate", {"context": [1]}, "context"),
        ("/api/generate", {"suffix": "x"}, "suffix"),
        ("/api/generate", {"template": "x"}, "template"),
        ("/api/generate", {"raw": True, "system": "x"}, "system"),
    ],
)
def test_what_cannot_be_done(path: str, given: dict[str, Any], says_so: str):
    answer = api(fake_runtime(echoes)).post(path, json=dict(BOTH)[path] | given)
    assert answer.status_code == 400 and says_so in answer.json()["error"]


def test_errors_are_spelt_as_its_clients_read_them():
    runtime = fake_runtime(fails(GenerationError("boom")))
    assert api(runtime).post("/api/chat", json=HELLO | {"model": "other"}).status_code == 404
    assert api(runtime).post("/api/chat", json=HELLO).json() == {"error": "boom"}
    assert api(runtime).get("/api/nothing").json()["error"]
    assert isinstance(api(runtime, api_keys=("k",)).get("/api/tags").json()["error"], str)
    broken = api(fake_runtime(says("h", finish_reason="error", error=GenerationError("boom")))).post(
        "/api/chat", json=HELLO | {"stream": True}
    )
    assert json.loads(broken.text.splitlines()[-1]) == {"error": "boom"}


# --- the Python client -------------------------------------------------------------------------------------------------


class Pet(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=10)
    age: int = Field(ge=0, le=30)


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[ollama.Client]:
    with ollama.Client(host=server.url, headers={"authorization": f"Bearer {API_KEY}"}, timeout=120) as made:
        yield made


TALK = [{"role": "user", "content": "Tell me about a pet."}]
GREEDY = {"temperature": 0, "num_predict": 8}


def test_chat_and_generate(client: ollama.Client):
    answer = client.chat("small", TALK, options=GREEDY)
    assert answer.message.content and answer.done_reason == "length" and answer.eval_count == 8
    pieces = list(client.chat("small:latest", TALK, options=GREEDY, stream=True))
    assert "".join(piece.message.content or "" for piece in pieces) == answer.message.content
    assert pieces[-1].done
    written = client.generate("small", "Once", options=GREEDY)
    assert written.response
    assert "".join(piece.response or "" for piece in client.generate("small", "Once", options=GREEDY, stream=True)) == written.response


def test_structured_output(client: ollama.Client):
    answer = client.chat("small", TALK, format=Pet.model_json_schema(), options={"temperature": 0, "num_predict": 100})
    assert Pet.model_validate_json(answer.message.content or "")
    loose = client.generate("small", "JSON:", format="json", options={"seed": 1, "num_predict": 200, "temperature": 0.2})
    assert (loose.response or "").startswith("{")


def test_logprobs(client: ollama.Client):
    answer = client.generate("small", "Once", options={"num_predict": 2}, logprobs=True, top_logprobs=3)
    assert answer.logprobs and len(answer.logprobs) == 2
    assert all(entry.top_logprobs and len(entry.top_logprobs) == 3 for entry in answer.logprobs)


def test_models(client: ollama.Client):
    listed = client.list().models
    assert [model.model for model in listed] == ["small", "smollm2-135m"]
    assert listed[0].size and listed[0].details and listed[0].details.format == "gguf"
    shown = client.show("small")
    assert shown.template and shown.modelinfo and shown.modelinfo["general.parameter_count"] > 1e8
    assert shown.capabilities == ["completion", "tools"]
    assert client.ps().models[0].model == "small"


def test_refusals(client: ollama.Client):
    with pytest.raises(ollama.ResponseError, match="not served") as missing:
        client.chat("other", TALK)
    assert missing.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="/properties/a"):
        client.chat("small", TALK, format={"properties": {"a": {"type": "objekt"}}})
    with pytest.raises(ollama.ResponseError, match="/properties/a"):
        list(client.chat("small", TALK, format={"properties": {"a": {"type": "objekt"}}}, stream=True))


def test_async(server: Server):
    async def scenario() -> None:
        async with ollama.AsyncClient(host=server.url, headers={"authorization": f"Bearer {API_KEY}"}) as client:
            answer = await client.chat("small", TALK, options=GREEDY)
            stream = await client.chat("small", TALK, options=GREEDY, stream=True)
            assert "".join([piece.message.content or "" async for piece in stream]) == answer.message.content

    asyncio.run(scenario())
