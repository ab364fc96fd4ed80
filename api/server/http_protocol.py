"""HTTP/1.1 connections that may not dawdle over the head of a request."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def http_protocol(header_timeout_s: float) -> type[asyncio.Protocol]:
    """A protocol class for uvicorn: a connection that has not brought a whole head in time is closed.

    uvicorn itself bounds the size of a head and the idle time between requests, but waits for ever for a head that never ends, and
    each such connection costs a file descriptor.
    """

    class Protocol(H11Protocol):
        _head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_head()
            super().connection_lost(exc)

        def _watch_head(self) -> None:
            if self.conn.their_state is not h11.IDLE:
                self._forget_head()
            elif self._head_timer is None:
                self._head_timer = self.loop.call_later(header_timeout_s, self.transport.close)

        def _forget_head(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

    return Protocol
