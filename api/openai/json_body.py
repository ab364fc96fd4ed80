"""Bytes of a request body -> JSON value, with every failure a clear 400 before any model sees the data."""

from __future__ import annotations

import json
from typing import Any

from .errors import ApiError, bad_request

MAX_DEPTH = 512


def parse_json_object(body: bytes, *, max_depth: int = MAX_DEPTH) -> dict[str, Any]:
    """The object in `body` (RFC 8259; `NaN` and `Infinity` are refused). All its texts can be encoded as UTF-8.

    Raises:
        ApiError: 400, for invalid UTF-8, malformed JSON, nesting beyond `max_depth`, lone surrogates, or a value that is not an object.
    """
    value = _decode(body)
    if not isinstance(value, dict):
        raise bad_request(f"the request body must be a JSON object, not {_kind(value)}", code="invalid_json")
    if _opening_brackets(body) > max_depth and _deeper_than(value, max_depth):
        raise _too_deep(max_depth)
    if b"\\ud" in body.lower() and _has_lone_surrogate(value):
        raise bad_request("the request body holds half of a surrogate pair, which is no character", code="invalid_utf8")
    return value


def _decode(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise bad_request(f"the request body is not valid UTF-8 (byte {error.start})", code="invalid_utf8") from None
    if not text.strip():
        raise bad_request("the request body is empty: a JSON object is needed", code="invalid_json")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        what = (
            "does not begin like JSON" if error.pos == 0 else f"is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        )
        message = f"the request body {what}{_hint(text, error.pos)}"
        raise bad_request(message, code="invalid_json") from None
    except RecursionError:
        raise _too_deep(MAX_DEPTH) from None
    except ValueError as error:  # a number with thousands of digits
        raise bad_request(f"the request body is not valid JSON: {error}", code="invalid_json") from None


def _hint(text: str, position: int) -> str:
    """The usual mistakes of bodies that were written by hand."""
    rest, before = text[position : position + 1], text[:position].rstrip()[-1:]
    if rest == "'":
        return "; texts and names stand in double quotes"
    if rest in "}]" and before == ",":
        return "; a comma stands only between two members"
    return "; send a JSON object with 'Content-Type: application/json'" if position == 0 else ""


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _too_deep(max_depth: int) -> ApiError:
    return bad_request(f"the request body is nested deeper than {max_depth} levels", code="json_too_deep")


def _opening_brackets(body: bytes) -> int:
    """An upper bound of the depth that costs one pass in C."""
    return body.count(b"[") + body.count(b"{")


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [child for container in level for child in _children(container) if isinstance(child, (dict, list))]
        if not level:
            return False
    return True


def _has_lone_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _children(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array"}[type(value)]
