"""How families of clients read streams and errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..openai.errors import ApiError
from .encoding import named_event, server_sent_event

Payload = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """Attributes:
    media_type: of a stream.
    frame: one chunk of a stream.
    end: what ends a stream, after its last chunk.
    error_body: the body of an error answer.
    error_chunk: an error in the middle of a stream.
    """

    media_type: str
    frame: Callable[[Payload], bytes]
    end: bytes
    error_body: Callable[[ApiError], Payload]
    error_chunk: Callable[[ApiError], Payload]


OPENAI = Dialect(
    media_type="text/event-stream",
    frame=server_sent_event,
    end=b"data: [DONE]\n\n",
    error_body=ApiError.body,
    error_chunk=ApiError.body,
)


def responses_dialect(error_chunk: Callable[[ApiError], Payload]) -> Dialect:
    """That of `/v1/responses`. Its events are counted, the error among them, so the error comes from who counts."""
    return Dialect(media_type="text/event-stream", frame=named_event, end=b"", error_body=ApiError.body, error_chunk=error_chunk)
