"""A server with a real model among hostile clients: every answer is a 4xx, an abort or a 200, and /health stays 200."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from api_processes import Server

pytestmark = pytest.mark.slow

CHAT = "/v1/chat/completions"
TALK: list[Any] = [{"role": "user", "content": "hello"}]
HELLO: dict[str, Any] = {"messages": TALK, "max_tokens": 4}
LONG: dict[str, Any] = {"messages": TALK, "max_tokens": 1500, "ignore_eos": True, "stream": True}
PROMPT_S = 60


@pytest.fixture(scope="module")
def server(model: str) -> Iterator[Server]:
    started = Server.serve(model, "--max-model-len", "2048", "--max-num-seqs", "8", "--max-waiting", "16")
    yield started
    started.kill()


@pytest.fixture(autouse=True)
def still_well(server: Server) -> Iterator[None]:
    """After each attack the server is up, answers, and has given every place back."""
    yield
    assert httpx.get(f"{server.url}/health", timeout=PROMPT_S).status_code == 200
    until_idle(server)
    answer = post(server, HELLO)
    assert answer.status_code == 200 and answer.json()["choices"][0]["message"]["content"]


def until_idle(server: Server) -> None:
    deadline = time.monotonic() + PROMPT_S
    while True:
        text = httpx.get(f"{server.url}/metrics", timeout=PROMPT_S).text
        counts = [line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith("vllm:num_requests_")]
        if counts == ["0.0", "0.0"]:
            return
        assert time.monotonic() < deadline, counts
        time.sleep(0.1)


def post(server: Server, body: Any, path: str = CHAT) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{server.url}{path}", content=content, timeout=120)


def address(server: Server) -> tuple[str, int]:
    host, port = server.url.removeprefix("http://").split(":")
    return host, int(port)


def request(body: bytes, *, length: int | None = None) -> bytes:
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length or len(body)}\r\n\r\n"
    return head.encode() + body


CLIENT = """
import http.client, json, sys
connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]))
connection.request("POST", sys.argv[3], sys.argv[4].encode(), {"Content-Type": "application/json"})
response = connection.getresponse()
print(response.readline().decode(), flush=True)
while response.readline():
    pass
"""


def test_clients_that_are_killed(server: Server):
    command = [sys.executable, "-c", CLIENT, *map(str, address(server)), CHAT, json.dumps(LONG)]
    clients = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(8)]
    for client in clients:
        with client:
            assert client.stdout and client.stdout.readline()
            os.kill(client.pid, signal.SIGKILL)


def test_readers_that_stall_and_leave(server: Server):
    connections = [socket.create_connection(address(server)) for _ in range(8)]
    for connection in connections:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.sendall(request(json.dumps(LONG).encode()))
    assert httpx.get(f"{server.url}/health", timeout=PROMPT_S).status_code == 200
    for connection in connections:
        assert connection.recv(1)
        connection.close()


def test_bodies_that_are_half_sent(server: Server):
    connections = [socket.create_connection(address(server)) for _ in range(50)]
    for number, connection in enumerate(connections):
        body = json.dumps(HELLO).encode()
        connection.sendall(request(body[: number % len(body)], length=len(body)))
    assert httpx.get(f"{server.url}/health", timeout=PROMPT_S).status_code == 200
    for connection in connections:
        connection.close()


def test_garbage_on_the_wire(server: Server):
    for data in (b"\x00" * 1000, b"GET\r\n\r\n", b"\x16\x03\x01" + os.urandom(500), b"POST / HTTP/9.9\r\n\r\n", b"A" * 300_000):
        with socket.create_connection(address(server)) as connection:
            connection.settimeout(30)
            try:
                connection.sendall(data)
                answer = connection.recv(100)
            except ConnectionError:
                continue
            assert answer == b"" or b" 400 " in answer


def deep(levels: int) -> Any:
    return "[" * levels + "]" * levels


def deep_schema(levels: int) -> bytes:
    schema = '{"properties":{"a":' * levels + "true" + "}}" * levels
    return b'{"messages":[{"role":"user","content":"x"}],"max_tokens":4,"guided_json":' + schema.encode() + b"}"


BIG_ENUM = [f"value number {number}" for number in range(100_000)]
ATTACKS: list[tuple[str, Any, tuple[int, ...]]] = [
    ("10 MB", HELLO | {"user": "x" * 10_000_000}, (413,)),
    ("7 MB of text", HELLO | {"messages": [{"role": "user", "content": "word " * 1_400_000}]}, (400,)),
    ("deep json", b'{"messages":' + deep(20_000).encode() + b"}", (400,)),
    ("deep in a string", HELLO | {"guided_json": deep(20_000)}, (400,)),
    ("deep schema", deep_schema(20_000), (400,)),
    ("deep schema in a string", HELLO | {"guided_json": '{"items":' * 20_000 + "true" + "}" * 20_000}, (200, 400)),
    ("big enum", HELLO | {"guided_json": {"enum": BIG_ENUM}, "max_tokens": 20}, (200, 400)),
    ("big choice", HELLO | {"structured_outputs": {"choice": BIG_ENUM}, "max_tokens": 20}, (200, 400)),
    ("too big an enum", HELLO | {"guided_json": {"enum": list(range(300_000))}}, (400,)),
    ("exponential regex", HELLO | {"regex": "(a|aa)*b{500}(.*a.{30})+"}, (200, 400)),
    ("nested counts", HELLO | {"regex": "((((a{1,100}){1,100}){1,100}){1,100}){1,100}"}, (200, 400)),
    ("wide counts", HELLO | {"regex": "(.{0,3000}x){0,50}"}, (200, 400)),
    ("deep regex", HELLO | {"regex": "(" * 20_000 + "a" + ")" * 20_000}, (200, 400)),
    ("lookarounds", HELLO | {"regex": "(?=.*a)(?=.*b)(?=.*c)(?!.*d)(?=.*e).{8,500}"}, (200, 400)),
    ("pattern bomb", HELLO | {"guided_json": {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"}}, (200, 400)),
    ("many patterns", HELLO | {"guided_json": {"allOf": [{"pattern": f".*{c}.{{20}}"} for c in "abcdefgh"], "type": "string"}}, (200, 400)),
    ("oneOf tower", HELLO | {"guided_json": {"oneOf": [{"required": [f"k{number}"]} for number in range(60)]}}, (200, 400)),
    ("endless refs", HELLO | {"guided_json": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}}, (400,)),
    ("remote ref", HELLO | {"guided_json": {"$ref": "http://127.0.0.1:1/schema"}}, (400,)),
    ("huge numbers", HELLO | {"guided_json": {"type": "integer", "multipleOf": 10**300, "minimum": -(10**300)}}, (200, 400)),
    ("huge counts", HELLO | {"guided_json": {"type": "string", "minLength": 10**18}}, (200, 400)),
    ("ambiguous grammar", HELLO | {"structured_outputs": {"grammar": 'start: s\ns: s s | "a" | s s s'}, "max_tokens": 50}, (200, 400)),
    ("wide grammar", HELLO | {"structured_outputs": {"grammar": "start: " + " | ".join(f'"x{n}"' for n in range(50_000))}}, (200, 400)),
    ("deep grammar", HELLO | {"grammar": "root ::= " + "(" * 20_000 + '"a"' + ")" * 20_000}, (200, 400)),
    ("file import", HELLO | {"structured_outputs": {"grammar": "%import ......etc.passwd\nstart: passwd"}}, (400,)),
    ("template from outside", HELLO | {"chat_template": "{{ 1 }}"}, (400,)),
    ("template variables", HELLO | {"chat_template_kwargs": {"messages": [], "x": "{{ self.__init__.__globals__ }}"}}, (400,)),
    (
        "template in a message",
        HELLO | {"messages": [{"role": "user", "content": "{% for x in range(10**9) %}{{ x }}{% endfor %}"}]},
        (200,),
    ),
    ("ten thousand turns", HELLO | {"messages": TALK * 10_000}, (400,)),
    ("too many turns", HELLO | {"messages": TALK * 10_001}, (400,)),
    ("many answers", HELLO | {"n": 10_000}, (400,)),
    ("many unknown fields", HELLO | {f"field{number}": number for number in range(50_000)}, (400,)),
    ("long unknown field", HELLO | {"x" * 1_000_000: 1}, (400,)),
    ("lone surrogates", b'{"messages":[{"role":"user","content":"\\ud800"}]}', (400,)),
    ("not a number", b'{"messages":[{"role":"user","content":"x"}],"temperature":NaN}', (400,)),
    ("long number", b'{"messages":[{"role":"user","content":"x"}],"seed":' + b"9" * 100_000 + b"}", (400,)),
]


@pytest.mark.parametrize(("body", "statuses"), [attack[1:] for attack in ATTACKS], ids=[attack[0] for attack in ATTACKS])
def test_hostile_bodies(server: Server, body: Any, statuses: tuple[int, ...]):
    started = time.monotonic()
    answer = post(server, body)
    assert answer.status_code in statuses, answer.text[:500]
    if answer.status_code != 200:
        assert answer.json()["error"]["message"] and len(answer.text) < 5000
    assert time.monotonic() - started < PROMPT_S


def test_a_trusted_template_cannot_run_away(model: str):
    server = Server.serve(model, "--trust-request-chat-template", "--max-model-len", "512")
    try:
        for source in (
            "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
            "{{ 'x' * 10**10 }}",
            "{{ 10 ** 10 ** 10 }}",
            "{{ ''.__class__.__mro__[1].__subclasses__() }}",
            "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
            "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "{{ messages | tojson(indent=10**9) }}",
        ):
            answer = post(server, HELLO | {"chat_template": source})
            assert answer.status_code == 400, (source, answer.text[:300])
        assert post(server, HELLO | {"chat_template": "{{ messages[0].content }}"}).status_code == 200
    finally:
        server.kill()


def test_more_requests_than_places(server: Server):
    """Beyond the queue requests are refused at once, and told when to come back; the others are answered."""
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda number: post(server, HELLO | {"seed": number, "max_tokens": 16}), range(64)))
    statuses = {answer.status_code for answer in answers}
    assert statuses <= {200, 503} and 200 in statuses
    assert all(answer.headers.get("retry-after") for answer in answers if answer.status_code == 503)
