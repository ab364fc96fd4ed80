"""Formats of other models, written by a small real model behind a real server: the masks lead it through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import openai
import pytest
from api_processes import API_KEY, Server

pytestmark = pytest.mark.slow

PET = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "kind": {"enum": ["cat", "dog"]}, "toys": {"type": "array", "items": {"enum": ["ball"]}, "maxItems": 2}},
    "required": ["name", "kind"],
    "additionalProperties": False,
}
TALK: Any = [{"role": "user", "content": "Tell me about a pet."}]
FORM: Any = {"type": "json_schema", "json_schema": {"name": "pet", "schema": PET}}
ASKED: dict[str, Any] = {"model": "small", "messages": TALK, "temperature": 0, "max_tokens": 200}
BUDGET = {"thinking_token_budget": 12}


@pytest.fixture(scope="module", params=["harmony", "gemma4"])
def client(request: Any, model: str) -> Iterator[openai.OpenAI]:
    arguments = (model, "--api-key", API_KEY, "--served-model-name", "small", "--max-model-len", "1024")
    thoughts = {"harmony": "openai_gptoss", "gemma4": "gemma4"}[request.param]
    server = Server.serve(*arguments, "--tool-call-format", request.param, "--reasoning-parser", thoughts)
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0, timeout=120) as made:
        yield made
    server.kill()


def test_a_schema(client: openai.OpenAI):
    whole = client.chat.completions.create(**ASKED, response_format=FORM, extra_body=BUDGET).choices[0]
    assert whole.finish_reason == "stop" and whole.message.content
    jsonschema.validate(json.loads(whole.message.content), PET)
    streamed = client.chat.completions.create(**ASKED, response_format=FORM, extra_body=BUDGET, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed) == whole.message.content


def test_a_call(client: openai.OpenAI):
    tool: Any = {"type": "function", "function": {"name": "adopt", "parameters": PET, "strict": True}}
    asked = {**ASKED, "tools": [tool], "tool_choice": "required", "parallel_tool_calls": False, "extra_body": BUDGET}
    whole = client.chat.completions.create(**asked).choices[0]
    assert whole.finish_reason == "tool_calls" and whole.message.content is None and whole.message.tool_calls
    (call,) = whole.message.tool_calls
    assert call.type == "function" and call.function.name == "adopt"
    jsonschema.validate(json.loads(call.function.arguments), PET)
    with client.chat.completions.stream(**asked) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion().choices[0].message
    assert final.tool_calls and final.tool_calls[0].function.arguments == call.function.arguments


def test_the_older_form(client: openai.OpenAI):
    function: Any = {"name": "adopt", "parameters": PET, "strict": True}
    asked = {**ASKED, "functions": [function], "function_call": {"name": "adopt"}, "extra_body": BUDGET}
    whole = client.chat.completions.create(**asked).choices[0]
    assert whole.finish_reason == "function_call" and whole.message.function_call
    jsonschema.validate(json.loads(whole.message.function_call.arguments), PET)
    streamed = [chunk.choices[0].delta.function_call for chunk in client.chat.completions.create(**asked, stream=True)]
    assert "".join(call.arguments or "" for call in streamed if call) == whole.message.function_call.arguments
