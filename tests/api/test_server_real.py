"""A server process with a real model, driven by the official client."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

import httpx
import jsonschema
import openai
import pytest
from api_processes import API_KEY, Server
from pydantic import BaseModel, ConfigDict, Field

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["kind", "tall", "quick"]}, "maxItems": 2},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
TALK: list[Any] = [{"role": "user", "content": "Tell me about a person you made up."}]


class Weather(BaseModel):
    model_config = ConfigDict(extra="forbid")

    city: Literal["Paris", "Oslo"]
    celsius: Annotated[int, Field(ge=-40, le=50)]
    windy: bool


WEATHER = Weather.model_json_schema()


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0, timeout=120) as made:
        yield made


def schema_format(schema: Any, *, strict: bool = True) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": strict}}


def test_it_says_where_it_is_and_how_to_ask(server: Server):
    assert server.url.startswith("http://127.0.0.1:")
    assert not [line for line in server.lines if "Traceback" in line]
    assert server.process.stderr is not None
    command = server.process.stderr.readline()
    done = subprocess.run(["bash", "-c", command], env={**os.environ, "FORMCAST_API_KEY": API_KEY}, capture_output=True, check=True, timeout=120)
    assert json.loads(done.stdout)["usage"]["completion_tokens"] > 0


def test_a_plain_answer(client: openai.OpenAI):
    answer = client.chat.completions.create(model="small", messages=TALK, max_tokens=8, temperature=0)
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage and answer.usage.completion_tokens == 8


def test_a_stream_adds_up_to_the_plain_answer(client: openai.OpenAI):
    asked: dict[str, Any] = {"model": "small", "messages": TALK, "max_tokens": 12, "temperature": 0}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage and whole.usage and chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_a_schema_is_obeyed(client: openai.OpenAI):
    answer = client.chat.completions.create(
        model="small", messages=TALK, max_tokens=200, temperature=0, response_format=schema_format(PERSON)
    )
    assert answer.choices[0].finish_reason == "stop"
    jsonschema.validate(json.loads(answer.choices[0].message.content or ""), PERSON)


def test_parse_gives_an_instance(client: openai.OpenAI):
    answer = client.chat.completions.parse(model="small", messages=TALK, max_tokens=200, temperature=0, response_format=Weather)
    assert isinstance(answer.choices[0].message.parsed, Weather)


@pytest.mark.parametrize(
    ("extra", "allowed"),
    [
        ({"structured_outputs": {"choice": ["apple", "pear"]}}, {"apple", "pear"}),
        ({"guided_choice": ["apple", "pear"]}, {"apple", "pear"}),
        ({"structured_outputs": {"regex": "(x|yy)z"}}, {"xz", "yyz"}),
        ({"guided_regex": "(x|yy)z"}, {"xz", "yyz"}),
    ],
)
def test_constraints_of_vllm(client: openai.OpenAI, extra: dict[str, Any], allowed: set[str]):
    answer = client.chat.completions.create(model="small", messages=TALK, max_tokens=20, extra_body=extra)
    assert answer.choices[0].message.content in allowed


def test_beams_with_a_constraint(client: openai.OpenAI):
    extra = {"use_beam_search": True, "beam_width": 6, "structured_outputs": {"regex": "(x|yy){1,3}z"}}
    answer = client.completions.create(model="small", prompt="The code: ", n=3, max_tokens=20, extra_body=extra)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert all(re.fullmatch("(x|yy){1,3}z", choice.text) and choice.finish_reason == "stop" for choice in answer.choices)


def test_completions(client: openai.OpenAI):
    answer = client.completions.create(model="small", prompt=["One, two,", "A, B,"], max_tokens=4, temperature=0)
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert all(choice.text for choice in answer.choices)


def test_logprobs(client: openai.OpenAI):
    answer = client.chat.completions.create(model="small", messages=TALK, max_tokens=3, logprobs=True, top_logprobs=2, temperature=0)
    logprobs = answer.choices[0].logprobs
    assert logprobs and logprobs.content and len(logprobs.content) == 3
    assert all(entry.logprob <= 0 and len(entry.top_logprobs) == 2 for entry in logprobs.content)
    assert all(entry.token == entry.top_logprobs[0].token for entry in logprobs.content)


def test_a_seed_makes_answers_repeatable(client: openai.OpenAI):
    asked: dict[str, Any] = {"model": "small", "messages": TALK, "max_tokens": 8, "seed": 5, "temperature": 1.0}
    first, second = (client.chat.completions.create(**asked).choices[0].message.content for _ in range(2))
    assert first == second


def test_sixteen_at_once_free_and_constrained(client: openai.OpenAI):
    """Neighbours in a batch never see each other's constraint."""

    def ask(number: int) -> tuple[int, str, str]:
        kinds: list[dict[str, Any]] = [
            {"max_tokens": 16},
            {"response_format": schema_format(PERSON), "max_tokens": 200, "temperature": 0.3},
            {"extra_body": {"structured_outputs": {"choice": [f"only {number}"]}}, "max_tokens": 20},
            {"response_format": schema_format(WEATHER), "max_tokens": 200, "temperature": 0.3},
        ]
        options = kinds[number % 4]
        answer = client.chat.completions.create(model="small", messages=TALK, seed=number, **options)
        return number, answer.choices[0].message.content or "", answer.choices[0].finish_reason

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(16)))
    for number, text, finish_reason in answers:
        if number % 4 == 0:
            assert text
            continue
        assert finish_reason == "stop"
        if number % 4 == 1:
            jsonschema.validate(json.loads(text), PERSON)
        elif number % 4 == 2:
            assert text == f"only {number}"
        else:
            Weather.model_validate_json(text)


BAD: list[tuple[dict[str, Any], int, str, str]] = [
    ({"respones_format": {}}, 400, "unknown_parameter", "response_format"),
    ({"max_tokens": 0}, 400, "invalid_value", "max_tokens"),
    ({"max_tokens": 1_000_000}, 400, "context_length_exceeded", "max_tokens"),
    ({"messages": [{"role": "user", "content": "word " * 5000}]}, 400, "context_length_exceeded", "2048"),
    ({"model": "gpt-5"}, 404, "model_not_found", "gpt-5"),
    ({"response_format": schema_format({"type": "objekt"})}, 400, "invalid_grammar", "/type"),
    ({"response_format": schema_format({"allOf": [{"type": "string"}, {"type": "null"}]}, strict=False)}, 400, "invalid_grammar", "schema"),
    ({"structured_outputs": {"regex": "(a"}}, 400, "invalid_grammar", "regex"),
    ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, 400, "conflicting_constraints", "structured_outputs.choice"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, 400, "invalid_value", "letters"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("change", "status", "code", "mentions"), BAD)
def test_bad_requests(server: Server, change: dict[str, Any], status: int, code: str, mentions: str, stream: bool):
    body = {"model": "small", "messages": TALK, "max_tokens": 4, "stream": stream} | change
    answer = post(server, json.dumps(body).encode())
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), error
    assert mentions in error["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b'{"model": "\xff"}', 400),
        (b'{"messages": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", 400),
        (b'{"messages": "' + b"x" * (9 << 20) + b'"}', 413),
    ],
    ids=["malformed", "not utf-8", "deep", "large"],
)
def test_bad_bodies(server: Server, body: bytes, status: int):
    answer = post(server, body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def post(server: Server, body: bytes) -> httpx.Response:
    headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}
    return httpx.post(f"{server.url}/v1/chat/completions", content=body, headers=headers, timeout=120)


def test_keys_are_needed_but_for_health(server: Server, client: openai.OpenAI):
    assert httpx.get(f"{server.url}/health").status_code == 200
    assert httpx.get(f"{server.url}/v1/models").status_code == 401
    with (
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.models.list()
    assert "small" in [card.id for card in client.models.list()]


def test_a_client_that_leaves_frees_its_place(server: Server, client: openai.OpenAI):
    """More clients than places ask for long answers and leave; were they not aborted, the last request would have to wait for them."""
    body = json.dumps({"messages": TALK, "max_tokens": 1900, "ignore_eos": True, "stream": True}).encode()
    for _ in range(20):
        leave_in_the_middle(server, body)
    answer = client.chat.completions.create(model="small", messages=TALK, max_tokens=2)
    assert answer.choices[0].message.content


def leave_in_the_middle(server: Server, body: bytes) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {API_KEY}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        assert connection.recv(1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_running_streams_and_the_process(model: str, number: int):
    server = Server.serve(model, "--shutdown-timeout", "0", "--max-model-len", "2048")
    try:
        body = {"messages": TALK, "max_tokens": 1900, "ignore_eos": True, "stream": True}
        with httpx.stream("POST", f"{server.url}/v1/chat/completions", json=body, timeout=60) as answer:
            lines = answer.iter_lines()
            next(lines)
            code, rest = server.stop(number)
            *_, last = [line for line in lines if line]
        assert code == 0
        assert "Traceback" not in rest
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == "aborted"
    finally:
        server.kill()
