"""`/v1/responses`, by hand and with the official client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import openai
import pytest
from api_fakes import echoes, fake_runtime, says
from api_processes import API_KEY, Server
from pydantic import BaseModel, ConfigDict, Field
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings
from formcast.engine.request import GenerationError

PATH = "/v1/responses"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


def api(runtime: Runtime) -> TestClient:
    app = create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",)))
    return TestClient(app, raise_server_exceptions=False)


def events(text: str) -> list[dict[str, Any]]:
    """Payloads of a stream, each under the name of its type."""
    found = []
    for block in text.split("\n\n"):
        if block:
            name, data = block.split("\n")
            found.append(json.loads(data.removeprefix("data: ")))
            assert name == f"event: {found[-1]['type']}"
    return found


def output_text(response: dict[str, Any]) -> str:
    return response["output"][0]["content"][0]["text"]


def test_a_plain_response():
    answer = api(fake_runtime(says("hi"))).post(PATH, json={"input": "hello", "metadata": {"k": "v"}, "store": False}).json()
    assert (answer["object"], answer["status"], answer["store"], answer["metadata"]) == ("response", "completed", False, {"k": "v"})
    assert answer["id"].startswith("resp-")
    item = answer["output"][0]
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    assert item["content"] == [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}]
    assert answer["usage"]["output_tokens"] == 2
    assert answer["usage"]["total_tokens"] == answer["usage"]["input_tokens"] + 2


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ({"input": "a"}, "user: a\nassistant:"),
        ({"input": "a", "instructions": "be"}, "system: be\nuser: a\nassistant:"),
        ({"input": [{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}]}, "system: d\nuser: u\nassistant:"),
        ({"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}]}, "user: x\nassistant:"),
    ],
)
def test_input_becomes_messages(body: dict[str, Any], prompt: str):
    assert output_text(api(fake_runtime(echoes)).post(PATH, json=body).json()) == prompt


def test_an_answer_can_be_sent_back():
    first = api(fake_runtime(says("hi"))).post(PATH, json={"input": "hello"}).json()
    talk = [{"role": "user", "content": "hello"}, *first["output"], {"role": "user", "content": "more"}]
    assert (
        output_text(api(fake_runtime(echoes)).post(PATH, json={"input": talk}).json())
        == "user: hello\nassistant: hi\nuser: more\nassistant:"
    )


def test_a_cut_response_is_incomplete():
    answer = api(fake_runtime(says("h", finish_reason="length"))).post(PATH, json={"input": "x", "max_output_tokens": 1}).json()
    assert (answer["status"], answer["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_events_in_their_order():
    found = events(api(fake_runtime(says("hi"))).post(PATH, json={"input": "x", "stream": True}).text)
    assert [event["type"].removeprefix("response.") for event in found] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    assert "".join(event["delta"] for event in found if event["type"] == "response.output_text.delta") == "hi"
    assert found[6]["text"] == output_text(found[-1]["response"]) == "hi"
    assert found[0]["response"]["status"] == "in_progress" and found[-1]["response"]["usage"]["output_tokens"] == 2


def test_a_failure_in_a_stream_is_one_counted_error_event():
    runtime = fake_runtime(says("h", finish_reason="error", error=GenerationError("boom")))
    *rest, last = events(api(runtime).post(PATH, json={"input": "x", "stream": True}).text)
    assert (last["type"], last["message"], last["sequence_number"]) == ("error", "boom", len(rest))


@pytest.mark.parametrize(
    ("fields", "admits", "refuses"),
    [
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}}}, '{"a": 1}', "{}"),
        ({"text": {"format": {"type": "json_object"}}}, "{}", "[]"),
        ({"text": {"format": {"type": "regex", "regex": "a+"}}}, "aa", "b"),
        ({"text": {"format": {"type": "choice", "choice": ["x", "y"]}}}, "y", "z"),
        ({"text": {"format": {"type": "grammar", "grammar": 'root ::= "q"'}}}, "q", ""),
        ({"structured_outputs": {"regex": "a+"}}, "a", ""),
    ],
)
def test_constraints(fields: dict[str, Any], admits: str, refuses: str):
    runtime = fake_runtime(says("x"))
    answer = api(runtime).post(PATH, json={"input": "x"} | fields)
    assert answer.status_code == 200
    grammar = runtime.engine.submitted[0].grammar  # pyright: ignore[reportAttributeAccessIssue]
    assert grammar.accepts(admits) and not grammar.accepts(refuses)
    if "text" in fields:
        assert answer.json()["text"] == fields["text"]


def test_text_and_harmless_options_are_no_constraint():
    runtime = fake_runtime(says("x"))
    harmless = {"tools": [], "tool_choice": "auto", "truncation": "disabled", "background": False, "reasoning": {}, "service_tier": "auto"}
    body = {"input": "x", "text": {"format": {"type": "text"}}, "previous_response_id": None, **harmless}
    assert api(runtime).post(PATH, json=body).status_code == 200
    assert runtime.engine.submitted[0].grammar is None  # pyright: ignore[reportAttributeAccessIssue]


def test_parameters_reach_the_engine():
    runtime = fake_runtime(says("x"))
    given = {"temperature": 0.5, "top_p": 0.5, "seed": 7, "top_k": 3, "priority": 2, "cache_salt": "s", "stop": "E"}
    more = {"max_output_tokens": 9, "top_logprobs": 2, "include": ["message.output_text.logprobs"]}
    assert api(runtime).post(PATH, json={"input": "x"} | given | more).status_code == 200
    request = runtime.engine.submitted[0]  # pyright: ignore[reportAttributeAccessIssue]
    assert (request.priority, request.cache_salt, request.params.stop) == (2, "s", ("E",))
    assert (request.params.max_tokens, request.params.logprobs, request.params.seed) == (9, 2, 7)


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "input"),
    ({"input": []}, "input"),
    ({"input": 5}, "input"),
    ({"input": "x", "inptu": "y"}, "inptu"),
    ({"input": [5]}, "input[0]"),
    ({"input": [{"role": "wizard", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user", "contnt": "x"}]}, "input[0].contnt"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0]"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
    ({"input": [{"type": "web_search_call", "id": "w"}]}, "input[0].type"),
    ({"input": "x", "previous_response_id": "resp_1"}, "previous_response_id"),
    ({"input": "x", "conversation": "c"}, "conversation"),
    ({"input": "x", "store": True}, "store"),
    ({"input": "x", "background": True}, "background"),
    ({"input": "x", "truncation": "auto"}, "truncation"),
    ({"input": "x", "include": ["file_search_call.results"]}, "include"),
    ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
    ({"input": "x", "max_output_tokens": 1000}, "max_output_tokens"),
    ({"input": "x" * 300}, "input"),
    ({"input": "x", "top_logprobs": 21}, "top_logprobs"),
    ({"input": "x", "stop": ["a"] * 5}, "stop"),
    ({"input": "x", "metadata": {"k": 1}}, "metadata.k"),
    ({"input": "x", "text": {"verbosity": "high"}}, "text.verbosity"),
    ({"input": "x", "text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
    ({"input": "x", "text": {"format": {"type": "json_schema", "schema": {"type": "objekt"}}}}, "text.format.schema"),
    ({"input": "x", "text": {"format": {"type": "json_schema", "schema": {}, "strict": True}}}, "text.format.schema"),
    ({"input": "x", "text": {"format": {"type": "json_object", "schema": {}}}}, "text.format.schema"),
    ({"input": "x", "text": {"format": {"type": "regex"}}}, "text.format.regex"),
    ({"input": "x", "text": {"format": {"type": "regex", "regex": "a"}}, "structured_outputs": {"regex": "b"}}, "structured_outputs.regex"),
]


@pytest.mark.parametrize(("body", "param"), BAD)
def test_bad_bodies(body: dict[str, Any], param: str):
    answer = api(fake_runtime(echoes)).post(PATH, json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text


# --- the official client ---------------------------------------------------------------------------------------------------


class Weather(BaseModel):
    model_config = ConfigDict(extra="forbid")

    city: Literal["Paris", "Oslo"]
    celsius: Annotated[int, Field(ge=-40, le=50)]


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0, timeout=120) as made:
        yield made


ASKED: dict[str, Any] = {"model": "small", "input": "Tell me of the weather.", "temperature": 0}


def test_create(client: openai.OpenAI):
    made = client.responses.create(**ASKED, max_output_tokens=8, store=False)
    assert made.output_text and made.status == "incomplete"
    assert made.usage and made.usage.output_tokens == 8


def test_parse(client: openai.OpenAI):
    made = client.responses.parse(**ASKED, text_format=Weather, max_output_tokens=60)
    assert isinstance(made.output_parsed, Weather) and made.status == "completed"


def test_stream(client: openai.OpenAI):
    whole = client.responses.create(**ASKED, max_output_tokens=10)
    found = list(client.responses.create(**ASKED, max_output_tokens=10, stream=True))
    assert "".join(event.delta for event in found if event.type == "response.output_text.delta") == whole.output_text
    assert found[-1].type == "response.incomplete"


def test_stream_helper_with_a_type(client: openai.OpenAI):
    with client.responses.stream(**ASKED, text_format=Weather, max_output_tokens=60) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert isinstance(final.output_parsed, Weather)


def test_errors_reach_the_client(client: openai.OpenAI):
    with pytest.raises(openai.BadRequestError, match="never kept"):
        client.responses.create(**ASKED, previous_response_id="resp_1")


def test_async(server: Server):
    async def scenario() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0, timeout=120) as client:
            made, parsed = await asyncio.gather(
                client.responses.create(**ASKED, max_output_tokens=5),
                client.responses.parse(**ASKED, text_format=Weather, max_output_tokens=60),
            )
            assert made.output_text and isinstance(parsed.output_parsed, Weather)
            async with client.responses.stream(**ASKED, max_output_tokens=5) as stream:
                assert [event.type async for event in stream][-1] == "response.incomplete"

    asyncio.run(scenario())
