"""Fewer alternatives that say the same: array or object shapes inside others, and shapes that differ in one member only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from .nodes import EVERYTHING, NOTHING, Node, Nodes, covers
from .shapes import ArrayShape, Members, ObjectShape
from .steps import Steps

_MAX_COMPARED = 200  # alternatives that a further one is compared with
_MAX_PLACES = 16  # members or items by which alternatives may be merged

S = TypeVar("S", ArrayShape, ObjectShape)


def absorbed(shapes: Iterable[S], covers: Callable[[S, S], bool], steps: Steps) -> tuple[S, ...]:
    """`shapes` without those inside another one, which add nothing but would multiply again in the next product."""
    kept: list[S] = []
    for shape in shapes:
        steps.spend(2 * min(len(kept), _MAX_COMPARED))
        if len(kept) > _MAX_COMPARED:
            kept.append(shape)
        elif not any(covers(other, shape) for other in kept):
            kept = [other for other in kept if not covers(shape, other)]
            kept.append(shape)
    return tuple(kept)


def covers_objects(a: ObjectShape, b: ObjectShape) -> bool:
    """Whether each assertion of `a` is one of `b`, so that `b` is inside `a`."""
    return (
        a.low <= b.low
        and (a.high is None or (b.high is not None and a.high >= b.high))
        and (a.names is None or a.names == b.names)
        and all(x in b.required for x in a.required)
        and all(x in b.dependencies for x in a.dependencies)
        and all(x in b.witnesses for x in a.witnesses)
        and all(x in b.members or (x.is_open and _says(b.members, x)) for x in a.members)
    )


def _says(members: Sequence[Members], wanted: Members) -> bool:
    """Whether `members` say about each declared name what `wanted` says."""
    return all(any(covers(node, m.known(name)) for m in members) for name, node in wanted.properties.items())


def covers_arrays(a: ArrayShape, b: ArrayShape) -> bool:
    """Whether each assertion of `a` is one of `b`, so that `b` is inside `a`."""
    return (
        a.low <= b.low
        and (a.high is None or (b.high is not None and a.high >= b.high))
        and (b.unique or not a.unique)
        and all(x in b.contains for x in a.contains)
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
    members = replace(m, properties={**m.properties, name: node})
    return replace(shape, members=(*shape.members[:k], members, *shape.members[k + 1 :]))


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
