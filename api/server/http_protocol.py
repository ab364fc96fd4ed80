"""HTTP/1.1 connections that may dawdle neither over the head of a request nor over what they are sent."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_CHECKS_PER_TIMEOUT = 4
_NO_LINGER = struct.pack("ii", 1, 0)


def http_protocol(*, header_timeout_s: float, write_timeout_s: float) -> type[asyncio.Protocol]:
    """A protocol class for uvicorn that ends connections which would stay for ever.

    uvicorn itself bounds the size of a head and the idle time between requests, but waits for ever for a head that never ends, and for
    a client to take what was written: even closing a connection waits for that. Each such connection costs a file descriptor, its
    buffer and the answer that is being made for it.

    Args:
        header_timeout_s: a connection that has not brought a whole head in this time is closed.
        write_timeout_s: one that has taken no byte of what is waiting for it in this time is cut, and so reads as disconnected.
    """

    class Protocol(H11Protocol):
        _head_timer: asyncio.TimerHandle | None = None
        _stall_watch: _StallWatch

        def connection_made(self, transport: Any) -> None:
            counted = _CountedTransport(transport)
            self._stall_watch = _StallWatch(counted, write_timeout_s, self.loop)
            super().connection_made(counted)  # type: ignore[arg-type]
            self._watch_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_head()
            self._stall_watch.stop()
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


class _CountedTransport:
    """A transport that knows how much has left it."""

    def __init__(self, transport: asyncio.Transport):
        self._transport = transport
        self._num_written = 0

    def write(self, data: bytes) -> None:
        self._num_written += len(data)
        self._transport.write(data)

    @property
    def num_sent(self) -> int:
        """Bytes that the operating system has taken, which it does as long as the peer reads."""
        return self._num_written - self._transport.get_write_buffer_size()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _StallWatch:
    """Cuts a connection that has bytes waiting and takes none of them for `timeout_s`, give or take a quarter."""

    def __init__(self, transport: _CountedTransport, timeout_s: float, loop: asyncio.AbstractEventLoop):
        self._transport = transport
        self._timeout_s = timeout_s
        self._loop = loop
        self._num_sent = 0
        self._moved_at = loop.time()
        self._schedule()

    def stop(self) -> None:
        self._timer.cancel()

    def _schedule(self) -> None:
        self._timer = self._loop.call_later(self._timeout_s / _CHECKS_PER_TIMEOUT, self._check)

    def _check(self) -> None:
        num_sent = self._transport.num_sent
        if num_sent != self._num_sent or not self._transport.get_write_buffer_size():
            self._num_sent, self._moved_at = num_sent, self._loop.time()
        elif self._loop.time() - self._moved_at >= self._timeout_s:
            self._cut()
            return
        self._schedule()

    def _cut(self) -> None:
        """Also forget what the operating system still holds for the peer; otherwise that waits for it a good while longer."""
        connection: socket.socket = self._transport.get_extra_info("socket")
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._transport.abort()
