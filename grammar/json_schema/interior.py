"""A schema place seen from inside: what its keywords are read with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .document import Document, Draft, Scope
from .nodes import Node, Nodes, Place
from .pointers import Pointer

Json = Any


@dataclass(eq=False, slots=True)
class Interior:
    """Keywords of one place and the surroundings that give them their meaning.

    Attributes:
        schema: the schema object.
        base: base URI inside of it.
        pointer: its place, for messages.
        scope: dynamic scope inside of it.
        draft: the draft it is written in.
    """

    schema: Mapping[str, Json]
    base: str
    pointer: Pointer
    scope: Scope
    draft: Draft
    document: Document
    nodes: Nodes

    @classmethod
    def of(cls, place: Place, document: Document, nodes: Nodes) -> Interior:
        base = document.base_of(place.schema, place.base)
        scope = document.enter(place.scope, base)
        return cls(place.schema, base, place.pointer, scope, document.draft_at(base), document, nodes)

    @property
    def only_ref(self) -> bool:
        """Whether a `$ref` hides every other keyword."""
        return self.draft.ref_hides_siblings and isinstance(self.schema.get("$ref"), str)

    @property
    def is_named_document(self) -> bool:
        """Whether this is the root of a schema with a URI, which its documents can name."""
        return self.schema is self.document.root and bool(self.base)

    def has(self, keyword: str) -> bool:
        """Whether the keyword is there and means something in the draft."""
        return keyword in self.schema and self.draft.has(keyword)

    def at(self, subschema: Json, *parts: str | int) -> Node:
        """The place of a subschema."""
        return self.nodes.place(subschema, self.base, self.pointer.child(*parts), self.scope)

    def sub(self, keyword: str) -> Node:
        """The place of the subschema that is the value of a keyword; without the keyword it admits everything."""
        return self.at(self.schema.get(keyword, True), keyword)

    def listed(self, keyword: str) -> tuple[Node, ...]:
        """The places of the subschemas that a keyword lists."""
        place, inner, base, scope = self.nodes.place, Pointer(self.pointer, keyword), self.base, self.scope
        return tuple([place(s, base, Pointer(inner, str(i)), scope) for i, s in enumerate(self.schema.get(keyword, ()))])

    def named(self, keyword: str) -> dict[str, Node]:
        """The places of the subschemas that a keyword names."""
        place, inner, base, scope = self.nodes.place, Pointer(self.pointer, keyword), self.base, self.scope
        return {name: place(s, base, Pointer(inner, name), scope) for name, s in self.schema.get(keyword, {}).items()}

    def follow(self, keyword: str) -> Node:
        """The place a reference keyword leads to."""
        pointer = self.pointer.child(keyword)
        target = self.document.resolve_in_scope(keyword, self.schema[keyword], self.base, self.scope, pointer)
        return self.nodes.place(target.schema, target.base, target.pointer, self.scope)
