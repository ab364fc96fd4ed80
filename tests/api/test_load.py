"""Many clients of mixed kinds at once: no answer is lost, doubled or somebody else's, every constraint holds, memory stays flat."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import jsonschema
import pytest
from api_processes import Server

pytestmark = pytest.mark.slow

NUM_CLIENTS = 64
SECONDS = float(os.environ.get("FORMCAST_LOAD_SECONDS", "60"))
MAX_GROWTH_BYTES = 64 << 20
SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "kind": {"enum": ["a", "b"]}, "ok": {"type": "boolean"}},
    "required": ["id", "kind", "ok"],
    "additionalProperties": False,
}
Ask = Callable[[httpx.AsyncClient, int], Awaitable[None]]


@pytest.fixture(scope="module")
def server(model: str) -> Iterator[Server]:
    bounds = ("--max-model-len", "512", "--max-num-seqs", "32", "--grammar-cache-memory-bytes", str(64 << 20))
    started = Server.serve(model, "--served-model-name", "small", *bounds)
    yield started
    started.kill()


def talk(number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"Hello, this is client call {number}."}]


async def post(client: httpx.AsyncClient, path: str, body: Any) -> Any:
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer


async def choice(client: httpx.AsyncClient, number: int) -> None:
    body = {"messages": talk(number), "max_tokens": 30, "structured_outputs": {"choice": [f"only {number}"]}}
    made = (await post(client, "/v1/chat/completions", body)).json()
    assert made["choices"][0]["message"]["content"] == f"only {number}"
    assert made["choices"][0]["finish_reason"] == "stop"


async def streamed_schema(client: httpx.AsyncClient, number: int) -> None:
    schema = SCHEMA | {"properties": SCHEMA["properties"] | {"id": {"const": number}}}
    compact = {"json": schema, "disable_any_whitespace": True}  # a small model fills its budget with white space where it may
    body = {"messages": talk(number), "max_tokens": 80, "stream": True, "structured_outputs": compact, "seed": number}
    text = (await post(client, "/v1/chat/completions", body)).text
    *chunks, done = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert done == "[DONE]"
    choices = [json.loads(chunk)["choices"][0] for chunk in chunks]
    assert choices[-1]["finish_reason"] == "stop"
    value = json.loads("".join(choice["delta"].get("content", "") for choice in choices))
    jsonschema.validate(value, schema)
    assert value["id"] == number


async def free(client: httpx.AsyncClient, number: int) -> None:
    made = (await post(client, "/v1/completions", {"prompt": f"Call {number}:", "max_tokens": 12, "ignore_eos": True})).json()
    assert made["usage"]["completion_tokens"] == 12


async def response(client: httpx.AsyncClient, number: int) -> None:
    text = {"format": {"type": "regex", "regex": f"r{number}x+y"}}
    made = (await post(client, "/v1/responses", {"input": f"Call {number}", "max_output_tokens": 24, "text": text})).json()
    assert made["output"][0]["content"][0]["text"].startswith(f"r{number}x")


async def ollama(client: httpx.AsyncClient, number: int) -> None:
    body = {"model": "small", "messages": talk(number), "format": {"const": f"o{number}"}, "options": {"num_predict": 30}}
    lines = (await post(client, "/api/chat", body)).text.splitlines()
    assert "".join(json.loads(line)["message"]["content"] for line in lines).strip() == f'"o{number}"'


async def tgi(client: httpx.AsyncClient, number: int) -> None:
    body = {"inputs": f"Call {number}", "parameters": {"grammar": {"type": "regex", "value": f"t{number}"}, "max_new_tokens": 20}}
    assert (await post(client, "/generate", body)).json() == {"generated_text": f"t{number}"}


async def leaves(client: httpx.AsyncClient, number: int) -> None:
    body = {"messages": talk(number), "max_tokens": 300, "ignore_eos": True, "stream": True}
    async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        assert answer.status_code == 200
        async for _ in answer.aiter_lines():
            return


async def refused(client: httpx.AsyncClient, number: int) -> None:
    answer = await client.post("/v1/chat/completions", json={"messages": talk(number), "regex": f"({number}"})
    assert answer.status_code == 400


KINDS: tuple[Ask, ...] = (choice, streamed_schema, free, response, ollama, tgi, leaves, refused)


def meters(server: Server) -> dict[str, float]:
    lines = httpx.get(f"{server.url}/metrics", timeout=60).text.splitlines()
    return {line.rsplit(" ", 1)[0].split("{")[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


@pytest.mark.timeout(int(SECONDS) + 240)
def test_many_clients_of_mixed_kinds(server: Server):
    done: Counter[str] = Counter()
    memory: list[float] = []
    deadline = time.monotonic() + SECONDS

    async def one_client(client: httpx.AsyncClient, place: int) -> None:
        rng = random.Random(place)
        number = place * 100_000
        while time.monotonic() < deadline:
            ask = rng.choice(KINDS)
            await ask(client, number)
            done[ask.__name__] += 1
            number += 1

    async def watch() -> None:
        while time.monotonic() < deadline:
            await asyncio.sleep(SECONDS / 10)
            memory.append((await asyncio.to_thread(meters, server))["process_resident_memory_bytes"])

    async def scenario() -> None:
        limits = httpx.Limits(max_connections=NUM_CLIENTS)
        async with httpx.AsyncClient(base_url=server.url, timeout=240, limits=limits) as client:
            await asyncio.gather(watch(), *(one_client(client, place) for place in range(NUM_CLIENTS)))

    asyncio.run(scenario())
    print(f"{sum(done.values())} answers in {SECONDS:g} s: {dict(done)}; memory {[round(value / 1e6) for value in memory]} MB")
    assert set(done) == {ask.__name__ for ask in KINDS}
    assert memory[-1] - memory[len(memory) // 2] < MAX_GROWTH_BYTES
    while meters(server)["vllm:num_requests_running"]:
        time.sleep(0.1)
    assert httpx.get(f"{server.url}/health", timeout=60).status_code == 200
