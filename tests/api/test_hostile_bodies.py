"""Whatever JSON a body holds, the answer is 200 or says what is wrong; it is never a failure of the server."""

from __future__ import annotations

import json
from typing import Any

from api_fakes import fake_runtime, says
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.openai.protocol import ChatCompletionBody, CompletionBody
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings

API = TestClient(create_app(AsyncLLM(fake_runtime(says("x"))), ServerSettings(served_model_names=("fake",))), raise_server_exceptions=False)

scalars = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
words = st.sampled_from(["json_object", "json_schema", "text", "user", "auto", "fake", "type", "schema", "regex", "json", "choice", "("])
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | words, inner, max_size=3),
    max_leaves=8,
)


def bodies(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names), json_values, max_size=4)


def check(path: str, body: dict[str, Any]) -> None:
    answer = API.post(path, content=json.dumps(body))
    assert answer.status_code in (200, 400, 404), answer.text
    if answer.status_code != 200:
        assert answer.json()["error"]["message"]


@settings(max_examples=60)
@given(bodies(ChatCompletionBody.field_names()), st.booleans())
def test_chat(body: dict[str, Any], valid_messages: bool):
    check("/v1/chat/completions", body | ({"messages": [{"role": "user", "content": "x"}]} if valid_messages else {}))


@settings(max_examples=40)
@given(bodies(CompletionBody.field_names()))
def test_completions(body: dict[str, Any]):
    check("/v1/completions", {"prompt": "x"} | body)


@settings(max_examples=40)
@given(json_values)
def test_schemas(schema: Any):
    constraint = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
    check("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]} | constraint)
