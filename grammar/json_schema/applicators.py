"""In-place applicators: how a schema place applies other places to the same value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .document import Document
from .interior import Interior
from .keywords import REFERENCES
from .nodes import Node, Nodes, Place


@dataclass(frozen=True, slots=True)
class Always:
    """`$ref`, and each part of `allOf`."""

    part: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        """Places whose annotations count where they hold."""
        return (self.part,)

    def meaning(self, nodes: Nodes) -> Node:
        return self.part


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Node, ...]

    def meaning(self, nodes: Nodes) -> Node:
        return nodes.any_of(self.parts)


@dataclass(frozen=True, slots=True)
class OneOf:
    parts: tuple[Node, ...]

    def meaning(self, nodes: Nodes) -> Node:
        return nodes.one_of(self.parts)


@dataclass(frozen=True, slots=True)
class Never:
    """`not`."""

    part: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return ()

    def meaning(self, nodes: Nodes) -> Node:
        return nodes.negation(self.part)


@dataclass(frozen=True, slots=True)
class Conditional:
    """`if` with `then` and `else`."""

    condition: Node
    then: Node
    otherwise: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.condition, self.then, self.otherwise)

    def meaning(self, nodes: Nodes) -> Node:
        if self.then is self.otherwise:
            return self.then
        met = nodes.all_of((self.condition, self.then))
        unmet = nodes.all_of((nodes.negation(self.condition), self.otherwise))
        return nodes.any_of((met, unmet))


@dataclass(frozen=True, slots=True)
class Dependent:
    """`dependentSchemas` of one name: `part` holds where a member has the name.

    Attributes:
        present: objects that have the member.
    """

    present: Node
    part: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.part,)

    def meaning(self, nodes: Nodes) -> Node:
        return nodes.any_of((nodes.negation(self.present), self.part))


Applicator: TypeAlias = Always | AnyOf | OneOf | Never | Conditional | Dependent


def applicators(inside: Interior) -> list[Applicator]:
    """All applicators of a place, which is the conjunction of them and of its assertions."""
    schema = inside.schema
    found: list[Applicator] = [
        Always(inside.follow(keyword)) for keyword in REFERENCES if isinstance(schema.get(keyword), str) and inside.has(keyword)
    ]
    if inside.only_ref:
        return found
    found.extend(Always(part) for part in inside.listed("allOf"))
    if "anyOf" in schema:
        found.append(AnyOf(inside.listed("anyOf")))
    if "oneOf" in schema:
        found.append(OneOf(inside.listed("oneOf")))
    if "not" in schema:
        found.append(Never(inside.sub("not")))
    if inside.has("if"):
        found.append(Conditional(inside.sub("if"), inside.sub("then"), inside.sub("else")))
    for keyword in ("dependentSchemas", "dependencies"):
        if inside.has(keyword):
            found.extend(_dependents(inside, keyword, schema[keyword]))
    return found


class Insides:
    """The insides of the places of one document, and what is applied there, each made once."""

    def __init__(self, document: Document, nodes: Nodes):
        self._document = document
        self._nodes = nodes
        self._insides: dict[Place, Interior] = {}
        self._applied: dict[Place, tuple[Node, ...]] = {}

    def of(self, place: Place) -> Interior:
        inside = self._insides.get(place)
        if inside is None:
            inside = self._insides[place] = Interior.of(place, self._document, self._nodes)
        return inside

    def applied(self, place: Place) -> tuple[Node, ...]:
        """What the in-place applicators of a place mean."""
        applied = self._applied.get(place)
        if applied is None:
            applied = self._applied[place] = tuple([a.meaning(self._nodes) for a in applicators(self.of(place))])
        return applied


def _dependents(inside: Interior, keyword: str, pairs: Mapping[str, Any]) -> list[Applicator]:
    return [
        Dependent(inside.nodes.having(name), inside.at(subschema, keyword, name))
        for name, subschema in pairs.items()
        if not isinstance(subschema, list)
    ]
