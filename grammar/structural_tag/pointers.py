"""JSON pointers (RFC 6901)."""

from __future__ import annotations


def child(pointer: str, *parts: str | int) -> str:
    """The pointer of a place inside another one."""
    return pointer + "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
