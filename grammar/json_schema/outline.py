"""Outlines: bounds of what a node admits, found without expanding it.

An outline knows types, and scalars that `enum` and `const` list; it takes every other assertion for one that anything or nothing may
satisfy. That is enough to see that most branches of real schemas exclude each other, or that one says all that another says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .interior import Interior
from .keywords import ARRAY_KEYWORDS, NUMBER_KEYWORDS, OBJECT_KEYWORDS, STRING_KEYWORDS, types_of
from .nodes import EVERYTHING, NOTHING, And, Asserted, Constant, Everything, Node, Nodes, Not, Nothing, One, Or, Place, Sole, scalar_key
from .shapes import NO_NUMBERS, NO_STRING, ObjectShape, Shapes
from .steps import Steps

Json = Any

_MAX_DEPTH = 8  # nested applicators looked into


class Scalars(NamedTuple):
    """Finitely many values of one type, or (`negated`) all others."""

    values: frozenset[Json]
    negated: bool = False

    def meet(self, other: Scalars) -> Scalars:
        if not self.negated:
            return Scalars(self.values - other.values if other.negated else self.values & other.values)
        return Scalars(self.values | other.values, True) if other.negated else Scalars(other.values - self.values)

    def without(self, other: Scalars) -> Scalars:
        return self.meet(Scalars(other.values, not other.negated))

    @property
    def any(self) -> bool:
        return self.negated or bool(self.values)


def _in_several(parts: Sequence[Scalars], least: int) -> Scalars:
    """The values that are in at least `least` of the parts."""
    counts: Counter[Json] = Counter()
    for part in parts:
        if part.negated:
            counts.subtract(part.values)
        else:
            counts.update(part.values)
    cofinite = sum(part.negated for part in parts)  # a value has its count, and one for each of these
    if cofinite >= least:
        return Scalars(frozenset(value for value, n in counts.items() if n + cofinite < least), True)
    return Scalars(frozenset(value for value, n in counts.items() if n + cofinite >= least))


_NO_SCALARS = Scalars(frozenset())
_ALL_SCALARS = Scalars(frozenset(), True)


class Kinds(NamedTuple):
    """A set of values: arrays and objects all or none."""

    literals: frozenset[str]
    numbers: Scalars
    strings: Scalars
    arrays: bool
    objects: bool

    def meet(self, other: Kinds) -> Kinds:
        return Kinds(
            self.literals & other.literals,
            self.numbers.meet(other.numbers),
            self.strings.meet(other.strings),
            self.arrays and other.arrays,
            self.objects and other.objects,
        )

    def without(self, other: Kinds) -> Kinds:
        return Kinds(
            self.literals - other.literals,
            self.numbers.without(other.numbers),
            self.strings.without(other.strings),
            self.arrays and not other.arrays,
            self.objects and not other.objects,
        )

    @property
    def any(self) -> bool:
        """Whether there is a value."""
        return bool(self.literals) or self.arrays or self.objects or self.numbers.any or self.strings.any


def _kinds_in_several(parts: Sequence[Kinds], least: int) -> Kinds:
    """The values that are in at least `least` of the parts."""
    return Kinds(
        frozenset(word for word in _LITERALS if sum(word in part.literals for part in parts) >= least),
        _in_several([part.numbers for part in parts], least),
        _in_several([part.strings for part in parts], least),
        sum(part.arrays for part in parts) >= least,
        sum(part.objects for part in parts) >= least,
    )


_LITERALS = ("null", "true", "false")
_NO_KINDS = Kinds(frozenset(), _NO_SCALARS, _NO_SCALARS, False, False)
_ALL_KINDS = Kinds(frozenset(_LITERALS), _ALL_SCALARS, _ALL_SCALARS, True, True)


class Outline(NamedTuple):
    """All values in `lower` and none outside of `upper` are in the node."""

    lower: Kinds
    upper: Kinds

    def meet(self, other: Outline) -> Outline:
        return Outline(self.lower.meet(other.lower), self.upper.meet(other.upper))

    def without(self, other: Outline) -> Outline:
        return Outline(self.lower.without(other.upper), self.upper.without(other.lower))

    @property
    def exact(self) -> bool:
        return self.lower == self.upper


_EVERYTHING = Outline(_ALL_KINDS, _ALL_KINDS)
_NOTHING = Outline(_NO_KINDS, _NO_KINDS)
_UNKNOWN = Outline(_NO_KINDS, _ALL_KINDS)


class Outlines:
    """Outlines of the nodes of one document, memoised.

    Args:
        nodes: makes expressions.
        inside: gives the interior of a place.
        applied: gives what the in-place applicators of a place mean.
        steps: what it may cost.
    """

    def __init__(self, nodes: Nodes, inside: Callable[[Place], Interior], applied: Callable[[Place], Iterable[Node]], steps: Steps):
        self._nodes = nodes
        self._inside = inside
        self._applied = applied
        self._steps = steps
        self._known: dict[Node, Outline] = {EVERYTHING: _EVERYTHING, NOTHING: _NOTHING}
        self._met: dict[tuple[Node, Node], Node] = {}

    def of(self, node: Node) -> Outline:
        return self._of(node, 0)

    def meet(self, a: Node, b: Node) -> Node:
        """The intersection, in as few words as the outlines allow: NOTHING where they are apart, one of the two where it is inside."""
        if a is b or b is EVERYTHING:
            return a
        if a is EVERYTHING:
            return b
        met = self._met.get((a, b))
        if met is None:
            met = self._met[a, b] = self._meet(a, b)
        return met

    def _meet(self, a: Node, b: Node) -> Node:
        one, other = self.of(a), self.of(b)
        if not one.upper.meet(other.upper).any:
            return NOTHING
        if not one.upper.without(other.lower).any:
            return a
        if not other.upper.without(one.lower).any:
            return b
        return self._nodes.all_of((a, b))

    def apart(self, a: Node, b: Node) -> bool:
        """True only if no value is in both."""
        return not self.of(a).upper.meet(self.of(b).upper).any

    def overlapping(self, branches: Sequence[Node], expanded: Sequence[Shapes], objects: Sequence[Scalars | None]) -> list[list[int]]:
        """For each branch the indices of the others that it may have a value in common with.

        Args:
            branches: the nodes.
            expanded: for each of them its shapes, within what stands beside it.
            objects: for each of them the values of one member that tells objects apart; None if they have no such member.
        """
        uppers = [_within(self.of(branch).upper, shapes) for branch, shapes in zip(branches, expanded, strict=True)]
        tags = [tag or _ALL_SCALARS if upper.objects else _NO_SCALARS for upper, tag in zip(uppers, objects, strict=True)]
        sides = [(upper.numbers, upper.strings, tag) for upper, tag in zip(uppers, tags, strict=True)]
        holders: dict[Json, list[int]] = {}
        for i, upper in enumerate(uppers):
            for mark in _marks(upper, sides[i]):
                holders.setdefault(mark, []).append(i)
        cofinite = [[i for i, side in enumerate(sides) if side[kind].negated] for kind in range(3)]
        some = [[i for i, side in enumerate(sides) if side[kind].any] for kind in range(3)]
        found: list[list[int]] = []
        for i, upper in enumerate(uppers):
            near = {j for mark in _marks(upper, sides[i]) for j in holders[mark]}
            for kind, mine in enumerate(sides[i]):
                others = some[kind] if mine.negated else cofinite[kind] if mine.any else ()
                near.update(j for j in others if sides[j][kind].meet(mine).any)
            self._steps.spend(len(near))
            found.append(sorted(near - {i}))
        return found

    def tags(self, shapes: Sequence[ObjectShape]) -> dict[str, Scalars]:
        """For each name that all of the shapes require and whose values are listed strings, those."""
        tags: dict[str, Scalars] | None = None
        for shape in shapes:
            here: dict[str, Scalars] = {}
            for name in shape.required:
                for upper in (self.of(m.known(name)).upper for m in shape.members):
                    if upper.strings.any and not upper.strings.negated and upper == _NO_KINDS._replace(strings=upper.strings):
                        here[name] = upper.strings
            tags = here if tags is None else {n: _in_several((tags[n], t), 1) for n, t in here.items() if n in tags}
        return tags or {}

    def _of(self, node: Node, depth: int) -> Outline:
        found = self._known.get(node)
        if found is None:
            if depth > _MAX_DEPTH:
                return _UNKNOWN
            self._known[node] = _UNKNOWN  # where it contains itself
            found = self._known[node] = self._make(node, depth + 1)
        return found

    def _make(self, node: Node, depth: int) -> Outline:
        match node:
            case Place():
                return self._place(node, depth)
            case Asserted():
                return self._asserted(self._inside(node.place))
            case Constant():
                return _of_values((node.value,))
            case And():
                return self._all(node.parts, depth)
            case Or():
                return self._any(node.parts, depth)
            case One():
                return self._one(node, depth)
            case Sole():
                return self._of(node.part, depth).without(self._any(node.others, depth))
            case Not():
                return _EVERYTHING.without(self._of(node.part, depth))
        assert isinstance(node, Everything | Nothing)
        return _EVERYTHING if isinstance(node, Everything) else _NOTHING

    def _all(self, parts: Iterable[Node], depth: int) -> Outline:
        outline = _EVERYTHING
        for part in parts:
            outline = outline.meet(self._of(part, depth))
        return outline

    def _any(self, parts: Iterable[Node], depth: int) -> Outline:
        found = [self._of(part, depth) for part in parts]
        return Outline(_kinds_in_several([x.lower for x in found], 1), _kinds_in_several([x.upper for x in found], 1))

    def _one(self, node: One, depth: int) -> Outline:
        found = [self._of(part, depth) for part in node.parts]
        lowers, uppers = [x.lower for x in found], [x.upper for x in found]
        return Outline(
            _kinds_in_several(lowers, 1).without(_kinds_in_several(uppers, 2)),
            _kinds_in_several(uppers, 1).without(_kinds_in_several(lowers, 2)),
        )

    def _place(self, place: Place, depth: int) -> Outline:
        inside = self._inside(place)
        outline = self._asserted(inside)
        outline = outline.meet(self._all(self._applied(place), depth))
        lower = outline.lower
        if not inside.only_ref and (inside.has("unevaluatedItems") or inside.has("unevaluatedProperties")):
            lower = lower._replace(arrays=False, objects=False)
        return outline._replace(lower=lower)

    def _asserted(self, inside: Interior) -> Outline:
        schema = inside.schema
        if inside.only_ref:
            return _EVERYTHING
        types = types_of(schema)
        literals = frozenset(t for t in _LITERALS if ("null" if t == "null" else "boolean") in types)
        numbers = _ALL_SCALARS if "number" in types or "integer" in types else _NO_SCALARS
        strings = _ALL_SCALARS if "string" in types else _NO_SCALARS
        upper = Kinds(literals, numbers, strings, "array" in types, "object" in types)
        lower = Kinds(
            literals,
            _NO_SCALARS if "number" not in types or _mentions(schema, NUMBER_KEYWORDS) else numbers,
            _NO_SCALARS if _mentions(schema, STRING_KEYWORDS) else strings,
            upper.arrays and not _mentions(schema, ARRAY_KEYWORDS),
            upper.objects and not _mentions(schema, OBJECT_KEYWORDS),
        )
        outline = Outline(lower, upper)
        if "enum" in schema:
            outline = outline.meet(_of_values(schema["enum"]))
        if inside.has("const"):
            outline = outline.meet(_of_values((schema["const"],)))
        return outline


def _within(kinds: Kinds, shapes: Shapes) -> Kinds:
    """Without the types that the shapes have no values of."""
    return Kinds(
        kinds.literals & shapes.literals,
        _NO_SCALARS if shapes.number == NO_NUMBERS else kinds.numbers,
        _NO_SCALARS if shapes.string == NO_STRING else kinds.strings,
        bool(shapes.arrays),
        bool(shapes.objects),
    )


def _marks(kinds: Kinds, sides: Sequence[Scalars]) -> Iterator[Json]:
    """What two sets of values have in common if they overlap, but for what lies in cofinite sides."""
    yield from kinds.literals
    if kinds.arrays:
        yield "array"
    for i, scalars in enumerate(sides):
        if not scalars.negated:
            yield from ((i, value) for value in scalars.values)


def _mentions(schema: Mapping[str, Json], keywords: Iterable[str]) -> bool:
    return any(keyword in schema for keyword in keywords)


def _of_values(values: Iterable[Json]) -> Outline:
    """Listed scalars exactly; a listed array or object may be any."""
    literals, numbers, strings, arrays, objects = set[str](), set[Json](), set[Json](), False, False
    for value in values:
        if isinstance(value, list):
            arrays = True
        elif isinstance(value, Mapping):
            objects = True
        elif isinstance(value, str):
            strings.add(value)
        elif value is None or isinstance(value, bool):
            literals.add("null" if value is None else str(value).lower())
        else:
            numbers.add(scalar_key(value)[1])
    lower = Kinds(frozenset(literals), Scalars(frozenset(numbers)), Scalars(frozenset(strings)), False, False)
    return Outline(lower, lower._replace(arrays=arrays, objects=objects))
