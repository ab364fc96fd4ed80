"""Responses of the server: JSON, errors, and event streams that notice when the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..openai.errors import ApiError
from .dialects import OPENAI, Dialect
from .encoding import to_json

T = TypeVar("T")

_RETRY_AFTER_S = {429: "1", 503: "5"}


def json_response(payload: dict[str, Any], *, status: int = 200) -> Response:
    return Response(to_json(payload), status_code=status, media_type="application/json")


def error_response(error: ApiError, dialect: Dialect = OPENAI) -> Response:
    response = json_response(dialect.error_body(error), status=error.status)
    if error.status in _RETRY_AFTER_S:
        response.headers["retry-after"] = _RETRY_AFTER_S[error.status]
    if error.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response


async def unless_disconnected(receive: Receive, work: Awaitable[T]) -> T:
    """Wait for `work`; if the client leaves first, cancel it and raise `ClientDisconnect`."""
    task = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect()
    finally:
        await _cancel(task, watcher)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cancel(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class EventStream(Response):
    """A response over an async generator of encoded events.

    Args:
        media_type: of the stream.
        events: closed when the stream ends or the client leaves.
        close: called after that, also if not one event was asked for; the place to abort a request.
    """

    def __init__(self, events: AsyncGenerator[bytes, None], *, media_type: str, close: Callable[[], Awaitable[None]]):
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"}, media_type=media_type)
        del self.headers["content-length"]
        self._events = events
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with contextlib.suppress(ClientDisconnect):
                await unless_disconnected(receive, self._send_all(send))
        finally:
            await self._events.aclose()
            await self._close()

    async def _send_all(self, send: Callable[[Any], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for event in self._events:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
