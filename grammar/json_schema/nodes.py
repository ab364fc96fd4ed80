"""Schema expressions: places of a schema and their boolean combinations, hash-consed per grammar.

An expression denotes a set of JSON values. It is expanded into shapes only when decoding (or an emptiness question) reaches it,
so recursion in a schema costs nothing until it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .document import EMPTY_SCOPE, Scope

Json = Any


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """Base of expressions. Interned: identity is equality."""


@dataclass(frozen=True, eq=False, slots=True)
class Everything(Node):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class Nothing(Node):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class Place(Node):
    """A schema object inside a document.

    Attributes:
        schema: the object.
        base: base URI outside of it, to which its own identifier is relative.
        pointer: RFC 6901 pointer from the root of the document, for messages.
        scope: the dynamic scope it is reached in, see `document.Scope`.
    """

    schema: Mapping[str, Json]
    base: str
    pointer: str
    scope: Scope


@dataclass(frozen=True, eq=False, slots=True)
class Asserted(Node):
    """What the assertions of a place say, without its in-place applicators (`allOf`, `$ref`, `if` ...)."""

    place: Place


@dataclass(frozen=True, eq=False, slots=True)
class Constant(Node):
    """One JSON value."""

    value: Json
    pointer: str


@dataclass(frozen=True, eq=False, slots=True)
class And(Node):
    parts: frozenset[Node]


@dataclass(frozen=True, eq=False, slots=True)
class Or(Node):
    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class One(Node):
    """Exactly one of the parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Sole(Node):
    """The part and none of the others: one way to be in `One`."""

    part: Node
    others: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Not(Node):
    part: Node


EVERYTHING = Everything()
NOTHING = Nothing()


def canonical(value: Json) -> Json:
    """A hashable form in which equal JSON values are equal: 1 == 1.0, but 1 != true; key order does not count."""
    done: dict[int, Json] = {}
    stack: list[tuple[Json, bool]] = [(value, False)]
    while stack:
        item, ready = stack.pop()
        if isinstance(item, list):
            if not ready:
                stack.append((item, True))
                stack.extend((x, False) for x in item)
            else:
                done[id(item)] = ("array", tuple(_leaf(x, done) for x in item))
        elif isinstance(item, Mapping):
            if not ready:
                stack.append((item, True))
                stack.extend((x, False) for x in item.values())
            else:
                done[id(item)] = ("object", frozenset((k, _leaf(x, done)) for k, x in item.items()))
    return _leaf(value, done)


def _leaf(value: Json, done: dict[int, Json]) -> Json:
    if isinstance(value, list | Mapping):
        return done[id(value)]
    if isinstance(value, bool) or value is None:
        return ("literal", value)
    if isinstance(value, int | float | Decimal):
        return ("number", Decimal(repr(value)) if isinstance(value, float) else Decimal(value))
    return ("string", value)


def covers(a: Node, b: Node) -> bool:
    """Whether `b` is inside `a` because it says all that `a` says (False may also mean "not known")."""
    if a is b or a is EVERYTHING or b is NOTHING:
        return True
    parts = b.parts if isinstance(b, And) else frozenset((b,))
    return a.parts <= parts if isinstance(a, And) else a in parts


class Nodes:
    """Makes expressions, each distinct one once."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, str, Scope], Place] = {}
        self._asserted: dict[Place, Asserted] = {}
        self._requirements: dict[str, Mapping[str, Json]] = {}
        self._constants: dict[Json, Constant] = {}
        self._and: dict[frozenset[Node], And] = {}
        self._or: dict[tuple[Node, ...], Or] = {}
        self._one: dict[tuple[Node, ...], One] = {}
        self._sole: dict[tuple[Node, tuple[Node, ...]], Sole] = {}
        self._not: dict[Node, Node] = {}

    def place(self, schema: Json, base: str, pointer: str, scope: Scope = EMPTY_SCOPE) -> Node:
        """A schema object or a boolean schema. Objects are told apart by identity, so the document must stay alive."""
        if schema is True:
            return EVERYTHING
        if schema is False:
            return NOTHING
        if not schema:
            return EVERYTHING
        key = (id(schema), base, scope)
        node = self._places.get(key)
        if node is None:
            node = self._places[key] = Place(schema, base, pointer, scope)
        return node

    def having(self, name: str) -> Node:
        """Objects that have a member `name`."""
        schema = self._requirements.setdefault(name, {"type": "object", "required": [name]})
        return self.place(schema, "", "")

    def asserted(self, place: Place) -> Asserted:
        node = self._asserted.get(place)
        if node is None:
            node = self._asserted[place] = Asserted(place)
        return node

    def constant(self, value: Json, pointer: str) -> Node:
        key = canonical(value)
        node = self._constants.get(key)
        if node is None:
            node = self._constants[key] = Constant(value, pointer)
        return node

    def all_of(self, parts: Iterable[Node]) -> Node:
        flat: set[Node] = set()
        for part in parts:
            if part is NOTHING:
                return NOTHING
            if isinstance(part, And):
                flat |= part.parts
            elif part is not EVERYTHING:
                flat.add(part)
        if not flat:
            return EVERYTHING
        if len(flat) == 1:
            return next(iter(flat))
        if any(self._not.get(part) in flat for part in flat):
            return NOTHING
        key = frozenset(flat)
        node = self._and.get(key)
        if node is None:
            node = self._and[key] = And(key)
        return node

    def any_of(self, parts: Iterable[Node]) -> Node:
        flat: dict[Node, None] = {}
        for part in parts:
            if part is EVERYTHING:
                return EVERYTHING
            if isinstance(part, Or):
                flat.update(dict.fromkeys(part.parts))
            elif part is not NOTHING:
                flat[part] = None
        if not flat:
            return NOTHING
        key = tuple(flat)
        if len(key) == 1:
            return key[0]
        node = self._or.get(key)
        if node is None:
            node = self._or[key] = Or(key)
        return node

    def one_of(self, parts: tuple[Node, ...]) -> Node:
        if len(parts) == 1:
            return parts[0]
        node = self._one.get(parts)
        if node is None:
            node = self._one[parts] = One(parts)
        return node

    def sole(self, part: Node, others: tuple[Node, ...]) -> Node:
        """`part` and none of `others`."""
        others = tuple(other for other in others if other is not NOTHING)
        if part is NOTHING or EVERYTHING in others:
            return NOTHING
        if not others:
            return part
        key = (part, others)
        node = self._sole.get(key)
        if node is None:
            node = self._sole[key] = Sole(part, others)
        return node

    def negation(self, part: Node) -> Node:
        if part is EVERYTHING:
            return NOTHING
        if part is NOTHING:
            return EVERYTHING
        if isinstance(part, Not):
            return part.part
        node = self._not.get(part)
        if node is None:
            node = self._not[part] = Not(part)
        return node
