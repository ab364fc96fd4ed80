"""The requests of one asynchronous call: outputs cross from the engine's thread to the event loop, and nothing outlives the call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from ..engine.request import Request, RequestOutput
from .ports import Engine

Tagged = tuple[int, RequestOutput]


async def stream(engine: Engine, requests: Sequence[Request]) -> AsyncGenerator[Tagged, None]:
    """Outputs of `requests`, each with the index of its request, in order of arrival, until all have finished.

    Closing or cancelling the generator aborts what is still running.

    Raises:
        InvalidRequest, EngineOverloaded, EngineStopped: from `Engine.submit`; requests already queued are aborted.
    """
    inbox = _Inbox()
    live: set[str] = set()
    try:
        for index, request in enumerate(requests):
            engine.submit(request, partial(inbox.put, index))
            live.add(request.request_id)
        while live:
            index, output = await inbox.get()
            if output.finished:
                live.discard(output.request_id)
            yield index, output
    finally:
        for request_id in live:
            engine.abort(request_id)


class _Inbox:
    """A queue that any thread may put into and one task takes from."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Tagged] = asyncio.Queue()

    def put(self, index: int, output: RequestOutput) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to read it
            self._loop.call_soon_threadsafe(self._queue.put_nowait, (index, output))

    async def get(self) -> Tagged:
        return await self._queue.get()
