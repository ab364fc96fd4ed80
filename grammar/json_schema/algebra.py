"""Intersection, union and difference of shapes.

A conjunction of disjunctions is multiplied out, so everything here aims at keeping the factors short: alternatives that contradict
themselves are dropped at once (which `Outlines` see without expanding anything), and so are alternatives inside others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ..errors import LimitError
from ..regex import Language
from .alternatives import Said, absorbed, merged_arrays, merged_objects, said_of_array, said_of_object
from .nodes import EVERYTHING, NOTHING, Node, Nodes
from .outline import Outlines
from .pointers import ROOT
from .shapes import (
    ALL_SHAPES,
    NO_NUMBERS,
    NO_SHAPES,
    NO_STRING,
    ArrayShape,
    Contains,
    Members,
    Numbers,
    ObjectShape,
    Shapes,
    StringSet,
    Witness,
)
from .steps import Steps

MAX_ALTERNATIVES = 1_000  # array or object shapes of one schema place
_PAIR_PRICE = 20  # steps for the intersection of two alternatives
_MANY = 8  # from so many alternatives on, those that differ in one member are merged

S = TypeVar("S", ArrayShape, ObjectShape)


class Algebra:
    """Combines shapes of one document.

    Args:
        nodes: makes expressions.
        outlines: tell cheaply which nodes exclude each other.
        steps: what it may cost.
    """

    def __init__(self, nodes: Nodes, outlines: Outlines, steps: Steps):
        self._nodes = nodes
        self._outlines = outlines
        self._steps = steps

    # --- shapes ----------------------------------------------------------------------------------------------------

    def intersect(self, a: Shapes, b: Shapes) -> Shapes:
        if a is ALL_SHAPES or b is NO_SHAPES:
            return b
        if b is ALL_SHAPES or a is NO_SHAPES:
            return a
        return Shapes(
            a.literals & b.literals,
            a.number & b.number,
            a.string & b.string,
            self._product(a.arrays, b.arrays, self._intersect_arrays, said_of_array),
            self._product(a.objects, b.objects, self._intersect_objects, said_of_object),
        )

    def unite(self, parts: Iterable[Shapes]) -> Shapes:
        shapes = [part for part in parts if part is not NO_SHAPES]
        if len(shapes) <= 1:
            return shapes[0] if shapes else NO_SHAPES
        arrays = tuple(dict.fromkeys(x for s in shapes for x in s.arrays))
        objects = tuple(dict.fromkeys(x for s in shapes for x in s.objects))
        self._steps.spend(10 * (len(shapes) + len(arrays) + len(objects)))
        if len(arrays) > _MANY:
            arrays = absorbed(merged_arrays(arrays, self._nodes), said_of_array, self._steps)
        if len(objects) > _MANY:
            objects = merged_objects(objects, self._nodes)
        return Shapes(
            frozenset[str]().union(*(s.literals for s in shapes)),
            _any_number([s.number for s in shapes]),
            _any_string([s.string for s in shapes]),
            _bounded(arrays),
            _bounded(objects),
        )

    def subtract(self, a: Shapes, b: Shapes) -> Shapes:
        """What is in `a` and not in `b`."""
        arrays, objects = a.arrays, a.objects
        for shape in b.arrays:
            if arrays:
                arrays = self._product(arrays, self._violating_arrays(shape), self._intersect_arrays, said_of_array)
        for shape in b.objects:
            if objects:
                objects = self._product(objects, self._violating_objects(shape), self._intersect_objects, said_of_object)
        return Shapes(a.literals - b.literals, a.number & ~b.number, a.string & ~b.string, arrays, objects)

    def complement(self, a: Shapes) -> Shapes:
        return self.subtract(ALL_SHAPES, a)

    def _product(
        self, left: Sequence[S], right: Sequence[S], meet: Callable[[S, S], S | None], said: Callable[[S], Said[S]]
    ) -> tuple[S, ...]:
        met: dict[S, None] = {}
        for x in left:
            self._steps.spend(_PAIR_PRICE * len(right))
            for y in right:
                both = meet(x, y)
                if both is not None:
                    met[both] = None
        if len(left) > 1 and len(right) > 1:
            return _bounded(absorbed(tuple(met), said, self._steps))
        return _bounded(tuple(met))

    # --- arrays ----------------------------------------------------------------------------------------------------

    def _intersect_arrays(self, a: ArrayShape, b: ArrayShape) -> ArrayShape | None:
        high = _min_high(a.high, b.high)
        low = max(a.low, b.low)
        unique, repeats = a.unique or b.unique, a.repeats or b.repeats
        if (high is not None and low > high) or (unique and repeats):
            return None
        size, meet = max(len(a.prefix), len(b.prefix)), self._outlines.meet
        self._steps.spend(size)
        prefix = tuple(meet(a.item(i), b.item(i)) for i in range(size))
        rest, pointer = meet(a.rest, b.rest), _first(a, b).pointer
        return self._tidied(ArrayShape(prefix, rest, low, high, a.contains + b.contains, unique, repeats, pointer))

    def _tidied(self, a: ArrayShape) -> ArrayShape | None:
        """The same arrays in fewer words; None if the words contradict each other."""
        low, high = a.low, a.high
        length = next((i for i, node in enumerate(a.prefix) if node is NOTHING), len(a.prefix) if a.rest is NOTHING else None)
        counted: dict[tuple[Node, int], Contains] = {}
        for c in a.contains:
            if c.node is EVERYTHING and c.first == 0:
                low, high = max(low, c.low), _min_high(high, c.high)
            else:
                same = counted.get((c.node, c.first), c)
                counted[c.node, c.first] = replace(c, low=max(same.low, c.low), high=_min_high(same.high, c.high))
        contains = tuple(c for c in counted.values() if c.low > 0 or c.high is not None)
        high = _min_high(high, length)
        if high is not None and low > high:
            return None
        for c in contains:
            if c.high is not None and c.low > c.high:
                return None
            if c.low > 0 and all(self._outlines.apart(node, c.node) for node in (*a.prefix[c.first : high], a.rest)):
                return None
        return replace(a, prefix=a.prefix[:high], low=low, high=high, contains=contains)

    def _violating_arrays(self, a: ArrayShape) -> tuple[ArrayShape, ...]:
        """The ways to violate one assertion of an array shape."""
        nodes = self._nodes
        ways: list[ArrayShape] = []
        if a.unique:
            ways.append(ArrayShape(low=2, repeats=True))
        if a.repeats:
            ways.append(ArrayShape(unique=True))
        if a.low > 0:
            ways.append(ArrayShape(high=a.low - 1))
        if a.high is not None:
            ways.append(ArrayShape(low=a.high + 1))
        self._steps.spend(len(a.prefix) * (len(a.prefix) // 64 + 1))
        for i, node in enumerate(a.prefix):
            if node is not EVERYTHING:
                ways.append(ArrayShape(prefix=(EVERYTHING,) * i + (nodes.negation(node),), low=i + 1))
        if a.rest is NOTHING:
            ways.append(ArrayShape(low=len(a.prefix) + 1))
        elif a.rest is not EVERYTHING:
            ways.append(ArrayShape(contains=(Contains(nodes.negation(a.rest), 1, None, len(a.prefix)),)))
        for c in a.contains:
            if c.low > 0:
                ways.append(ArrayShape(contains=(replace(c, low=0, high=c.low - 1),)))
            if c.high is not None:
                ways.append(ArrayShape(contains=(replace(c, low=c.high + 1, high=None),)))
        return tuple(replace(w, pointer=a.pointer) for w in ways)

    # --- objects ---------------------------------------------------------------------------------------------------

    def _intersect_objects(self, a: ObjectShape, b: ObjectShape) -> ObjectShape | None:
        high = _min_high(a.high, b.high)
        low = max(a.low, b.low)
        required = a.required if set(b.required) <= set(a.required) else tuple(dict.fromkeys(a.required + b.required))
        if high is not None and (low > high or len(required) > high):
            return None
        members = self._meet_members(a.members, b.members)
        self._steps.spend(2 * (len(required) + len(members)))
        if any(self._value_of(members, name) is NOTHING for name in required):
            return None
        both = ObjectShape(
            members,
            required,
            _meet_names(a.names, b.names),
            low,
            high,
            tuple(dict.fromkeys(a.dependencies + b.dependencies)),
            tuple(dict.fromkeys(a.witnesses + b.witnesses)),
            _first(a, b).pointer,
        )
        return self._with_named_witnesses(both) if both.witnesses else both

    def _meet_members(self, a: tuple[Members, ...], b: tuple[Members, ...]) -> tuple[Members, ...]:
        """All of `a` and `b`; what only says something about declared names is put together."""
        met = list(a)
        for members in b:
            if members in met:
                continue
            at = next((i for i, other in enumerate(met) if other.is_open), None) if members.is_open else None
            if at is None:
                met.append(members)
                continue
            properties = dict(met[at].properties)
            self._steps.spend(len(members.properties))
            for name, node in members.properties.items():
                properties[name] = self._outlines.meet(properties.get(name, EVERYTHING), node)
            met[at] = Members(properties, invites=met[at].invites or members.invites)
        return tuple(met)

    def _value_of(self, members: Iterable[Members], name: str) -> Node:
        """A node that the value of a member is in; patterns are not looked at."""
        value: Node = EVERYTHING
        for m in members:
            value = self._outlines.meet(value, m.known(name))
        return value

    def _with_named_witnesses(self, a: ObjectShape) -> ObjectShape | None:
        """The same objects with as few witnesses as possible: those that a required member surely is are left out, and those that only
        one member can be are required; None if there is one that no member can be."""
        closed = next((m for m in a.members if m.additional is NOTHING and not m.patterns), None)
        witnesses: list[Witness] = []
        required, members = dict.fromkeys(a.required), a.members
        for w in a.witnesses:
            if any(self._is_witness(members, name, w) for name in required):
                continue
            if closed is None:
                witnesses.append(w)
                continue
            able = [n for n in closed.properties if w.names.matches(n) and self._may_be_witness(members, n, w)]
            self._steps.spend(20 * len(closed.properties))
            if not able:
                return None
            if len(able) > 1:
                witnesses.append(w)
                continue
            required[able[0]] = None
            if w.node is not EVERYTHING:
                members = self._meet_members(members, (Members({able[0]: w.node}),))
        if a.high is not None and len(required) > a.high:
            return None
        return replace(a, required=tuple(required), members=members, witnesses=tuple(witnesses))

    def _is_witness(self, members: Iterable[Members], name: str, witness: Witness) -> bool:
        if not witness.names.matches(name):
            return False
        value = self._value_of(members, name)
        return self._outlines.meet(value, witness.node) is value

    def _may_be_witness(self, members: Iterable[Members], name: str, witness: Witness) -> bool:
        return self._outlines.meet(self._value_of(members, name), witness.node) is not NOTHING

    def _violating_objects(self, a: ObjectShape) -> tuple[ObjectShape, ...]:
        """The ways to violate one assertion of an object shape."""
        ways: list[ObjectShape] = []
        if a.low > 0:
            ways.append(ObjectShape(high=a.low - 1))
        if a.high is not None:
            ways.append(ObjectShape(low=a.high + 1))
        for name in a.required:
            ways.append(ObjectShape(members=(Members({name: NOTHING}),)))
        if a.names is not None:
            ways.append(ObjectShape(witnesses=(Witness(~a.names, EVERYTHING),)))
        for name, needed in a.dependencies:
            ways.extend(ObjectShape(members=(Members({other: NOTHING}),), required=(name,)) for other in sorted(needed))
        for w in a.witnesses:
            members = Members({}, ((w.names, self._nodes.negation(w.node)),))
            ways.append(ObjectShape(members=(members,)))
        for m in a.members:
            ways.extend(self._violating_members(m))
        self._steps.spend(4 * len(ways))
        return tuple([way.at(a.pointer) for way in ways])

    def _violating_members(self, m: Members) -> Iterator[ObjectShape]:
        negation = self._nodes.negation
        for name, node in m.properties.items():
            if node is not EVERYTHING:
                yield ObjectShape(members=(Members({name: negation(node)}),), required=(name,))
        for language, node in m.patterns:
            if node is not EVERYTHING:
                yield ObjectShape(witnesses=(Witness(language, negation(node)),))
        if m.additional is not EVERYTHING:
            others = Language.anything()
            if m.properties:
                others = others & ~Language.literals(m.properties)
            for language, _ in m.patterns:
                others = others & ~language
            yield ObjectShape(witnesses=(Witness(others, negation(m.additional)),))


def _first(a: S, b: S) -> S:
    """The one that a schema wrote, rather than the shape of everything."""
    return b if a.pointer is ROOT else a


def _bounded(shapes: tuple[S, ...]) -> tuple[S, ...]:
    if len(shapes) > MAX_ALTERNATIVES:
        raise LimitError(f"the combinators multiply to more than {MAX_ALTERNATIVES} alternatives")
    return shapes


def _min_high(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return a if b is None else b
    return min(a, b)


def _meet_names(a: Language | None, b: Language | None) -> Language | None:
    if a is None or b is None:
        return a if b is None else b
    return a & b


def _any_number(parts: Sequence[Numbers]) -> Numbers:
    """The union, in halves, so that many small parts cost no square."""
    some = [part for part in parts if part is not NO_NUMBERS]
    while len(some) > 1:
        some = [some[i] | some[i + 1] if i + 1 < len(some) else some[i] for i in range(0, len(some), 2)]
    return some[0] if some else NO_NUMBERS


def _any_string(parts: Sequence[StringSet]) -> StringSet:
    some = list(dict.fromkeys(part for part in parts if part != NO_STRING))
    if len(some) <= 1:
        return some[0] if some else NO_STRING
    if any(part.is_all for part in some):
        return StringSet()
    return StringSet(Language.union(part.to_language() for part in some))
