"""TGI's protocol, by hand and with Hugging Face's client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from api_fakes import echoes, fails, fake_runtime, hangs, says
from api_processes import API_KEY, Server
from huggingface_hub import InferenceClient, constants
from huggingface_hub.errors import OverloadedError, ValidationError
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings
from formcast.engine.request import GenerationError

BODY: dict[str, Any] = {"inputs": "hello"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


def api(runtime: Runtime) -> TestClient:
    app = create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",)))
    return TestClient(app, raise_server_exceptions=False)


def ask(runtime: Runtime, **parameters: Any) -> Any:
    return api(runtime).post("/generate", json=BODY | {"parameters": parameters})


def test_a_whole_answer():
    assert api(fake_runtime(says("hi"))).post("/generate", json=BODY).json() == {"generated_text": "hi"}
    assert ask(fake_runtime(says("hi")), return_full_text=True).json() == {"generated_text": "hellohi"}
    assert api(fake_runtime(echoes)).post("/", json=BODY | {"parameters": None}).json() == {"generated_text": "hello"}


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({"finish_reason": "stop"}, "eos_token"),
        ({"finish_reason": "length"}, "length"),
        ({"finish_reason": "stop", "stop_reason": "E"}, "stop_sequence"),
    ],
)
def test_details(end: dict[str, Any], reason: str):
    details = ask(fake_runtime(says("hi", **end)), details=True, seed=5).json()["details"]
    assert (details["finish_reason"], details["generated_tokens"], details["seed"]) == (reason, 2, 5)


@pytest.mark.parametrize(("path", "body"), [("/generate_stream", BODY), ("/", BODY | {"stream": True})])
def test_a_stream_ends_with_the_text(path: str, body: dict[str, Any]):
    answer = api(fake_runtime(says("hi"))).post(path, json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    last = json.loads(answer.text.strip().split("\n\n")[-1].removeprefix("data: "))
    assert last["generated_text"] == "hi"
    assert last["details"]["input_length"] == 6 and last["details"]["finish_reason"] == "eos_token"


@pytest.mark.parametrize(
    ("grammar", "admits", "refuses"),
    [
        ({"type": "json", "value": SCHEMA}, '{"a": 1}', "{}"),
        ({"type": "json", "value": json.dumps(SCHEMA)}, '{"a": 1}', "{}"),
        ({"type": "json_schema", "value": {"name": "x", "schema": SCHEMA}}, '{"a": 1}', "{}"),
        ({"type": "regex", "value": "a+"}, "aa", "b"),
    ],
)
def test_grammars(grammar: dict[str, Any], admits: str, refuses: str):
    runtime = fake_runtime(says("x"))
    assert ask(runtime, grammar=grammar).status_code == 200
    made = runtime.engine.submitted[0].grammar  # pyright: ignore[reportAttributeAccessIssue]
    assert made.accepts(admits) and not made.accepts(refuses)


@pytest.mark.parametrize(
    ("given", "temperature"),
    [({}, 0.0), ({"do_sample": True}, 1.0), ({"top_k": 5}, 1.0), ({"temperature": 0.5}, 0.5), ({"do_sample": False}, 0.0)],
)
def test_it_is_greedy_unless_asked_to_sample(given: dict[str, Any], temperature: float):
    runtime = fake_runtime(says("x"))
    ask(runtime, **given)
    params = runtime.engine.submitted[0].params  # pyright: ignore[reportAttributeAccessIssue]
    assert (params.temperature, params.max_tokens) == (temperature, 100)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"inputs": 5}, "inputs"),
    ({"input": "x", "inputs": "y"}, "did you mean 'inputs'"),
    ({"inputs": "x" * 300}, "tokens"),
    ({"inputs": "x", "parameters": {"max_new_tokns": 5}}, "did you mean 'max_new_tokens'"),
    ({"inputs": "x", "parameters": {"max_new_tokens": 0}}, "parameters.max_new_tokens"),
    ({"inputs": "x", "parameters": {"best_of": 2}}, "parameters.best_of"),
    ({"inputs": "x", "parameters": {"watermark": True}}, "parameters.watermark"),
    ({"inputs": "x", "parameters": {"typical_p": 1.5}}, "parameters.typical_p"),
    ({"inputs": "x", "parameters": {"truncate": 5}}, "parameters.truncate"),
    ({"inputs": "x", "parameters": {"grammar": {"type": "regex", "value": "("}}}, "position"),
    ({"inputs": "x", "parameters": {"grammar": {"type": "regex", "value": {}}}}, "parameters.grammar.value"),
    ({"inputs": "x", "parameters": {"grammar": {"type": "json", "value": 5}}}, "parameters.grammar.value"),
    ({"inputs": "x", "parameters": {"grammar": {"type": "json_schema", "value": []}}}, "parameters.grammar.value"),
    ({"inputs": "x", "parameters": {"grammar": {"type": "json", "value": {"type": "objekt"}}}}, "/type"),
]


@pytest.mark.parametrize(("body", "says_so"), BAD)
def test_bad_bodies(body: dict[str, Any], says_so: str):
    for path in ("/generate", "/generate_stream", "/"):
        answer = api(fake_runtime(echoes)).post(path, json=body)
        assert (answer.status_code, answer.json()["error_type"]) == (400, "validation")
        assert says_so in answer.json()["error"]


def test_failures_name_their_kind():
    assert ask(fake_runtime(hangs(), max_live=0)).json()["error_type"] == "overloaded"
    assert ask(fake_runtime(fails(GenerationError("boom")))).json() == {"error": "boom", "error_type": "generation"}


# --- Hugging Face's client ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[InferenceClient]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", False)  # the hub stays out of reach: only the server is asked
        yield InferenceClient(base_url=server.url, token=API_KEY, timeout=120)


def test_text(client: InferenceClient):
    whole = client.text_generation("One, two,", max_new_tokens=6)
    assert whole
    assert "".join(client.text_generation("One, two,", max_new_tokens=6, stream=True)) == whole
    detailed = client.text_generation("One, two,", max_new_tokens=6, details=True, top_n_tokens=2)
    assert detailed.details and len(detailed.details.tokens) == 6 and detailed.details.finish_reason == "length"
    assert "".join(token.text for token in detailed.details.tokens) == whole


def test_grammar(client: InferenceClient):
    text = client.text_generation("A pet: ", grammar={"type": "regex", "value": "(cat|dog)!"})  # type: ignore[arg-type]
    assert text in ("cat!", "dog!")
    schema = SCHEMA | {"properties": {"a": {"type": "boolean"}}}
    text = client.text_generation("JSON: ", max_new_tokens=60, grammar={"type": "json", "value": schema})  # type: ignore[arg-type]
    assert isinstance(json.loads(text)["a"], bool)


def test_stop_texts_stay_in_the_answer(client: InferenceClient):
    grammar: Any = {"type": "regex", "value": "12345"}
    assert client.text_generation("x", grammar=grammar, stop=["3"]) == "123"
    *_, last = client.text_generation("x", grammar=grammar, stop=["3"], stream=True, details=True)
    assert last.generated_text == "123" and last.details and last.details.finish_reason == "stop_sequence"


def test_refusals(client: InferenceClient):
    with pytest.raises(ValidationError, match="position"):
        client.text_generation("x", grammar={"type": "regex", "value": "("})  # type: ignore[arg-type]
    assert issubclass(OverloadedError, Exception)
