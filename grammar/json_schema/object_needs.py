"""Whether an object shape has a value at all: what its members need."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from ..errors import LimitError
from .names import Names
from .nodes import Node
from .shapes import ObjectShape

if TYPE_CHECKING:
    from .expand import Expander

MAX_CHOICES = 2_000  # ways to choose the members that `minProperties` and witnesses need


def closure(required: Iterable[str], shape: ObjectShape) -> set[str]:
    """Names that must be present once `required` are."""
    present = set(required)
    needs: dict[str, set[str]] = {}
    for name, needed in shape.dependencies:
        needs.setdefault(name, set()).update(needed)
    stack = [name for name in present if name in needs]
    while stack:
        more = needs[stack.pop()] - present
        present |= more
        stack.extend(name for name in more if name in needs)
    return present


class Fresh(NamedTuple):
    """A further member of a class that may be the witness of several claims."""

    class_index: int
    number: int


def _witness_choices(names: Names, shape: ObjectShape, named: list[str]) -> list[tuple[str | Fresh, ...]]:
    """The ways to give each witness a member: one with a name, or a further member of a class, shared or not."""
    choices: list[tuple[str | Fresh, ...]] = [()]
    for i in range(len(shape.witnesses)):
        eligible = names.witness_names(i)
        known = [n for n in named if n in eligible]
        classes = [j for j in range(len(names.classes)) if names.witness_class(i, j)]
        longer: list[tuple[str | Fresh, ...]] = []
        for choice in choices:
            longer.extend((*choice, n) for n in known)
            for j in classes:
                used = [c.number for c in choice if isinstance(c, Fresh) and c.class_index == j]
                longer.extend((*choice, Fresh(j, k)) for k in range(max(used, default=-1) + 2))
        if len(longer) > MAX_CHOICES:
            raise LimitError("the members that the object needs can be chosen in too many ways", pointer=shape.pointer)
        choices = longer
    return choices


def _fillings(names: Names, shape: ObjectShape, present: set[str], spare: list[str], missing: int) -> list[tuple[str, ...] | int]:
    """The ways to add `missing` members for `minProperties`: named ones, or any number of one class (its index)."""
    if missing <= 0:
        return [()]
    ways: list[tuple[str, ...] | int] = list(range(len(names.classes)))
    free = [n for n in spare if n not in present]
    for more in combinations(free, missing) if missing <= len(free) else ():
        ways.append(more)
        if len(ways) > MAX_CHOICES:
            if names.classes:
                break
            raise LimitError("'minProperties' can be met in too many ways", pointer=shape.pointer)
    return ways


def object_needs(expander: Expander, shape: ObjectShape) -> list[list[Node]]:
    """Alternatives of nodes that must be inhabited for the shape to have a value."""
    required = closure(shape.required, shape)
    if shape.high is not None and len(required) > shape.high:
        return []
    names = Names(expander, shape)
    if not shape.witnesses and len(required) >= shape.low:
        return [[names.node(n) for n in sorted(required)]]
    answers: dict[frozenset[Node], None] = {}
    spare = [n for n in names.mentioned + names.unordered if n not in required]
    for choice in _witness_choices(names, shape, [*sorted(required), *spare]):
        present = closure((*required, *(c for c in choice if isinstance(c, str))), shape)
        fresh = {c for c in choice if isinstance(c, Fresh)}
        missing = shape.low - len(present) - len(fresh)
        for fill in _fillings(names, shape, present, spare, missing):
            everyone = closure((*present, *fill), shape) if isinstance(fill, tuple) else present
            size = len(everyone) + len(fresh) + (missing if isinstance(fill, int) else 0)
            if shape.high is not None and size > shape.high:
                continue
            values: dict[str | Fresh, Node] = {n: names.node(n) for n in everyone}
            values.update((c, names.classes[c.class_index].node) for c in fresh)
            for i, c in enumerate(choice):
                values[c] = names.witness_node(i, values[c])
            needs = set(values.values())
            if isinstance(fill, int):
                needs.add(names.classes[fill].node)
            answers[frozenset(needs)] = None
            if len(answers) > MAX_CHOICES:
                raise LimitError("the members that the object needs can be chosen in too many ways", pointer=shape.pointer)
    return [sorted(needs, key=id) for needs in answers]
