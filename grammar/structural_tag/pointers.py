"""JSON pointers (RFC 6901)."""

from __future__ import annotations

from ..json_schema.document import escape_pointer


def child(pointer: str, *parts: str | int) -> str:
    """The pointer of a place inside another one."""
    return pointer + "".join("/" + escape_pointer(str(part)) for part in parts)
