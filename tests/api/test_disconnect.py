"""A client that leaves ends its request; driven through raw ASGI, where the moment of leaving is exact."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from api_fakes import FakeEngine, Script, fake_runtime, hangs, says

from formcast.api.async_engine import AsyncLLM
from formcast.api.server.app import create_app
from formcast.api.server.body import read_body
from formcast.api.server.settings import ServerSettings

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}


class Connection:
    """One request to the app: messages the app sends are kept, and the client leaves when it is told to."""

    def __init__(self, script: Script, body: dict[str, Any]):
        runtime = fake_runtime(script)
        assert isinstance(runtime.engine, FakeEngine)
        self.engine = runtime.engine
        self.llm = AsyncLLM(runtime)
        self.app = create_app(self.llm, ServerSettings(served_model_names=("fake",)))
        self.sent: list[dict[str, Any]] = []
        self._body = json.dumps(body).encode()
        self._left = asyncio.Event()
        self._progress = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        if self._body:
            body, self._body = self._body, b""
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        self._progress.set()

    def leave(self) -> None:
        self._left.set()

    async def until_sent(self, count: int) -> None:
        while len(self.sent) < count:
            self._progress.clear()
            await self._progress.wait()

    async def until_submitted(self) -> None:
        while not self.engine.submitted:
            await asyncio.sleep(0)

    async def run(self) -> None:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "path": "/v1/chat/completions",
            "raw_path": b"/v1/chat/completions",
            "root_path": "",
            "scheme": "http",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        await self.app(scope, self.receive, self.send)


@pytest.mark.parametrize("stream", [False, True])
def test_leaving_before_the_first_token_aborts(stream: bool):
    async def scenario() -> Connection:
        connection = Connection(hangs(), BODY | {"stream": stream})
        running = asyncio.create_task(connection.run())
        await connection.until_submitted()
        connection.leave()
        await running
        return connection

    connection = asyncio.run(scenario())
    assert connection.engine.aborted == [connection.engine.submitted[0].request_id]
    assert connection.llm.num_live == 0


def test_leaving_a_stream_aborts_all_its_answers():
    async def scenario() -> Connection:
        connection = Connection(hangs("abc"), BODY | {"stream": True, "n": 2})
        running = asyncio.create_task(connection.run())
        await connection.until_sent(1 + 2 + 6)  # start, two roles, six letters
        assert connection.engine.aborted == []
        connection.leave()
        await running
        return connection

    connection = asyncio.run(scenario())
    assert sorted(connection.engine.aborted) == sorted(request.request_id for request in connection.engine.submitted)
    assert connection.llm.num_live == 0


def test_leaving_as_the_stream_begins_aborts():
    async def scenario() -> Connection:
        connection = Connection(hangs("a"), BODY | {"stream": True})
        connection.leave()
        await connection.run()
        return connection

    connection = asyncio.run(scenario())
    assert connection.engine.aborted == [request.request_id for request in connection.engine.submitted]
    assert connection.llm.num_live == 0


def test_a_finished_stream_aborts_nothing():
    async def scenario() -> Connection:
        connection = Connection(says("ok"), BODY | {"stream": True})
        await connection.run()
        return connection

    connection = asyncio.run(scenario())
    assert connection.engine.aborted == []
    assert connection.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


def test_closing_the_engine_ends_a_stream_with_an_error_event():
    async def scenario() -> Connection:
        connection = Connection(hangs("a"), BODY | {"stream": True})
        running = asyncio.create_task(connection.run())
        await connection.until_sent(3)
        connection.llm.close()
        await running
        return connection

    connection = asyncio.run(scenario())
    last_event = connection.sent[-2]["body"]
    assert json.loads(last_event.removeprefix(b"data: "))["error"]["code"] == "aborted"


def test_a_body_that_does_not_come_is_a_408():
    from starlette.requests import Request

    from formcast.api.openai.errors import ApiError

    async def never() -> Any:
        await asyncio.Event().wait()

    async def scenario() -> None:
        await read_body(Request({"type": "http"}, never), max_bytes=10, timeout_s=0.01)

    with pytest.raises(ApiError) as caught:
        asyncio.run(scenario())
    assert caught.value.status == 408
