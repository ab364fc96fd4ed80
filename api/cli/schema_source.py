"""Schemas and instances as they are given on a command line: a file, JSON itself, a shipped name, or stdin."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .errors import UsageError

SHIPPED_PREFIX = "formcast:"
_JSON_STARTS = ("{", "[", '"', "true", "false")
_JSON_SCALAR = re.compile(r"null|-?[0-9][0-9.eE+-]*")


def read_schema(source: str) -> Any:
    """A JSON Schema (dict or bool).

    Raises:
        UsageError: it cannot be read, is not JSON, or is not a schema.
    """
    if source.startswith(SHIPPED_PREFIX):
        from ... import schemas

        return schemas.load(source.removeprefix(SHIPPED_PREFIX))
    schema = _parse(read_text(source), source)
    if not isinstance(schema, (dict, bool)):
        raise UsageError(f"{shown(source)} is not a JSON Schema: a schema is an object or a boolean")
    return schema


def looks_like_json(source: str) -> bool:
    """Whether a source is more likely JSON than the name of a file."""
    return source.lstrip().startswith(_JSON_STARTS) or _JSON_SCALAR.fullmatch(source.strip()) is not None


def read_text(source: str, is_inline: Callable[[str], bool] = looks_like_json) -> str:
    """The text of a file, of stdin (`-`), or the source itself if it is inline and no file has that name.

    Raises:
        UsageError: it cannot be read.
    """
    if source == "-":
        return _decode(sys.stdin.buffer.read(), "stdin")
    if is_inline(source) and not _is_file(source):
        return source
    try:
        return _decode(Path(source).read_bytes(), source)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot read {shown(source)}: {reason}") from None


def _is_file(source: str) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):  # inline JSON is often too long for a file name
        return False


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown(source)} is not valid UTF-8 (byte {error.start})") from None


def _parse(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{shown(source)} is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise UsageError(f"{shown(source)} is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{shown(source)} is not valid JSON: {error}") from None


def shown(source: str) -> str:
    """A source as messages name it: an inline one can be long."""
    return source if len(source) <= 80 else source[:80] + "..."
