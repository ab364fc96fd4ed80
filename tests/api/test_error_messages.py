"""Errors say what to change: the field as it stands in the body, what it may hold, and what to send instead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_fakes import fake_runtime, says
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings

API = TestClient(create_app(AsyncLLM(fake_runtime(says("{}"))), ServerSettings(served_model_names=("fake",))), raise_server_exceptions=False)
CHAT = "/v1/chat/completions"
TALK: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}]}
TOOLS: dict[str, Any] = TALK | {"tools": [{"type": "function", "function": {"name": "f"}}]}


@pytest.mark.parametrize(
    ("path", "body", "param", "message"),
    [
        (CHAT, {}, "messages", "'messages' is missing"),
        (CHAT, {"messages": []}, "messages", "'messages' must have at least 1 entries"),
        (CHAT, {"messages": "x"}, "messages", "'messages' must be a list, not 'x'"),
        (CHAT, {"messages": [{"role": "user"}]}, "messages[0].content", "'messages[0].content' is missing"),
        (CHAT, {"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "must be a text or a list of parts"),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text", "is missing"),
        (CHAT, {"messages": [{"role": "me", "content": "x"}]}, "messages[0].role", "'tool' or 'function', not 'me'"),
        (CHAT, TALK | {"temperature": "0.7"}, "temperature", "'temperature' must be a number, not '0.7'"),
        (CHAT, TALK | {"n": 1.5}, "n", "'n' must be an integer, not 1.5"),
        (CHAT, TALK | {"n": 0}, "n", "'n' must be 1 to 128, not 0"),
        (CHAT, TALK | {"logprobs": 5}, "logprobs", "'logprobs' must be true or false, not 5"),
        (CHAT, TALK | {"max_completion_tokens": 0}, "max_completion_tokens", "max_completion_tokens must be at least 1, not 0"),
        (CHAT, TALK | {"stop": 5}, "stop", "a text or a list of texts"),
        (CHAT, TALK | {"response_format": "json"}, "response_format", "'response_format' must be an object, not 'json'"),
        (CHAT, TALK | {"response_format": {"type": "regex", "pattern": "a"}}, "response_format.pattern", "given as 'regex'"),
        (CHAT, TALK | {"response_format": {"type": "json_schema", "json_schema": {"type": "object"}}}, "response_format.json_schema.type", "belongs into 'json_schema.schema'"),
        (CHAT, TALK | {"response_format": {"type": "regex", "schema": {}}}, "response_format.schema", "does not go with type 'regex'"),
        (CHAT, TALK | {"response_format": {"type": "json_schema", "schema": {}, "json_schema": {"schema": {}}}}, "response_format.schema", "two schemas"),
        (CHAT, TOOLS | {"tool_choice": "any"}, "tool_choice", "'tool_choice' must be 'none', 'auto' or 'required', not 'any'"),
        (CHAT, TOOLS | {"tool_choice": {"type": "tool", "name": "f"}}, "tool_choice.name", "belongs into 'function'"),
        (CHAT, TOOLS | {"tool_choice": {"type": "function"}}, "tool_choice.function", "is missing"),
        (CHAT, TALK | {"tools": [{"type": "function", "name": "f"}]}, "tools[0].name", "belongs into 'function'"),
        (CHAT, TALK | {"functions": [{"name": "f"}], "tools": []}, "functions", "does not go with 'tools'"),
        (CHAT, TALK | {"function_call": "required"}, "function_call", "must be 'none' or 'auto', not 'required'"),
        (CHAT, TALK | {"extra_body": {}}, "extra_body", "stand in the body themselves"),
        (CHAT, TALK | {"guided_decoding_backend": "x"}, "guided_decoding_backend", "one engine for all"),
        (CHAT, TALK | {"max_output_tokens": 5}, "max_output_tokens", "here it is 'max_tokens'"),
        ("/v1/completions", TALK, "messages", "they go to /v1/chat/completions"),
        ("/v1/responses", {"input": "x", "max_tokens": 5}, "max_tokens", "here it is 'max_output_tokens'"),
        ("/v1/responses", {"input": "x", "tools": [{"type": "web_search"}]}, "tools[0].type", "must be 'function', not 'web_search'"),
        ("/v1/responses", TALK, "messages", "here they are 'input'"),
    ],
)  # fmt: skip
def test_bad_fields(path: str, body: dict[str, Any], param: str, message: str):
    answer = API.post(path, json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (error["param"], message in error["message"]) == (param, True), error


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_a_schema_where_clients_of_llama_cpp_put_it(kind: str):
    runtime = fake_runtime(says('{"a": 1}'))
    app = create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",)))
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    answer = TestClient(app).post(CHAT, json=TALK | {"response_format": {"type": kind, "schema": schema}})
    assert answer.status_code == 200, answer.text
    grammar = runtime.engine.submitted[0].grammar  # pyright: ignore[reportAttributeAccessIssue]
    assert grammar.accepts('{"a": 1}') and not grammar.accepts("{}")


@pytest.mark.parametrize(
    ("content", "headers", "status", "message"),
    [
        (b"", {}, 400, "is empty"),
        (b"a=b", {"content-type": "application/x-www-form-urlencoded"}, 400, "Content-Type: application/json"),
        (b'{"messages":[],}', {}, 400, "a comma stands only between two members"),
        (b"{'messages':[]}", {}, 400, "double quotes"),
        (b"\x1f\x8b", {"content-encoding": "gzip"}, 415, "compressed (gzip)"),
    ],
)
def test_bad_bodies(content: bytes, headers: dict[str, str], status: int, message: str):
    answer = API.post(CHAT, content=content, headers=headers)
    assert (answer.status_code, message in answer.json()["error"]["message"]) == (status, True), answer.text


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("POST", "/chat/completions", 404, "did you mean '/v1/chat/completions'?"),
        ("POST", "/completion", 404, "did you mean '/v1/completions'?"),
        ("POST", "/v1/embeddings", 404, "/openapi.json lists what there is"),
        ("POST", "/x" * 3000, 404, "..."),
        ("GET", CHAT, 405, "but to POST"),
    ],
)
def test_wrong_places(method: str, path: str, status: int, message: str):
    answer = API.request(method, path)
    assert (answer.status_code, message in answer.json()["error"]["message"]) == (status, True), answer.text
    assert len(json.dumps(answer.json())) < 500
