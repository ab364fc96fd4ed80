"""Tools over the HTTP protocol, with an engine that plays scripts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_fakes import PlainTemplate, fake_runtime, says
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings

CHAT = "/v1/chat/completions"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
        "strict": True,
    },
}
STOP = {"type": "function", "function": {"name": "stop"}}
ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "tools": [WEATHER, STOP]}
TWO_CALLS = (
    'I look. <tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>'
)


class KnowingTemplate(PlainTemplate):
    """A template that tells the model about its tools."""

    source = "{{ tools }} <tool_call>"

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def render(self, messages: list[dict[str, Any]], add_generation_prompt: bool = True, **variables: Any) -> str:
        self.seen.append({"messages": messages, **variables})
        return super().render([{"content": None, **message} for message in messages])


def client(runtime: Runtime, **settings: Any) -> TestClient:
    app = create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",), **settings))
    return TestClient(app, raise_server_exceptions=False)


def hermes(text: str, **more: Any) -> Runtime:
    return fake_runtime(says(text, **more), max_model_len=4096, chat_template=KnowingTemplate())


def streamed(answer: Any) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line)["choices"][0] for line in lines[:-1]]


def test_calls_are_read_from_the_answer():
    choice = client(hermes(TWO_CALLS)).post(CHAT, json=ASKED).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    message = choice["message"]
    assert message["content"] == "I look."
    assert [call["function"] for call in message["tool_calls"]] == [
        {"name": "get_weather", "arguments": '{"city": "Rome"}'},
        {"name": "stop", "arguments": "{}"},
    ]
    assert all(call["type"] == "function" and call["id"].startswith("call_") for call in message["tool_calls"])


@pytest.mark.parametrize(("said", "held"), [({"strict": True}, True), ({}, True), ({"strict": None}, True), ({"strict": False}, False)])
def test_arguments_obey_the_schema_unless_the_tool_is_said_not_to_be_strict(said: dict[str, Any], held: bool):
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, **said}
    runtime = hermes("")
    client(runtime).post(CHAT, json=ASKED | {"tools": [{"type": "function", "function": function}], "tool_choice": "required"})
    (request,) = runtime.engine.submitted  # pyright: ignore[reportAttributeAccessIssue]
    accepts = [request.grammar.accepts(f'<tool_call>\n{{"name": "f", "arguments": {text}}}\n</tool_call>') for text in ('{"a": 1}', '{"b": 1}')]
    assert accepts == [True, not held]


def test_a_schema_that_cannot_be_enforced_is_refused_with_the_way_out():
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"pattern": "(a)\\1"}}}}
    body = ASKED | {"tools": [{"type": "function", "function": function}]}
    error = client(hermes("")).post(CHAT, json=body).json()["error"]
    assert error["param"] == "tools[0].function.parameters" and "'strict': false" in error["message"]
    function["strict"] = False
    assert client(hermes("x")).post(CHAT, json=body).status_code == 200


def test_a_stream_adds_up_to_the_same():
    choices = streamed(client(hermes(TWO_CALLS)).post(CHAT, json=ASKED | {"stream": True}))
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(choice["delta"].get("content") or "" for choice in choices) == "I look."
    calls: dict[int, dict[str, str]] = {}
    for choice in choices:
        for call in choice["delta"].get("tool_calls", ()):
            if "id" in call:
                assert call["function"]["arguments"] == "" and call["type"] == "function"
                calls[call["index"]] = {"name": call["function"]["name"], "arguments": ""}
            else:
                calls[call["index"]]["arguments"] += call["function"]["arguments"]
    assert calls == {0: {"name": "get_weather", "arguments": '{"city": "Rome"}'}, 1: {"name": "stop", "arguments": "{}"}}
    assert [choice["finish_reason"] for choice in choices][-1] == "tool_calls"
    assert len(choices) > 20, "the arguments come as they are written"


OLDER: dict[str, Any] = {"messages": ASKED["messages"], "functions": [tool["function"] for tool in (WEATHER, STOP)]}
ONE_CALL = TWO_CALLS[: TWO_CALLS.rindex("\n<tool_call>")]


def test_functions_are_the_older_form_of_tools():
    choice = client(hermes(ONE_CALL)).post(CHAT, json=OLDER).json()["choices"][0]
    assert choice["finish_reason"] == "function_call"
    called = {"name": "get_weather", "arguments": '{"city": "Rome"}'}
    assert choice["message"] == {"role": "assistant", "content": "I look.", "refusal": None, "function_call": called}
    deltas = streamed(client(hermes(ONE_CALL)).post(CHAT, json=OLDER | {"stream": True}))
    calls = [delta["delta"]["function_call"] for delta in deltas if "function_call" in delta["delta"]]
    assert calls[0] == {"name": "get_weather", "arguments": ""} and "".join(call["arguments"] for call in calls) == called["arguments"]
    assert deltas[-1]["finish_reason"] == "function_call" and "tool_calls" not in str(deltas)
    plain = client(hermes("Sunny.")).post(CHAT, json=OLDER).json()["choices"][0]
    assert (plain["message"]["content"], plain["finish_reason"]) == ("Sunny.", "stop")


@pytest.mark.parametrize(
    ("choice", "good", "bad"),
    [
        ("auto", ["text", ONE_CALL], [TWO_CALLS]),
        ({"name": "stop"}, ['<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>'], ["text", ONE_CALL]),
    ],
)
def test_choices_of_functions(choice: Any, good: list[str], bad: list[str]):
    runtime = hermes("")
    client(runtime).post(CHAT, json=OLDER | {"function_call": choice})
    grammar = runtime.engine.submitted[0].grammar  # pyright: ignore[reportAttributeAccessIssue]
    assert all(map(grammar.accepts, good)) and not any(map(grammar.accepts, bad))
    assert client(hermes(ONE_CALL)).post(CHAT, json=OLDER | {"function_call": "none"}).json()["choices"][0]["finish_reason"] == "stop"


def test_results_of_functions():
    runtime = hermes("Sunny.")
    talk = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "function_call": {"name": "stop", "arguments": "{}"}},
        {"role": "function", "name": "stop", "content": "done"},
    ]
    assert client(runtime).post(CHAT, json=OLDER | {"messages": talk}).status_code == 200
    template: Any = runtime.model.chat_template
    seen = template.seen[-1]["messages"]
    call = {"id": "call_1", "type": "function", "function": {"name": "stop", "arguments": {}}}
    assert seen[1]["tool_calls"] == [call]
    assert seen[2] == {"role": "tool", "content": "done", "name": "stop", "tool_call_id": "call_1"}


def test_an_answer_without_calls_is_as_without_tools():
    choice = client(hermes("It is sunny. \n")).post(CHAT, json=ASKED).json()["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "It is sunny. \n", "refusal": None}
    assert choice["finish_reason"] == "stop"
    deltas = streamed(client(hermes("It is sunny. \n")).post(CHAT, json=ASKED | {"stream": True}))
    assert "".join(choice["delta"].get("content") or "" for choice in deltas) == "It is sunny. \n"


def test_a_call_that_is_cut_keeps_its_finish_reason():
    text = TWO_CALLS[: TWO_CALLS.index("Rome") + 2]
    choice = client(hermes(text, finish_reason="length")).post(CHAT, json=ASKED).json()["choices"][0]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"city": "Ro'


@pytest.mark.parametrize(
    ("more", "good", "bad"),
    [
        ({}, ["text", TWO_CALLS], ["<tool_call>\n{}"]),
        ({"tool_choice": "none"}, [], []),
        ({"tool_choice": "required"}, [TWO_CALLS[8:]], ["text", TWO_CALLS]),
        ({"parallel_tool_calls": False}, ["text"], [TWO_CALLS]),
        (
            {"tool_choice": {"type": "function", "function": {"name": "stop"}}},
            [TWO_CALLS[TWO_CALLS.index("\n<tool") + 1 :]],
            [TWO_CALLS[8:]],
        ),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "required", "tools": [STOP | {"function": {"name": "stop"}}]},
                }
            },
            [TWO_CALLS[TWO_CALLS.index("\n<tool") + 1 :]],
            [TWO_CALLS[8:]],
        ),
        ({"response_format": {"type": "json_object"}}, ["{}", TWO_CALLS[8:]], ["text"]),
        ({"response_format": {"type": "regex", "regex": "a+"}}, ["aa", TWO_CALLS[8:]], ["b"]),
    ],
)
def test_what_an_answer_may_be(more: dict[str, Any], good: list[str], bad: list[str]):
    runtime: Any = hermes("")
    assert client(runtime).post(CHAT, json=ASKED | more).status_code == 200
    grammar: Any = runtime.engine.submitted[0].grammar
    if not good:
        assert grammar is None
        return
    assert grammar is not None
    assert all(grammar.accepts(text) for text in good)
    assert not any(grammar.accepts(text) for text in bad)


HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "hello"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
]


def test_a_template_that_knows_tools_gets_them_and_earlier_calls():
    runtime: Any = hermes("fine")
    answer = client(runtime).post(CHAT, json=ASKED | {"messages": HISTORY})
    assert answer.status_code == 200, answer.text
    (seen,) = runtime.model.chat_template.seen
    assert [tool["function"]["name"] for tool in seen["tools"]] == ["get_weather", "stop"]
    assert seen["messages"][1]["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": {"city": "Rome"}}
    assert seen["messages"][2] == {"role": "tool", "content": "sunny", "tool_call_id": "call_1"}


def test_a_template_that_knows_none_is_told_in_messages():
    runtime: Any = fake_runtime(says('{"name": "stop", "arguments": {}}'), max_model_len=4096)
    body = client(runtime).post(CHAT, json=ASKED | {"messages": HISTORY}).json()
    assert body["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "stop", "arguments": "{}"}
    prompt = bytes(token for token in runtime.engine.submitted[0].prompt_token_ids if token < 256).decode()
    assert "system: You can call these functions:" in prompt
    assert 'assistant: {"name": "get_weather", "arguments": {"city": "Rome"}}' in prompt
    assert "user: <tool_response>\nsunny\n</tool_response>" in prompt


def test_the_format_can_be_set():
    written = '<function=get_weather>{"city": "Rome"}</function>'
    body = client(hermes(written), tool_call_format="function").post(CHAT, json=ASKED).json()
    assert body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"city": "Rome"}'


STRUCTURAL = {"type": "tag", "begin": "<t>", "content": {"type": "any_text"}, "end": "</t>"}


@pytest.mark.parametrize(
    "more",
    [
        {"response_format": {"type": "structural_tag", "format": STRUCTURAL}},
        {"structured_outputs": {"structural_tag": json.dumps({"type": "structural_tag", "format": STRUCTURAL})}},
        {"structured_outputs": {"structural_tag": STRUCTURAL}},
    ],
)
def test_structural_tags(more: dict[str, Any]):
    runtime: Any = fake_runtime(says("<t>a</t>"))
    answer = client(runtime).post(CHAT, json={"messages": [{"role": "user", "content": "hello"}], **more})
    assert answer.json()["choices"][0]["message"]["content"] == "<t>a</t>"
    grammar = runtime.engine.submitted[0].grammar
    assert grammar.accepts("<t>a</t>") and not grammar.accepts("a")


def test_the_old_form_of_structural_tags():
    runtime: Any = fake_runtime(says("hi"))
    form = {"type": "structural_tag", "structures": [{"begin": "<f=a>", "schema": True, "end": "</f>"}], "triggers": ["<f="]}
    answer = client(runtime).post(CHAT, json={"messages": [{"role": "user", "content": "hello"}], "response_format": form})
    assert answer.status_code == 200
    grammar = runtime.engine.submitted[0].grammar
    assert grammar.accepts("hi <f=a>[1]</f>") and not grammar.accepts("<f=b>")
