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


class _Kind(NamedTuple):
    """Members that are alike for all witnesses.

    Attributes:
        names: their names; None for those of a class, of which there are as many as wanted.
        class_index: which class that is.
        node: what their values must be.
        eligible: the witnesses that they may be.
    """

    names: tuple[str, ...] | None
    class_index: int
    node: Node
    eligible: frozenset[int]

    def member(self, number: int) -> str | Fresh:
        return Fresh(self.class_index, number) if self.names is None else self.names[number]

    def has(self, count: int) -> bool:
        return self.names is None or len(self.names) >= count


def _kinds(names: Names, shape: ObjectShape, required: set[str], spare: list[str]) -> list[_Kind]:
    """The members that witnesses can be, without kinds that others can stand for."""
    count = len(shape.witnesses)
    holders = [names.witness_names(i) for i in range(count)]
    bound = required.union(name for name, _ in shape.dependencies)
    single: list[_Kind] = []
    groups: dict[tuple[Node, frozenset[int]], list[str]] = {}
    for name in (*sorted(required), *spare):
        eligible = frozenset(i for i in range(count) if name in holders[i])
        if eligible and name in bound:
            single.append(_Kind((name,), -1, names.node(name), eligible))
        elif eligible:
            groups.setdefault((names.node(name), eligible), []).append(name)
    alike = {key: _Kind(tuple(members[:count]), -1, *key) for key, members in groups.items()}
    for j, c in enumerate(names.classes):
        eligible = frozenset(i for i in range(count) if names.witness_class(i, j))
        if eligible:
            alike[c.node, eligible] = _Kind(None, j, c.node, eligible)
    able = [kind for kind in alike.values() if kind.has(count)]
    return single + [k for k in alike.values() if not any(o.node is k.node and o.eligible > k.eligible for o in able)]


_Choice = dict["str | Fresh", tuple[int, Node]]  # members that are witnesses: index of the kind, and what the value must be


def _witness_choices(names: Names, shape: ObjectShape, required: set[str], spare: list[str]) -> list[_Choice]:
    """The ways to give each witness a member, as far as they differ in what they need.

    Members are shared by several witnesses where they have to be: there may be only so many of a kind, or in all.
    """
    kinds, count = _kinds(names, shape, required, spare), len(shape.witnesses)
    choices: list[_Choice] = [{}]
    for i in range(count):
        longer: dict[object, _Choice] = {}
        for choice in choices:
            for k, kind in enumerate(kinds):
                if i not in kind.eligible:
                    continue
                used = [member for member, (index, _) in choice.items() if index == k]
                free = shape.high is None and kind.has(count)
                members = ([] if free else used) + ([kind.member(len(used))] if kind.has(len(used) + 1) else [])
                for member in members:
                    value = choice[member][1] if member in choice else kind.node
                    extended = {**choice, member: (k, names.witness_node(i, value))}
                    size = len(required.union(m for m in extended if isinstance(m, str))) + _num_fresh(extended)
                    if shape.high is None or size <= shape.high:
                        longer[_needs_of(extended, kinds, count if shape.high is None else None)] = extended
        if len(longer) > MAX_CHOICES:
            raise LimitError("the members that the object needs can be chosen in too many ways", pointer=shape.pointer)
        choices = list(longer.values())
    return choices


def _num_fresh(members: Iterable[str | Fresh]) -> int:
    return sum(isinstance(member, Fresh) for member in members)


def _needs_of(choice: _Choice, kinds: list[_Kind], free: int | None) -> object:
    """Equal for choices of which one is as good as the other. Of kinds with `free` members it does not matter which ones are used."""
    needs = sorted((-1 if free is not None and kinds[k].has(free) else k, node.serial) for k, node in choice.values())
    return tuple(needs if free is None else dict.fromkeys(needs))


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
    for choice in _witness_choices(names, shape, required, spare):
        present = closure((*required, *(c for c in choice if isinstance(c, str))), shape)
        num_fresh = _num_fresh(choice)
        missing = shape.low - len(present) - num_fresh
        for fill in _fillings(names, shape, present, spare, missing):
            everyone = closure((*present, *fill), shape) if isinstance(fill, tuple) else present
            size = len(everyone) + num_fresh + (missing if isinstance(fill, int) else 0)
            if shape.high is not None and size > shape.high:
                continue
            needs = {names.node(n) for n in everyone if n not in choice} | {node for _, node in choice.values()}
            if isinstance(fill, int):
                needs.add(names.classes[fill].node)
            answers[frozenset(needs)] = None
            if len(answers) > MAX_CHOICES:
                raise LimitError("the members that the object needs can be chosen in too many ways", pointer=shape.pointer)
    return [sorted(needs, key=id) for needs in answers]
