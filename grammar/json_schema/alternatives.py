"""Fewer alternatives that say the same: array or object shapes inside others, and shapes that differ in one member only."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from .nodes import EVERYTHING, NOTHING, And, Node, Nodes, covers
from .shapes import ArrayShape, Members, ObjectShape
from .steps import Steps

_MAX_COMPARED = 200  # alternatives that a further one is compared with
_MAX_PLACES = 16  # members or items by which alternatives may be merged

S = TypeVar("S", ArrayShape, ObjectShape)


def absorbed(shapes: Iterable[S], said: Callable[[S], Said[S]], steps: Steps) -> tuple[S, ...]:
    """`shapes` without those inside another one, which add nothing but would multiply again in the next product.

    Args:
        shapes: alternatives.
        said: `said_of_array` or `said_of_object`.
        steps: what it may cost.
    """
    kept: list[Said[S]] = []
    for shape in shapes:
        steps.spend(min(len(kept), _MAX_COMPARED))
        new = said(shape)
        if len(kept) > _MAX_COMPARED:
            kept.append(new)
        elif not any(other.covers(new) for other in kept):
            kept = [other for other in kept if not new.covers(other)]
            kept.append(new)
    return tuple(one.shape for one in kept)


class Said(NamedTuple, Generic[S]):
    """What a shape says, in a form in which shapes can be compared quickly.

    Attributes:
        shape: the shape.
        claims: its assertions, as far as they are told apart.
        offers: its assertions, and what follows from them.
        forbidden: names that no member has, of which whatever is claimed is true.
    """

    shape: S
    claims: frozenset[Hashable]
    offers: frozenset[Hashable]
    forbidden: frozenset[str] = frozenset()

    def covers(self, other: Said[S]) -> bool:
        """Whether each assertion is one of the other's, so that the other is inside. (False may also mean "not known".)"""
        claims = self.claims
        if not claims <= other.offers:
            if not other.forbidden:
                return False
            if not all(c in other.offers or (isinstance(c, _Claim) and c.name in other.forbidden) for c in claims):
                return False
        a, b = self.shape, other.shape
        if a.low > b.low or (a.high is not None and (b.high is None or a.high < b.high)):
            return False
        if isinstance(a, ObjectShape) and isinstance(b, ObjectShape):
            return a.names is None or a.names == b.names
        return isinstance(a, ArrayShape) and isinstance(b, ArrayShape) and _covers_items(a, b)


class _Claim(NamedTuple):
    """The value of a member, if there is one, is in a node."""

    name: str
    node: Node


def said_of_object(shape: ObjectShape) -> Said[ObjectShape]:
    required = (("required", name) for name in shape.required)
    stated = frozenset((*required, *shape.dependencies, *shape.witnesses, *(m for m in shape.members if not m.is_open)))
    claims = stated.union(*(_claims(m) for m in shape.members if m.is_open))
    offers = claims.union(*(_claims(m) for m in shape.members if not m.is_open))
    forbidden = frozenset(name for m in shape.members for name, node in m.properties.items() if node is NOTHING)
    return Said(shape, claims, offers, forbidden)


def _claims(members: Members) -> Iterator[_Claim]:
    for name, node in members.properties.items():
        for part in node.parts if isinstance(node, And) else (node,):
            if part is not EVERYTHING:
                yield _Claim(name, part)


def said_of_array(shape: ArrayShape) -> Said[ArrayShape]:
    contains = frozenset[Hashable](shape.contains)
    return Said(shape, contains, contains)


def _covers_items(a: ArrayShape, b: ArrayShape) -> bool:
    return (
        (b.unique or not a.unique)
        and (b.repeats or not a.repeats)
        and covers(a.rest, b.rest)
        and all(covers(a.item(i), b.item(i)) for i in range(max(len(a.prefix), len(b.prefix))))
    )


def merged_objects(shapes: Sequence[ObjectShape], nodes: Nodes) -> tuple[ObjectShape, ...]:
    """The same objects, where shapes that differ in the value of one member are one shape with the union of the values."""
    places = [(k, name) for k, m in enumerate(shapes[0].members) for name in m.properties]
    for k, name in places[:_MAX_PLACES]:
        groups: dict[ObjectShape, list[Node]] = {}
        for shape in shapes:
            value = shape.members[k].properties.get(name, NOTHING) if k < len(shape.members) else NOTHING
            # a mark stands for the value, which may not be NOTHING: that forbids the member
            rest = shape if value is NOTHING else _with_member(shape, k, name, _MARK)
            groups.setdefault(rest, []).append(value)
        shapes = [
            rest if values[0] is NOTHING else _with_member(rest, k, name, nodes.any_of(values)) for rest, values in groups.items()
        ]
    return tuple(shapes)


_MARK = Node()


def _with_member(shape: ObjectShape, k: int, name: str, node: Node) -> ObjectShape:
    m = shape.members[k]
    members = Members({**m.properties, name: node}, m.patterns, m.additional, m.invites)
    return shape.with_members((*shape.members[:k], members, *shape.members[k + 1 :]))


def merged_arrays(shapes: Sequence[ArrayShape], nodes: Nodes) -> tuple[ArrayShape, ...]:
    """The same arrays, where shapes that differ in one item are one shape with the union of the values."""
    for k in range(min(len(shapes[0].prefix), _MAX_PLACES)):
        groups: dict[ArrayShape, list[Node]] = {}
        for shape in shapes:
            value = shape.prefix[k] if k < len(shape.prefix) else EVERYTHING
            rest = shape if value is EVERYTHING else _with_item(shape, k, _MARK)
            groups.setdefault(rest, []).append(value)
        shapes = [rest if values[0] is EVERYTHING else _with_item(rest, k, nodes.any_of(values)) for rest, values in groups.items()]
    return tuple(shapes)


def _with_item(shape: ArrayShape, k: int, node: Node) -> ArrayShape:
    return replace(shape, prefix=(*shape.prefix[:k], node, *shape.prefix[k + 1 :]))
