"""How families of clients read streams and errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..openai.errors import ApiError
from .encoding import named_event, ndjson_line, server_sent_event

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


def _ollama_error(error: ApiError) -> Payload:
    return {"error": error.message}


def _tgi_error(error: ApiError) -> Payload:
    kind = "overloaded" if error.status == 503 else "validation" if error.status < 500 else "generation"
    return {"error": error.message, "error_type": kind}


OLLAMA = Dialect(media_type="application/x-ndjson", frame=ndjson_line, end=b"", error_body=_ollama_error, error_chunk=_ollama_error)
TGI = Dialect(media_type="text/event-stream", frame=server_sent_event, end=b"", error_body=_tgi_error, error_chunk=_tgi_error)


def dialect_of(path: str) -> Dialect:
    """The dialect of whoever asks for a path, also one that does not exist."""
    if path.startswith("/api/"):
        return OLLAMA
    return TGI if path in ("/", "/generate", "/generate_stream", "/info") else OPENAI


def responses_dialect(error_chunk: Callable[[ApiError], Payload]) -> Dialect:
    """That of `/v1/responses`. Its events are counted, the error among them, so the error comes from who counts."""
    return Dialect(media_type="text/event-stream", frame=named_event, end=b"", error_body=ApiError.body, error_chunk=error_chunk)
