"""Schema expressions: places of a schema and their boolean combinations, hash-consed per grammar.

An expression denotes a set of JSON values. It is expanded into shapes only when decoding (or an emptiness question) reaches it,
so recursion in a schema costs nothing until it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any

from ..cancellation import check
from .document import EMPTY_SCOPE, Scope
from .pointers import ROOT, Pointer

Json = Any


@dataclass(eq=False, slots=True)
class Node:
    """Base of expressions. Interned: identity is equality. Never changed (not frozen, since making one would take twice as long).

    Attributes:
        serial: counts the expressions of a grammar, so that what is made of them does not depend on hashes.
    """

    serial: int = field(default=0, kw_only=True)


@dataclass(eq=False, slots=True)
class Everything(Node):
    pass


@dataclass(eq=False, slots=True)
class Nothing(Node):
    pass


@dataclass(eq=False, slots=True)
class Place(Node):
    """A schema object inside a document.

    Attributes:
        schema: the object.
        base: base URI outside of it, to which its own identifier is relative.
        pointer: where it stands, for messages.
        scope: the dynamic scope it is reached in, see `document.Scope`.
    """

    schema: Mapping[str, Json]
    base: str
    pointer: Pointer
    scope: Scope


@dataclass(eq=False, slots=True)
class Asserted(Node):
    """What the assertions of a place say, without its in-place applicators (`allOf`, `$ref`, `if` ...)."""

    place: Place


@dataclass(eq=False, slots=True)
class Constant(Node):
    """One JSON value."""

    value: Json
    pointer: Pointer


@dataclass(eq=False, slots=True)
class And(Node):
    """All of the parts, in the order of their serials."""

    parts: tuple[Node, ...]


@dataclass(eq=False, slots=True)
class Or(Node):
    parts: tuple[Node, ...]


@dataclass(eq=False, slots=True)
class One(Node):
    """Exactly one of the parts."""

    parts: tuple[Node, ...]


@dataclass(eq=False, slots=True)
class Sole(Node):
    """The part and none of the others: one way to be in `One`."""

    part: Node
    others: tuple[Node, ...]


@dataclass(eq=False, slots=True)
class Not(Node):
    part: Node


EVERYTHING = Everything()
NOTHING = Nothing()


def scalar_key(value: Json) -> Json:
    """A hashable form in which equal scalars are equal: 1 == 1.0, but 1 != true."""
    if isinstance(value, bool) or value is None:
        return ("literal", value)
    if isinstance(value, int | float | Decimal):
        return ("number", Decimal(repr(value)) if isinstance(value, float) else Decimal(value))
    return ("string", value)


# keywords that neither assert anything nor name a place
_REMARKS = frozenset(("type", "title", "description", "default", "examples", "example", "$comment", "deprecated", "readOnly", "writeOnly"))


class _Values:
    """Keys of JSON values in which equal values are equal; key order does not count. Equal arrays and objects share a number, which is
    remembered, so that the key of a part of a known value costs nothing."""

    def __init__(self) -> None:
        self._numbers: dict[Json, int] = {}
        self._known: dict[int, tuple[Json, Json]] = {}  # by identity: the key, and the value that keeps its identity

    def key(self, value: Json) -> Json:
        stack = [value]
        while stack:
            item = stack[-1]
            if not isinstance(item, list | Mapping) or id(item) in self._known:
                stack.pop()
                continue
            parts = item if isinstance(item, list) else list(item.values())
            waiting = [part for part in parts if isinstance(part, list | Mapping) and id(part) not in self._known]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            keys = [self._part(part) for part in parts]
            shape: Json = tuple(keys) if isinstance(item, list) else frozenset(zip(item, keys, strict=True))
            self._known[id(item)] = (("nested", self._numbers.setdefault(shape, len(self._numbers))), item)
        return self._part(value)

    def _part(self, value: Json) -> Json:
        return self._known[id(value)][0] if isinstance(value, list | Mapping) else scalar_key(value)


def covers(a: Node, b: Node) -> bool:
    """Whether `b` is inside `a` because it says all that `a` says (False may also mean "not known")."""
    if a is b or a is EVERYTHING or b is NOTHING:
        return True
    parts = b.parts if isinstance(b, And) else (b,)
    return all(part in parts for part in a.parts) if isinstance(a, And) else a in parts


class Nodes:
    """Makes expressions, each distinct one once."""

    def __init__(self) -> None:
        self._places: dict[tuple[int | str, str, Scope], Place] = {}
        self._asserted: dict[Place, Asserted] = {}
        self._requirements: dict[str, Mapping[str, Json]] = {}
        self._constants: dict[Json, Constant] = {}
        self._values = _Values()
        self._serials = count(1)
        self._and: dict[tuple[Node, ...], And] = {}
        self._or: dict[tuple[Node, ...], Or] = {}
        self._one: dict[tuple[Node, ...], One] = {}
        self._sole: dict[tuple[Node, tuple[Node, ...]], Sole] = {}
        self._not: dict[Node, Node] = {}

    def place(self, schema: Json, base: str, pointer: Pointer, scope: Scope = EMPTY_SCOPE) -> Node:
        """A schema object or a boolean schema. Objects are told apart by identity, so the document must stay alive; only those that
        name nothing but a type are one, because they make up most of the copies in a schema."""
        if not schema:
            return NOTHING if schema is False else EVERYTHING
        if schema is True:
            return EVERYTHING
        named = schema.get("type")
        key = (named if isinstance(named, str) and _REMARKS.issuperset(schema) else id(schema), base, scope)
        node = self._places.get(key)
        if node is None:
            check()
            node = self._places[key] = Place(schema, base, pointer, scope, serial=next(self._serials))
        return node

    def having(self, name: str) -> Node:
        """Objects that have a member `name`."""
        schema = self._requirements.setdefault(name, {"type": "object", "required": [name]})
        return self.place(schema, "", ROOT)

    def asserted(self, place: Place) -> Asserted:
        node = self._asserted.get(place)
        if node is None:
            node = self._asserted[place] = Asserted(place, serial=next(self._serials))
        return node

    def constant(self, value: Json, pointer: Pointer) -> Node:
        key = self._values.key(value)
        node = self._constants.get(key)
        if node is None:
            check()
            node = self._constants[key] = Constant(value, pointer, serial=next(self._serials))
        return node

    def all_of(self, parts: Iterable[Node]) -> Node:
        flat: set[Node] = set()
        for part in parts:
            if part is NOTHING:
                return NOTHING
            if isinstance(part, And):
                flat.update(part.parts)
            elif part is not EVERYTHING:
                flat.add(part)
        if not flat:
            return EVERYTHING
        if len(flat) == 1:
            return next(iter(flat))
        if any(self._not.get(part) in flat for part in flat):
            return NOTHING
        key = tuple(sorted(flat, key=lambda part: part.serial))
        node = self._and.get(key)
        if node is None:
            node = self._and[key] = And(key, serial=next(self._serials))
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
            node = self._or[key] = Or(key, serial=next(self._serials))
        return node

    def one_of(self, parts: tuple[Node, ...]) -> Node:
        if len(parts) == 1:
            return parts[0]
        node = self._one.get(parts)
        if node is None:
            node = self._one[parts] = One(parts, serial=next(self._serials))
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
            node = self._sole[key] = Sole(part, others, serial=next(self._serials))
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
            node = self._not[part] = Not(part, serial=next(self._serials))
        return node


def pointer_of(node: Node) -> Pointer:
    """Where an expression stands in the schema, for messages: the place of its first part."""
    while True:
        if isinstance(node, Place | Constant):
            return node.pointer
        if isinstance(node, Asserted):
            return node.place.pointer
        if isinstance(node, Not | Sole):
            node = node.part
        elif isinstance(node, And | Or | One):
            node = node.parts[0]
        else:
            return ROOT
