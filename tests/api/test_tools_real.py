"""Tool calls and structural tags of a real model behind a real server, through the official client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import ollama
import openai
import pytest
from api_processes import API_KEY, Server

WEATHER = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {"name": "get_weather", "description": "The weather of a city", "parameters": WEATHER, "strict": True},
    },
    {"type": "function", "function": {"name": "stop", "description": "Ends the talk"}},
]
TALK: Any = [{"role": "user", "content": "How is the weather in Paris over the next three days?"}]


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0, timeout=120) as made:
        yield made


def check(name: str, arguments: str) -> None:
    assert name in ("get_weather", "stop")
    jsonschema.validate(json.loads(arguments), WEATHER if name == "get_weather" else {"maxProperties": 0, "type": "object"})


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_calls_obey_their_tool_and_streams_add_up(client: openai.OpenAI, choice: Any):
    asked: dict[str, Any] = {"model": "small", "messages": TALK, "tools": TOOLS, "tool_choice": choice}
    asked |= {"parallel_tool_calls": False, "max_tokens": 120, "temperature": 0}
    whole = client.chat.completions.create(**asked).choices[0]
    assert whole.finish_reason == "tool_calls" and whole.message.content is None
    assert whole.message.tool_calls is not None
    (call,) = whole.message.tool_calls
    assert call.type == "function"
    check(call.function.name, call.function.arguments)
    with client.chat.completions.stream(**asked) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion().choices[0]
    assert final.message.tool_calls is not None
    (streamed,) = final.message.tool_calls
    assert (streamed.function.name, streamed.function.arguments) == (call.function.name, call.function.arguments)


def test_a_talk_goes_on_after_a_call(client: openai.OpenAI):
    asked: dict[str, Any] = {"model": "small", "tools": TOOLS, "max_tokens": 120, "temperature": 0}
    first = client.chat.completions.create(messages=TALK, tool_choice="required", parallel_tool_calls=False, **asked)
    message = first.choices[0].message
    assert message.tool_calls
    result: Any = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": '{"sky": "clear"}'}
    answer = client.chat.completions.create(messages=[*TALK, message, result], tool_choice="auto", **asked)
    assert answer.choices[0].finish_reason in ("stop", "length", "tool_calls")


def test_a_call_or_the_final_schema(client: openai.OpenAI):
    final = {"type": "object", "properties": {"sunny": {"type": "boolean"}}, "required": ["sunny"], "additionalProperties": False}
    choice = client.chat.completions.create(
        model="small",
        messages=TALK,
        tools=TOOLS,
        parallel_tool_calls=False,
        max_tokens=120,
        temperature=1,
        seed=3,
        response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": final}},
    ).choices[0]
    if choice.message.tool_calls:
        for call in choice.message.tool_calls:
            assert call.type == "function"
            check(call.function.name, call.function.arguments)
    else:
        jsonschema.validate(json.loads(choice.message.content or ""), final)


FLAT: list[Any] = [{"type": "function", **tool["function"]} for tool in TOOLS]
RESPONSE: dict[str, Any] = {"model": "small", "tools": FLAT, "max_output_tokens": 120, "temperature": 0, "parallel_tool_calls": False}


def test_calls_in_responses_and_their_events(client: openai.OpenAI):
    whole = client.responses.create(input=TALK, tool_choice="required", **RESPONSE)
    (call,) = whole.output
    assert call.type == "function_call" and whole.status == "completed"
    check(call.name, call.arguments)
    with client.responses.stream(input=TALK, tool_choice="required", **RESPONSE) as stream:
        found = list(stream)
        (streamed,) = stream.get_final_response().output
    assert streamed.type == "function_call" and (streamed.name, streamed.arguments) == (call.name, call.arguments)
    pieces = [event.delta for event in found if event.type == "response.function_call_arguments.delta"]
    assert "".join(pieces) == call.arguments and len(pieces) > 1
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": '{"sky": "clear"}'}
    answer = client.responses.create(input=[*TALK, *whole.output, result], **RESPONSE)
    assert answer.status in ("completed", "incomplete") and answer.output


def get_weather(city: str, days: int) -> str:
    """The weather of a city

    Args:
        city: its name
        days: how many days ahead
    """
    return f"{city}: clear for {days} days"


def test_calls_in_ollama(server: Server):
    options = {"temperature": 0, "num_predict": 120}
    with ollama.Client(host=server.url, headers={"authorization": f"Bearer {API_KEY}"}, timeout=120) as made:
        told = [*TALK, {"role": "system", "content": "Answer with a call."}]
        answer = made.chat("small", told, tools=[get_weather], options=options)
        pieces = list(made.chat("small", told, tools=[get_weather], options=options, stream=True))
        calls = [call.function for call in answer.message.tool_calls or ()]
        assert [call.function for piece in pieces for call in piece.message.tool_calls or ()] == calls
        for call in calls:
            assert isinstance(call.arguments["city"], str) and isinstance(call.arguments["days"], int)
        done = ollama.Message(role="tool", content="clear", tool_name="get_weather")
        earlier = ollama.Message.ToolCall(
            function=ollama.Message.ToolCall.Function(name="get_weather", arguments={"city": "Paris", "days": 3})
        )
        talk = [*TALK, ollama.Message(role="assistant", content="", tool_calls=[earlier]), done]
        assert made.chat("small", talk, tools=[get_weather], options=options).done


def test_a_structural_tag_with_a_token_budget(client: openai.OpenAI):
    think = {"type": "tag", "begin": "<think>", "content": {"type": "any_text", "max_tokens": 12}, "end": "</think>"}
    tree = {"type": "sequence", "elements": [think, {"type": "json_schema", "json_schema": WEATHER}]}
    extra = {"structured_outputs": {"structural_tag": json.dumps({"type": "structural_tag", "format": tree})}}
    choice = client.chat.completions.create(model="small", messages=TALK, max_tokens=120, temperature=0, extra_body=extra).choices[0]
    thought, answer = (choice.message.content or "").removeprefix("<think>").split("</think>")
    assert choice.finish_reason == "stop"
    assert 0 < len(thought.split()) <= 12
    jsonschema.validate(json.loads(answer), WEATHER)
