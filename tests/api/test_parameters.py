"""Every parameter is honoured or refused."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest
from api_fakes import FakeEngine, echoes, fake_runtime, says
from api_processes import Server
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings

CHAT, PLAIN = "/v1/chat/completions", "/v1/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
PROMPT: dict[str, Any] = {"prompt": "hi"}
BOTH = [(CHAT, HELLO), (PLAIN, PROMPT)]
SMALL = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


def client(runtime: Runtime, **settings: Any) -> TestClient:
    return TestClient(create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",), **settings)))


def engine(runtime: Runtime) -> FakeEngine:
    assert isinstance(runtime.engine, FakeEngine)
    return runtime.engine


@pytest.mark.parametrize(("path", "body"), BOTH)
def test_placement_and_text_options_reach_the_engine(path: str, body: dict[str, Any]):
    runtime = fake_runtime(echoes)
    given = {"priority": -3, "cache_salt": "pepper", "include_stop_str_in_output": True, "skip_special_tokens": False, "n": 2}
    assert client(runtime).post(path, json=body | given).status_code == 200
    for request in engine(runtime).submitted:
        assert (request.priority, request.cache_salt) == (-3, "pepper")
        assert request.params.include_stop_str_in_output and not request.params.skip_special_tokens


HARMLESS: list[dict[str, Any]] = [
    {"use_beam_search": False},
    {"length_penalty": 1.0},
    {"length_penalty": 1},
    {"spaces_between_special_tokens": True},
    {"bad_words": []},
    {"prompt_logprobs": None},
    {"return_tokens_as_token_ids": False},
    {"stream": True, "stream_options": {"include_obfuscation": False}},
]


@pytest.mark.parametrize("given", HARMLESS)
@pytest.mark.parametrize(("path", "body"), BOTH)
def test_asking_for_what_happens_anyway(path: str, body: dict[str, Any], given: dict[str, Any]):
    assert client(fake_runtime(echoes)).post(path, json=body | given).status_code == 200


@pytest.mark.parametrize("given", [{"service_tier": "auto"}, {"service_tier": "default"}, {"store": False}, {"add_special_tokens": False}])
def test_chat_defaults(given: dict[str, Any]):
    assert client(fake_runtime(echoes)).post(CHAT, json=HELLO | given).status_code == 200


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"beam_width": 3}, "beam_width"),
    ({"use_beam_search": 0}, "use_beam_search"),
    ({"length_penalty": 2.0}, "length_penalty"),
    ({"length_penalty": True}, "length_penalty"),
    ({"bad_words": ["x"]}, "bad_words"),
    ({"allowed_token_ids": [1]}, "allowed_token_ids"),
    ({"prompt_logprobs": 1}, "prompt_logprobs"),
    ({"truncate_prompt_tokens": 5}, "truncate_prompt_tokens"),
    ({"return_token_ids": True}, "return_token_ids"),
    ({"cache_salt": ""}, "cache_salt"),
    ({"priority": 1 << 40}, "priority"),
    ({"priority": 0.5}, "priority"),
    ({"stream": True, "stream_options": {"continuous_usage_stats": True}}, "stream_options.continuous_usage_stats"),
]


@pytest.mark.parametrize(("given", "param"), REFUSED)
@pytest.mark.parametrize(("path", "body"), BOTH)
def test_what_cannot_be_done_is_refused(path: str, body: dict[str, Any], given: dict[str, Any], param: str):
    answer = client(fake_runtime(echoes)).post(path, json=body | given)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"service_tier": "priority"}, "service_tier"),
        ({"store": True}, "store"),
        ({"echo": True}, "echo"),
        ({"add_special_tokens": True}, "add_special_tokens"),
        ({"continue_final_message": True}, "continue_final_message"),
        ({"documents": []}, "documents"),
        ({"chat_template": "x"}, "chat_template"),
    ],
)
def test_what_a_chat_cannot_do(given: dict[str, Any], param: str):
    answer = client(fake_runtime(echoes)).post(CHAT, json=HELLO | given)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"echo": True, "logprobs": 1}, "echo"),
        ({"add_special_tokens": False}, "add_special_tokens"),
    ],
)
def test_what_a_completion_cannot_do(given: dict[str, Any], param: str):
    answer = client(fake_runtime(echoes)).post(PLAIN, json=PROMPT | given)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("stream", [False, True])
def test_echo_repeats_each_prompt(stream: bool):
    body = {"prompt": [[97, 98], [99]], "n": 2, "best_of": 2, "echo": True, "stream": stream}
    answer = client(fake_runtime(says("!"))).post(PLAIN, json=body)
    texts = ["", "", "", ""]
    chunks = [answer.json()] if not stream else [of_event(line) for line in answer.text.split("\n\n") if line and "[DONE]" not in line]
    for chunk in chunks:
        for choice in chunk["choices"]:
            texts[choice["index"]] += choice["text"]
    assert texts == ["ab!", "ab!", "c!", "c!"]


def of_event(line: str) -> Any:
    return json.loads(line.removeprefix("data: "))


def test_a_request_may_bring_a_template_where_it_is_trusted():
    runtime = fake_runtime(echoes)
    api = client(runtime, trust_request_chat_template=True)
    answer = api.post(CHAT, json=HELLO | {"chat_template": "{{ messages[0].content }}?{{ add_generation_prompt }}"}).json()
    assert answer["choices"][0]["message"]["content"] == "hi?True"
    broken = api.post(CHAT, json=HELLO | {"chat_template": "{{ messages.__class__.__mro__ }}"})
    assert (broken.status_code, broken.json()["error"]["param"]) == (400, "messages")


def test_strict_is_checked_and_reported():
    open_schema = {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"], "additionalProperties": False}

    def ask(schema: Any, strict: bool | None) -> Any:
        given = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": strict}}
        return client(fake_runtime(says("{}"))).post(CHAT, json=HELLO | {"response_format": given})

    assert [ask(open_schema, strict).status_code for strict in (None, False, True)] == [200, 200, 400]
    error = ask(open_schema, True).json()["error"]
    assert (error["param"], error["code"]) == ("response_format.json_schema.schema", "invalid_json_schema")
    assert "/properties/a" in error["message"] and "additionalProperties" in error["message"]
    assert ask(SMALL, True).status_code == 200
    assert ask({"type": "objekt"}, True).json()["error"]["code"] == "invalid_grammar"


@pytest.mark.parametrize("given", [{"stop": "4"}, {"stop": ["x", "4"]}, {"stop_token_ids": None, "stop": ["4"]}])
def test_a_stop_text_ends_a_real_answer(server: Server, given: dict[str, Any]):
    body = {"structured_outputs": {"regex": "12345"}, "max_tokens": 10}
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="a-key-for-tests", max_retries=0) as real:
        made = real.completions.create(model="small", prompt="x", extra_body=body | given)
        assert (made.choices[0].text, made.choices[0].finish_reason) == ("123", "stop")
        whole = real.completions.create(model="small", prompt="x", extra_body=body | given | {"include_stop_str_in_output": True})
        assert whole.choices[0].text.startswith("1234")


def test_penalties_bias_and_lengths_in_a_real_answer(server: Server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="a-key-for-tests", max_retries=0) as real:
        asked: dict[str, Any] = {"model": "small", "prompt": "One two", "max_tokens": 6, "temperature": 0}
        plain = real.completions.create(**asked, logprobs=2)
        logprobs = plain.choices[0].logprobs
        assert logprobs and logprobs.tokens and len(logprobs.tokens) == 6
        headers = {"authorization": "Bearer a-key-for-tests"}
        tokens = httpx.post(f"{server.url}/tokenize", json={"prompt": logprobs.tokens[0]}, headers=headers).json()["tokens"]
        banned = real.completions.create(**asked, logit_bias={str(tokens[0]): -100})
        assert not banned.choices[0].text.startswith(logprobs.tokens[0])
        echoed = real.completions.create(**asked, echo=True)
        assert echoed.choices[0].text == "One two" + plain.choices[0].text
        asked["max_tokens"] = 12
        long = real.completions.create(**asked, extra_body={"min_tokens": 12, "repetition_penalty": 1.3})
        assert long.usage and long.usage.completion_tokens == 12
