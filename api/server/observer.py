"""The outermost layer: request ids in and out, one log line and one count a request."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .metrics import Metrics
from .record import RequestRecord

_log = logging.getLogger("formcast.requests")

_HEADER = b"x-request-id"
_SANE_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_OTHER_PATHS = "(other)"


class Observer:
    """ASGI middleware. It never sees a body.

    Args:
        paths: endpoint -> path of its route; whatever else a client asks for is counted together.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics, paths: Mapping[Any, str]):
        self._app = app
        self._metrics = metrics
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = RequestRecord(request_id=_request_id(scope), method=scope["method"], path=scope["path"])
        record.attach(scope)

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (_HEADER, record.request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        except Exception:
            # The answer is sent and the error logged; Starlette raises it once more for debuggers.
            if not record.status:
                raise
        finally:
            # The router has left the endpoint in the scope, if it got so far.
            path = self._paths.get(scope.get("endpoint"), _OTHER_PATHS)
            self._metrics.http_request(path, record.status, record.error_code)
            _log.info("request", extra={"fields": _fields(record)})


def _request_id(scope: Scope) -> str:
    """The client's own id, if it can stand in a header and a log; else a new one."""
    for name, value in scope["headers"]:
        if name == _HEADER and _SANE_ID.fullmatch(value):
            return value.decode()
    return uuid.uuid4().hex


def _fields(record: RequestRecord) -> dict[str, object]:
    fields: dict[str, object] = {
        "request_id": record.request_id,
        "method": record.method,
        "path": record.path,
        "status": record.status,
        "seconds": round(time.monotonic() - record.started, 4),
        "prompt_tokens": record.num_prompt_tokens,
        "cached_tokens": record.num_cached_tokens,
        "generated_tokens": record.num_generated_tokens,
        "finish_reasons": record.finish_reasons,
        "error": record.error_code,
    }
    return fields | ({"prompts": record.prompts} if record.prompts else {})
