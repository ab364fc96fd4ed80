"""A server process: uvicorn with a shutdown that ends running answers instead of waiting for them or cutting them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Generator
from types import FrameType

import uvicorn

from ..async_engine import AsyncLLM
from .app import create_app
from .http_protocol import http_protocol
from .logs import set_up_logging
from .settings import ServerSettings
from .transport import PLAIN, Transport

_POLL_S = 0.05
_LAST_RESORT_S = 5.0


def serve(
    llm: AsyncLLM, settings: ServerSettings, listener: socket.socket, *, on_ready: Callable[[], None], transport: Transport = PLAIN
) -> None:
    """Answer requests on `listener` until SIGINT or SIGTERM; then stop accepting, end what runs, and return.

    Args:
        on_ready: called once requests are accepted.

    Raises:
        OSError: a TLS file cannot be read (`ssl.SSLError` is one).
    """
    set_up_logging(transport.log_level, transport.log_format)
    config = uvicorn.Config(
        create_app(llm, settings),
        http=http_protocol(header_timeout_s=settings.header_timeout_s, write_timeout_s=settings.write_timeout_s),
        ws="none",
        root_path=settings.root_path,
        ssl_certfile=transport.tls_certificate,
        ssl_keyfile=transport.tls_key,
        proxy_headers=False,
        server_header=False,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=int(settings.shutdown_grace_s + _LAST_RESORT_S),
    )
    config.load()
    _Server(config, llm, settings.shutdown_grace_s, on_ready).run(sockets=[listener])


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
