"""A server process: uvicorn with a shutdown that ends running answers instead of waiting for them or cutting them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Generator
from types import FrameType

import uvicorn

from ..async_engine import AsyncLLM
from .app import create_app
from .settings import ServerSettings

_POLL_S = 0.05
_LAST_RESORT_S = 5.0


def serve(
    llm: AsyncLLM, settings: ServerSettings, listener: socket.socket, *, on_ready: Callable[[], None], log_level: str = "warning"
) -> None:
    """Answer requests on `listener` until SIGINT or SIGTERM; then stop accepting, end what runs, and return.

    Args:
        on_ready: called once requests are accepted.
    """
    logging.basicConfig(level=log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    config = uvicorn.Config(
        create_app(llm, settings),
        log_config=None,
        log_level=log_level,
        access_log=log_level == "debug",
        lifespan="off",
        timeout_graceful_shutdown=int(settings.shutdown_grace_s + _LAST_RESORT_S),
    )
    _Server(config, llm, settings.shutdown_grace_s, on_ready).run(sockets=[listener])


def bind(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet, so that a taken port shows before a model is loaded and clients are refused until
    it is. Port 0 takes any free one. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, llm: AsyncLLM, grace_s: float, on_ready: Callable[[], None]):
        super().__init__(config)
        self._llm = llm
        self._grace_s = grace_s
        self._on_ready = on_ready
        self._impatient = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        drain = asyncio.create_task(self._drain())
        try:
            await super().shutdown(sockets=sockets)
        finally:
            drain.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await drain

    async def _drain(self) -> None:
        """Give running answers their grace, then end them with an error that their streams report."""
        deadline = asyncio.get_running_loop().time() + self._grace_s
        while self._llm.num_live and not self._impatient and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_POLL_S)
        await asyncio.to_thread(self._llm.close)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._impatient = self.should_exit
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """As uvicorn's, but a signal that ended the server is not raised again: it was obeyed, the process exits with 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        with super().capture_signals():
            try:
                yield
            finally:
                self._captured_signals.clear()
