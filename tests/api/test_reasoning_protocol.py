"""Thoughts over the HTTP protocols and in Python, with an engine that plays scripts."""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import Iterator
from typing import Any

import pytest
from api_fakes import PlainTemplate, fake_runtime, says
from starlette.testclient import TestClient

from formcast.api.answers.reader import Answer
from formcast.api.async_engine import AsyncLLM
from formcast.api.llm import LLM
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings
from formcast.engine.request import Request, RequestOutput, SamplingParams, TokenLogprob

CHAT, RESPONSES, OLLAMA = "/v1/chat/completions", "/v1/responses", "/api/chat"
TALK: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
STOP = {"type": "function", "function": {"name": "stop"}}
THOUGHT = "<think>\nHm.\n</think>\n\nYes."
CALL = '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>'


class Thinking(PlainTemplate):
    """Thinks unless told otherwise, and knows tools."""

    source = "{{ tools }} <tool_call> {% if enable_thinking %}<think></think>{% endif %}"

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def render(self, messages: list[dict[str, Any]], add_generation_prompt: bool = True, **variables: Any) -> str:
        self.seen.append({"messages": messages, **variables})
        return super().render(messages) + ("" if variables.get("enable_thinking", True) else "<think>\n\n</think>\n\n")


def thinking(text: str, **more: Any) -> Any:
    return fake_runtime(says(text, **more), max_model_len=4096, chat_template=Thinking())


def post(runtime: Runtime, path: str, body: dict[str, Any], **settings: Any) -> Any:
    app = create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",), **settings))
    return TestClient(app, raise_server_exceptions=False).post(path, json=body)


def test_a_chat_tells_the_thought_from_the_content():
    body = post(thinking(THOUGHT), CHAT, {"messages": TALK}).json()
    message = body["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "Yes.", "refusal": None, "reasoning": "Hm.", "reasoning_content": "Hm."}
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": len("<think>\nHm.\n</think>")}


def test_a_stream_says_the_same():
    answer = post(thinking(THOUGHT), CHAT, {"messages": TALK, "stream": True})
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines[:-1]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Yes."
    for name in ("reasoning", "reasoning_content"):
        assert "".join(delta.get(name) or "" for delta in deltas) == "Hm."


class Always(PlainTemplate):
    """Has no switch: whether there is a thought is up to the model."""

    source = "<think></think>"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": TALK, "reasoning_effort": "none"}),
        (RESPONSES, {"input": "hello", "reasoning": {"effort": "none"}}),
        (OLLAMA, {"model": "fake", "messages": TALK, "think": False}),
    ],
)
def test_thinking_is_off_without_a_switch_too(path: str, body: dict[str, Any]):
    runtime = fake_runtime(says("Yes."), max_model_len=4096, chat_template=Always())
    assert post(runtime, path, body).status_code == 200
    grammar: Any = runtime.engine.submitted[0].grammar  # pyright: ignore[reportAttributeAccessIssue]
    assert grammar.accepts("Yes.") and grammar.accepts("<think></think>Yes.") and not grammar.accepts("<think>Hm</think>Yes.")


def test_thoughts_can_be_left_out():
    choice = post(thinking(THOUGHT), CHAT, {"messages": TALK, "include_reasoning": False}).json()["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "Yes.", "refusal": None}
    streamed = post(thinking(THOUGHT), CHAT, {"messages": TALK, "include_reasoning": False, "stream": True}).text
    assert "Hm" not in streamed and "reasoning" not in streamed


def test_an_answer_that_ends_in_its_thought_has_no_content():
    choice = post(thinking("<think>Hm", finish_reason="length"), CHAT, {"messages": TALK}).json()["choices"][0]
    assert (choice["message"]["content"], choice["message"]["reasoning"], choice["finish_reason"]) == (None, "Hm", "length")


def test_a_constraint_comes_after_the_thought():
    runtime = thinking('<think>a</think>\n\n{"b": 1}')
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    choice = post(runtime, CHAT, {"messages": TALK, "response_format": form}).json()["choices"][0]
    assert (choice["message"]["content"], choice["message"]["reasoning"]) == ('{"b": 1}', "a")
    grammar = runtime.engine.submitted[0].grammar
    assert grammar.accepts("<think>free { </think>{}") and not grammar.accepts("<think>a</think>b") and grammar.accepts("{}")


@pytest.mark.parametrize(
    "more",
    [
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"reasoning_effort": "none"},
        {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}},
    ],
)
def test_thinking_is_switched_off(more: dict[str, Any]):
    runtime = thinking("<think>")
    choice = post(runtime, CHAT, {"messages": TALK, **more}).json()["choices"][0]
    assert choice["message"]["content"] == "<think>", "what comes after a thought that is over is content"
    assert runtime.engine.submitted[0].grammar is None


def test_a_server_can_be_told_that_there_are_no_thoughts():
    choice = post(thinking(THOUGHT), CHAT, {"messages": TALK}, reasoning_parser="none").json()["choices"][0]
    assert choice["message"]["content"] == THOUGHT


@pytest.mark.parametrize(
    ("path", "given", "param"),
    [
        (CHAT, {"thinking_token_budget": 4}, "thinking_token_budget"),
        (CHAT, {"reasoning_effort": "high"}, "reasoning_effort"),
        (RESPONSES, {"reasoning": {"effort": "high"}}, "reasoning.effort"),
        (RESPONSES, {"thinking_token_budget": 4}, "thinking_token_budget"),
    ],
)
def test_what_a_model_without_thoughts_refuses(path: str, given: dict[str, Any], param: str):
    answer = post(fake_runtime(says("x")), path, ({"messages": TALK} if path == CHAT else {"input": "x"}) | given)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"skip_special_tokens": False}, "skip_special_tokens"),
        ({"thinking_token_budget": -1}, "thinking_token_budget"),
        ({"chat_template_kwargs": {"source": "x"}}, "chat_template_kwargs.source"),
    ],
)
def test_what_a_model_with_thoughts_refuses(given: dict[str, Any], param: str):
    answer = post(thinking(THOUGHT), CHAT, {"messages": TALK} | given)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_earlier_thoughts_reach_the_template():
    for field in ("reasoning", "reasoning_content"):
        runtime = thinking("x")
        talk = [*TALK, {"role": "assistant", "content": "Yes.", field: "Hm."}, *TALK]
        assert post(runtime, CHAT, {"messages": talk}).status_code == 200
        assert runtime.model.chat_template.seen[0]["messages"][1]["reasoning_content"] == "Hm."


# --- /v1/responses -----------------------------------------------------------------------------------------------------


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(block.split("\n")[1].removeprefix("data: ")) for block in text.split("\n\n") if block]


TOOL = {"type": "function", "name": "stop"}


def test_a_response_is_a_thought_a_message_and_calls():
    runtime = thinking(f"{THOUGHT} {CALL}")
    body = post(runtime, RESPONSES, {"input": "x", "tools": [TOOL]}).json()
    thought, message, call = body["output"]
    assert (thought["type"], thought["content"]) == ("reasoning", [{"type": "reasoning_text", "text": "Hm."}])
    assert (message["type"], message["content"][0]["text"]) == ("message", "Yes.")
    assert (call["type"], call["name"], call["arguments"], call["status"]) == ("function_call", "stop", "{}", "completed")
    assert call["call_id"].startswith("call_") and body["usage"]["output_tokens_details"]["reasoning_tokens"] > 0
    assert body["tools"][0]["strict"] is True and body["tool_choice"] == "auto"


def test_a_response_can_be_sent_back_with_the_result_of_its_call():
    first = post(thinking(f"{THOUGHT} {CALL}"), RESPONSES, {"input": "x", "tools": [TOOL]}).json()
    result = {"type": "function_call_output", "call_id": first["output"][2]["call_id"], "output": "done"}
    runtime = thinking("fine")
    answer = post(runtime, RESPONSES, {"input": [{"role": "user", "content": "x"}, *first["output"], result], "tools": [TOOL]})
    assert answer.status_code == 200, answer.text
    _, assistant, tool = runtime.model.chat_template.seen[0]["messages"]
    assert (assistant["reasoning_content"], assistant["content"]) == ("Hm.", "Yes.")
    assert assistant["tool_calls"][0]["function"] == {"name": "stop", "arguments": {}}
    assert (tool["role"], tool["content"], tool["tool_call_id"]) == ("tool", "done", result["call_id"])


def test_events_of_a_response_with_all_kinds_of_items():
    found = events(post(thinking(f"{THOUGHT} {CALL}"), RESPONSES, {"input": "x", "tools": [TOOL], "stream": True}).text)
    kinds = [event["type"].removeprefix("response.") for event in found]
    assert [kind for number, kind in enumerate(kinds) if number == 0 or kind != kinds[number - 1]] == [
        *("created", "in_progress"),
        *("output_item.added", "reasoning_text.delta", "reasoning_text.done", "output_item.done"),
        *("output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        "completed",
    ]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    deltas = [event for event in found if event["type"].endswith(".delta")]
    for index, text in enumerate(("Hm.", "Yes.", "{}")):
        assert "".join(event["delta"] for event in deltas if event["output_index"] == index) == text
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert done == found[-1]["response"]["output"]


@pytest.mark.parametrize(
    ("choice", "good", "bad"),
    [
        ("required", CALL, "text"),
        ({"type": "function", "name": "stop"}, CALL, "text"),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "stop"}]}, CALL, "text"),
        ("auto", "text", "<tool_call>x"),
    ],
)
def test_choices_of_a_response(choice: Any, good: str, bad: str):
    runtime = thinking(CALL)
    answer = post(runtime, RESPONSES, {"input": "x", "tools": [TOOL], "tool_choice": choice})
    assert answer.status_code == 200, answer.text
    grammar = runtime.engine.submitted[0].grammar
    assert grammar.accepts(good) and grammar.accepts(f"<think>a</think>{good}") and not grammar.accepts(bad)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("per_output", [1, 5, 1000])
def test_the_tokens_of_the_content_have_log_probabilities(stream: bool, per_output: int):
    whole = f"<think>\nYes?\n</think>\n\nYes, é.\n{CALL}"

    def script(request: Request) -> Iterator[RequestOutput]:
        tokens = [TokenLogprob(token_id=byte, logprob=-0.5) for byte in whole.encode()] + [TokenLogprob(token_id=256, logprob=-0.25)]
        decoder = codecs.getincrementaldecoder("utf-8")()
        for at in range(0, len(tokens), per_output):
            some = tuple(tokens[at : at + per_output])
            ids = tuple(entry.token_id for entry in some)
            text = decoder.decode(bytes(token for token in ids if token < 256))
            yield RequestOutput(request_id=request.request_id, new_token_ids=ids, text=text, logprobs=some)
        yield RequestOutput(request_id=request.request_id, finish_reason="stop")

    runtime = fake_runtime(script, max_model_len=4096, chat_template=Thinking())
    more = {"top_logprobs": 1, "include": ["message.output_text.logprobs"]}
    answer = post(runtime, RESPONSES, {"input": "x", "tools": [TOOL], "stream": stream, **more})
    assert answer.status_code == 200, answer.text
    response = events(answer.text)[-1]["response"] if stream else answer.json()
    thought, message, call = response["output"]
    (part,) = message["content"]
    assert (thought["content"][0]["text"], part["text"], call["name"]) == ("Yes?", "Yes, é.", "stop")
    assert bytes(byte for entry in part["logprobs"] for byte in entry["bytes"]).decode().startswith("Yes, é.")
    assert {entry["logprob"] for entry in part["logprobs"]} == {-0.5}
    assert len(part["logprobs"]) == len("Yes, é.".encode())


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "go"}}, "tool_choice"),
        ({"tools": [TOOL | {"parameters": {"type": "objekt"}}]}, "tools[0].parameters"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        ({"input": [{"type": "reasoning", "summary": [], "encrypted_content": "x"}]}, "input[0].encrypted_content"),
    ],
)
def test_tools_that_a_response_refuses(given: dict[str, Any], param: str):
    answer = post(thinking("x"), RESPONSES, {"input": "x"} | given)
    assert (answer.status_code, (answer.json().get("error") or {}).get("param")) == (400, param), answer.text


# --- Ollama ------------------------------------------------------------------------------------------------------------


def test_ollama_shows_thoughts_and_calls():
    body = post(thinking(f"{THOUGHT} {CALL}"), OLLAMA, {"model": "fake", "messages": TALK, "tools": [STOP], "stream": False}).json()
    message = body["message"]
    assert (message["content"], message["thinking"]) == ("Yes.", "Hm.")
    assert [call["function"] for call in message["tool_calls"]] == [{"name": "stop", "arguments": {}}]


def test_ollama_streams_calls_when_they_are_complete():
    answer = post(thinking(f"{THOUGHT} {CALL}\n{CALL}"), OLLAMA, {"model": "fake", "messages": TALK, "tools": [STOP]})
    *pieces, last = [json.loads(line) for line in answer.text.splitlines()]
    assert "".join(piece["message"]["content"] for piece in pieces) == "Yes."
    assert "".join(piece["message"].get("thinking", "") for piece in pieces) == "Hm."
    calls = [call["function"]["name"] for piece in pieces for call in piece["message"].get("tool_calls", ())]
    assert calls == ["stop", "stop"] and last["done"] and "tool_calls" not in last["message"]


def test_ollama_leaves_out_a_call_that_is_cut():
    runtime = thinking(CALL[:-18], finish_reason="length")
    body = post(runtime, OLLAMA, {"model": "fake", "messages": TALK, "tools": [STOP], "stream": False}).json()
    assert "tool_calls" not in body["message"] and body["done_reason"] == "length"


def test_ollama_talks_go_on_after_a_call():
    runtime = thinking("fine")
    talk = [
        *TALK,
        {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [{"function": {"name": "stop", "arguments": {"a": 1}}}]},
        {"role": "tool", "content": "done", "tool_name": "stop"},
    ]
    assert post(runtime, OLLAMA, {"model": "fake", "messages": talk, "tools": [STOP]}).status_code == 200
    _, assistant, tool = runtime.model.chat_template.seen[0]["messages"]
    assert assistant["reasoning_content"] == "Hm."
    assert assistant["tool_calls"][0]["function"] == {"name": "stop", "arguments": {"a": 1}}
    assert tool == {"role": "tool", "content": "done", "name": "stop"}


def test_ollama_switches_thinking():
    for path, body in ((OLLAMA, {"messages": TALK}), ("/api/generate", {"prompt": "hello"})):
        for think in (True, False):
            runtime = thinking(THOUGHT)
            answer = post(runtime, path, {"model": "fake", "stream": False, "think": think, **body}).json()
            assert runtime.model.chat_template.seen[0]["enable_thinking"] is think
            shown = answer.get("message", answer)
            assert shown.get("thinking") == ("Hm." if think else None)


# --- Python ------------------------------------------------------------------------------------------------------------


def test_python_has_typed_calls_and_thoughts():
    with LLM.over(thinking(f"{THOUGHT} {CALL}")) as llm:
        output = llm.chat(TALK, tools=[STOP])[0].outputs[0]
    assert (output.text, output.reasoning, output.content) == (f"{THOUGHT} {CALL}", "Hm.", "Yes.")
    assert [(call.name, call.arguments, call.parsed) for call in output.tool_calls] == [("stop", "{}", {})]


def test_python_parses_the_content():
    runtime = thinking('<think>a</think>{"b": 1}')
    with LLM.over(runtime) as llm:
        first = llm.chat(TALK, schema={"type": "object"}, tools=[STOP])[0].outputs[0]
        assert (first.parsed, first.tool_calls, first.reasoning) == ({"b": 1}, (), "a")
        cut = LLM.over(thinking("<think>a", finish_reason="length")).chat(TALK, schema={"type": "object"})[0].outputs[0]
        assert cut.parsed is None and cut.parse_error is not None and "length" in cut.parse_error


def test_python_answers_without_either_are_content():
    with LLM.over(fake_runtime(says("hi"))) as llm:
        output = llm.chat(TALK)[0].outputs[0]
    assert (output.text, output.content, output.reasoning, output.tool_calls) == ("hi", "hi", None, ())


@pytest.mark.parametrize(
    "given",
    [
        {"tool_choice": "required"},
        {"tools": [STOP], "tool_choice": "go"},
        {"tools": [{"type": "function", "function": {"name": "a", "paramters": {}}}]},
        {"tools": [{"name": ""}]},
        {"tools": [STOP], "tool_choice": {"type": "function"}},
    ],
)
def test_python_refuses_bad_tools(given: dict[str, Any]):
    from formcast import ToolError

    with LLM.over(thinking("x")) as llm, pytest.raises(ToolError):
        llm.chat(TALK, **given)


def test_python_streams_what_is_said():
    async def run() -> tuple[Answer, Any]:
        answer, result = Answer(), None
        async for delta in AsyncLLM(thinking(f"{THOUGHT} {CALL}")).chat(TALK, SamplingParams(), tools=[STOP], tool_choice="auto"):
            for piece in delta.said:
                answer.add(piece)
            result = delta.result or result
        return answer, result

    answer, result = asyncio.run(run())
    assert (answer.reasoning, answer.content, answer.calls[0].name) == ("Hm.", "Yes.", "stop")
    assert (result.reasoning, result.content, result.tool_calls[0].arguments) == ("Hm.", "Yes.", "{}")
