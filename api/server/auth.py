"""Bearer keys, checked before anything else of a request is read."""

from __future__ import annotations

import hmac
from collections.abc import MutableMapping, Sequence
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ..openai.errors import ApiError
from .dialects import dialect_of
from .record import record_of
from .responses import error_response

OPEN_PATHS = frozenset({"/health"})
_SCHEME = b"bearer "


class BearerAuth:
    """ASGI middleware: every path but `OPEN_PATHS` needs `Authorization: Bearer <one of the keys>`."""

    def __init__(self, app: ASGIApp, *, keys: Sequence[str]):
        self._app = app
        self._keys = tuple(key.encode() for key in keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or route_path(scope) in OPEN_PATHS or self._accepts(_bearer(scope)):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":  # before it is accepted, this is a 403
            await send({"type": "websocket.close", "code": 1008})
            return
        error = ApiError(401, "a valid API key is needed: send 'Authorization: Bearer <key>'", code="invalid_api_key")
        record_of(scope).error_code = error.code
        await error_response(error, dialect_of(route_path(scope)))(scope, receive, send)

    def _accepts(self, given: bytes) -> bool:
        # Every key is compared, in constant time, so that the time tells neither which key was near nor how near.
        matches = [hmac.compare_digest(given, key) for key in self._keys]
        return any(matches)


def route_path(scope: MutableMapping[str, Any]) -> str:
    """The path that routes are matched against; what a proxy or the Host header say about it plays no part."""
    return scope["path"].removeprefix(scope.get("root_path", ""))


def _bearer(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[: len(_SCHEME)].lower() == _SCHEME:
            return value[len(_SCHEME) :].strip()
    return b""
