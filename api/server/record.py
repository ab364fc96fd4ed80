"""What is known of one HTTP request, for its log line and the meters."""

from __future__ import annotations

import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

_KEY = "formcast.record"


@dataclass(kw_only=True)
class RequestRecord:
    """Filled while a request is served.

    Attributes:
        request_id: as the client named it, or one made here; sent back as `X-Request-Id`.
        status: of the answer; 0 before there is one, and for a client that left before.
        error_code: the stable name of the error, if the answer is one, also inside a stream.
        finish_reasons: one an answer.
        timeout_s: from `started` until its answer is complete; None for no limit.
        prompts: texts that the model read; only where they are to be logged.
    """

    request_id: str
    method: str
    path: str
    started: float = field(default_factory=time.monotonic)
    timeout_s: float | None = None
    status: int = 0
    error_code: str | None = None
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_generated_tokens: int = 0
    finish_reasons: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    def attach(self, scope: MutableMapping[str, Any]) -> None:
        scope[_KEY] = self


def record_of(scope: MutableMapping[str, Any]) -> RequestRecord:
    """The record of a request; one that nobody reads if the request came past `Observer`."""
    record = scope.get(_KEY)
    return record if record is not None else RequestRecord(request_id="", method=scope["method"], path=scope["path"])
