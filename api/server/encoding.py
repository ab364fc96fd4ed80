"""Bytes on the wire."""

from __future__ import annotations

import json
from typing import Any


def to_json(payload: dict[str, Any]) -> bytes:
    """Compact JSON. A lone surrogate, which only an error message that quotes a request can hold, is escaped."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def server_sent_event(payload: dict[str, Any]) -> bytes:
    """One event without a name (HTML standard, section 9.2)."""
    return b"data: " + to_json(payload) + b"\n\n"


def named_event(payload: dict[str, Any]) -> bytes:
    """One event that is named by the `type` of its payload."""
    return b"event: " + str(payload["type"]).encode() + b"\n" + server_sent_event(payload)


def ndjson_line(payload: dict[str, Any]) -> bytes:
    return to_json(payload) + b"\n"
