"""JSON pointers (RFC 6901) that share their beginnings: one is made for every place of a schema, but few are ever read."""

from __future__ import annotations


class Pointer:
    """A place in a document: its parent and the last step. Making one costs the same at any depth; `str` writes it out.

    Args:
        parent: the place above, None for a root.
        token: the step from it, unescaped; for a root the URI of its document, empty for the schema itself.
    """

    __slots__ = ("_parent", "_token")

    def __init__(self, parent: Pointer | None = None, token: str = ""):
        self._parent = parent
        self._token = token

    def child(self, *tokens: str | int) -> Pointer:
        """The place that some steps lead to."""
        place = self
        for token in tokens:
            place = Pointer(place, str(token))
        return place

    def __str__(self) -> str:
        parts: list[str] = []
        place = self
        while place._parent is not None:
            parts.append(place._token.replace("~", "~0").replace("/", "~1"))
            place = place._parent
        return "/".join((place._token, *reversed(parts)))

    def __repr__(self) -> str:
        return f"Pointer({str(self)!r})"


ROOT = Pointer()
