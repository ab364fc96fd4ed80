"""Reading a request body: bounded in bytes and in time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from starlette.requests import Request

from ..openai.errors import ApiError

_DRAIN_FACTOR = 4


async def read_body(request: Request, *, max_bytes: int, timeout_s: float) -> bytes:
    """The whole body.

    Raises:
        ApiError: 413 if it is longer than `max_bytes`, 408 if it is not complete after `timeout_s`.
        ClientDisconnect: if the client went away.
    """
    try:
        with anyio.fail_after(timeout_s):
            return await _read(request, max_bytes)
    except TimeoutError:
        raise ApiError(408, f"the request body did not arrive within {timeout_s:g} s", code="request_timeout") from None


async def _read(request: Request, max_bytes: int) -> bytes:
    body = bytearray()
    stream = request.stream()
    async for chunk in stream:
        body += chunk
        if len(body) > max_bytes:
            await _drain(stream, max_bytes * _DRAIN_FACTOR)
            raise ApiError(413, f"the request body is larger than {max_bytes} bytes", code="request_too_large")
    return bytes(body)


async def _drain(stream: AsyncIterator[bytes], max_bytes: int) -> None:
    """Take a bounded rest off the wire, so that a client that is still sending gets to read the answer."""
    drained = 0
    async for chunk in stream:
        drained += len(chunk)
        if drained > max_bytes:
            return
