"""Typed normal form of a schema: what its values look like, one type at a time.

`Shapes` is a union: some of null/true/false, a set of numbers, a set of strings, and lists of array and object
shapes. It is closed under intersection, union and complement; subschemas below stay unexpanded nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..errors import LimitError
from ..limits import Limits
from ..regex import Language
from .nodes import EVERYTHING, NOTHING, Node, Nodes, covers
from .numbers import NumberSet

MAX_ALTERNATIVES = 2_000  # array or object shapes of one schema place
MAX_COMPARED = 200  # of them are compared with each other
LITERALS = frozenset({"null", "true", "false"})


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers by spelling: `plain` without point and exponent (`12`), `other` with one (`12.0`, `1e3`).

    The two differ only in draft 4, where a number with a fraction part is no integer whatever its value.
    """

    plain: NumberSet
    other: NumberSet

    @staticmethod
    def of(values: NumberSet) -> Numbers:
        return Numbers(values, values)

    def is_empty(self, limits: Limits) -> bool:
        return (self.plain & NumberSet.integers()).is_empty(limits) and self.other.is_empty(limits)

    def __and__(self, numbers: Numbers) -> Numbers:
        return Numbers(self.plain & numbers.plain, self.other & numbers.other)

    def __or__(self, numbers: Numbers) -> Numbers:
        return Numbers(self.plain | numbers.plain, self.other | numbers.other)

    def __invert__(self) -> Numbers:
        return Numbers(~self.plain, ~self.other)


ALL_NUMBERS = Numbers.of(NumberSet.all())
NO_NUMBERS = Numbers.of(NumberSet.nothing())


@dataclass(frozen=True, slots=True)
class StringSet:
    """Strings of `language` (None: all) whose length in code points is in [low, high].

    `listed` tells that an `enum` or `const` names them, which decides how they are spelt but not which they are.
    """

    language: Language | None = None
    low: int = 0
    high: int | None = None
    listed: bool = field(default=False, compare=False)

    @property
    def is_all(self) -> bool:
        return self.language is None and self.low == 0 and self.high is None

    def to_language(self) -> Language:
        base = self.language if self.language is not None else Language.anything()
        if self.low == 0 and self.high is None:
            return base
        return base & Language.length(self.low, self.high)

    def __and__(self, other: StringSet) -> StringSet:
        if self.is_all:
            return other
        if other.is_all:
            return self
        if self.language is None:
            language = other.language
        elif other.language is None or other.language == self.language:
            language = self.language
        else:
            language = self.language & other.language
        highs = [h for h in (self.high, other.high) if h is not None]
        high = min(highs) if highs else None
        low = max(self.low, other.low)
        if high is not None and low > high:
            return NO_STRING
        return StringSet(language, low, high, self.listed or other.listed)

    def __or__(self, other: StringSet) -> StringSet:
        if self.is_all or other == NO_STRING or self == other:
            return self
        if other.is_all or self == NO_STRING:
            return other
        return StringSet(self.to_language() | other.to_language(), listed=self.listed and other.listed)

    def __invert__(self) -> StringSet:
        if self == NO_STRING:
            return StringSet()
        if self.is_all:
            return NO_STRING
        if self.language is None and self.low == 0 and self.high is not None:
            return StringSet(None, self.high + 1, None)
        if self.language is None and self.high is None:
            return StringSet(None, 0, self.low - 1)
        return StringSet(~self.to_language())


NO_STRING = StringSet(Language.nothing())


@dataclass(frozen=True, slots=True)
class Contains:
    """At least `low` and at most `high` of the items from index `first` on are in `node`."""

    node: Node
    low: int
    high: int | None
    first: int = 0


@dataclass(frozen=True, slots=True)
class ArrayShape:
    prefix: tuple[Node, ...] = ()
    rest: Node = EVERYTHING
    low: int = 0
    high: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: bool = False
    repeats: bool = False  # some two items are equal
    pointer: str = ""

    def item(self, index: int) -> Node:
        return self.prefix[index] if index < len(self.prefix) else self.rest


@dataclass(frozen=True, eq=False)
class Members:
    """What one schema object says about members: the value of a declared name is its property and all matching patterns; of any
    other name all matching patterns, or `additional` when none matches. `invites` tells that it says so itself of further
    members, which decides where they may stand but not which they are."""

    properties: Mapping[str, Node] = field(default_factory=dict)
    patterns: tuple[tuple[Language, Node], ...] = ()
    additional: Node = EVERYTHING
    invites: bool = False

    @cached_property
    def _hash(self) -> int:
        return hash((frozenset(self.properties.items()), self.patterns, self.additional, self.invites))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Members) or self._hash != other._hash:
            return False
        same = self.additional is other.additional and self.invites == other.invites
        return same and self.patterns == other.patterns and self.properties == other.properties


@dataclass(frozen=True, slots=True)
class Witness:
    """Some member has a name in `names` and a value in `node`."""

    names: Language
    node: Node


@dataclass(frozen=True, slots=True)
class ObjectShape:
    members: tuple[Members, ...] = ()
    required: tuple[str, ...] = ()
    names: Language | None = None
    low: int = 0
    high: int | None = None
    dependencies: tuple[tuple[str, frozenset[str]], ...] = ()
    witnesses: tuple[Witness, ...] = ()
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class Shapes:
    literals: frozenset[str]
    number: Numbers
    string: StringSet
    arrays: tuple[ArrayShape, ...]
    objects: tuple[ObjectShape, ...]


ALL_SHAPES = Shapes(LITERALS, ALL_NUMBERS, StringSet(), (ArrayShape(),), (ObjectShape(),))
NO_SHAPES = Shapes(frozenset(), NO_NUMBERS, NO_STRING, (), ())


def intersect(nodes: Nodes, a: Shapes, b: Shapes) -> Shapes:
    if a is ALL_SHAPES:
        return b
    if b is ALL_SHAPES:
        return a
    return Shapes(
        a.literals & b.literals,
        a.number & b.number,
        a.string & b.string,
        _product(a.arrays, b.arrays, lambda x, y: _intersect_arrays(nodes, x, y), _covers_arrays),
        _product(a.objects, b.objects, _intersect_objects, _covers_objects),
    )


def unite(a: Shapes, b: Shapes) -> Shapes:
    if a is NO_SHAPES:
        return b
    if b is NO_SHAPES:
        return a
    return Shapes(
        a.literals | b.literals, a.number | b.number, a.string | b.string, _distinct(a.arrays + b.arrays), _distinct(a.objects + b.objects)
    )


def complement(nodes: Nodes, a: Shapes) -> Shapes:
    arrays: tuple[ArrayShape, ...] = (ArrayShape(),)
    for shape in a.arrays:
        arrays = _product(arrays, _array_complement(nodes, shape), lambda x, y: _intersect_arrays(nodes, x, y), _covers_arrays)
    objects: tuple[ObjectShape, ...] = (ObjectShape(),)
    for shape in a.objects:
        objects = _product(objects, _object_complement(nodes, shape), _intersect_objects, _covers_objects)
    return Shapes(LITERALS - a.literals, ~a.number, ~a.string, arrays, objects)


def _distinct(shapes):
    return tuple(dict.fromkeys(shapes))


def _product(left, right, meet, covers):
    if len(left) * len(right) > MAX_ALTERNATIVES:
        raise LimitError(f"the combinators multiply to more than {MAX_ALTERNATIVES} alternatives")
    met = tuple(dict.fromkeys(x for x in (meet(x, y) for x in left for y in right) if x is not None))
    return met if len(left) == 1 or len(right) == 1 or len(met) > MAX_COMPARED else _absorbed(met, covers)


def _absorbed(shapes, covers):
    """`shapes` without those inside another one, which add nothing but would multiply again in the next product."""
    kept = []
    for shape in shapes:
        if not any(covers(other, shape) for other in kept):
            kept = [other for other in kept if not covers(shape, other)]
            kept.append(shape)
    return tuple(kept)


def _covers_objects(a: ObjectShape, b: ObjectShape) -> bool:
    """Whether each assertion of `a` is one of `b`, so that `b` is inside `a`."""
    return (
        a.low <= b.low
        and (a.high is None or (b.high is not None and a.high >= b.high))
        and (a.names is None or a.names == b.names)
        and all(x in b.required for x in a.required)
        and all(x in b.members for x in a.members)
        and all(x in b.dependencies for x in a.dependencies)
        and all(x in b.witnesses for x in a.witnesses)
    )


def _covers_arrays(a: ArrayShape, b: ArrayShape) -> bool:
    """Whether each assertion of `a` is one of `b`, so that `b` is inside `a`."""
    return (
        a.low <= b.low
        and (a.high is None or (b.high is not None and a.high >= b.high))
        and (b.unique or not a.unique)
        and (b.repeats or not a.repeats)
        and all(x in b.contains for x in a.contains)
        and covers(a.rest, b.rest)
        and all(covers(a.item(i), b.item(i)) for i in range(max(len(a.prefix), len(b.prefix))))
    )


def _min_high(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return a if b is None else b
    return min(a, b)


def _intersect_arrays(nodes: Nodes, a: ArrayShape, b: ArrayShape) -> ArrayShape | None:
    high = _min_high(a.high, b.high)
    low = max(a.low, b.low)
    unique, repeats = a.unique or b.unique, a.repeats or b.repeats
    if (high is not None and low > high) or (unique and repeats):
        return None
    size = max(len(a.prefix), len(b.prefix))
    prefix = tuple(nodes.all_of((a.item(i), b.item(i))) for i in range(size))
    rest = nodes.all_of((a.rest, b.rest))
    return _tidied(nodes, ArrayShape(prefix, rest, low, high, a.contains + b.contains, unique, repeats, a.pointer or b.pointer))


def _tidied(nodes: Nodes, a: ArrayShape) -> ArrayShape | None:
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
        if c.low > 0 and all(nodes.all_of((node, c.node)) is NOTHING for node in (*a.prefix[c.first : high], a.rest)):
            return None
    return replace(a, prefix=a.prefix[:high], low=low, high=high, contains=contains)


def _meet_names(a: Language | None, b: Language | None) -> Language | None:
    if a is None or b is None:
        return a if b is None else b
    return a & b


def _intersect_objects(a: ObjectShape, b: ObjectShape) -> ObjectShape | None:
    high = _min_high(a.high, b.high)
    low = max(a.low, b.low)
    required = _distinct(a.required + b.required)
    members = _distinct(a.members + b.members)
    if high is not None and (low > high or len(required) > high):
        return None
    if any(m.properties.get(name) is NOTHING for m in members for name in required):
        return None
    return ObjectShape(
        members,
        required,
        _meet_names(a.names, b.names),
        low,
        high,
        _distinct(a.dependencies + b.dependencies),
        _distinct(a.witnesses + b.witnesses),
        a.pointer or b.pointer,
    )


def _array_complement(nodes: Nodes, a: ArrayShape) -> tuple[ArrayShape, ...]:
    """The ways to violate one assertion of an array shape."""
    ways: list[ArrayShape] = []
    if a.unique:
        ways.append(ArrayShape(low=2, repeats=True))
    if a.repeats:
        ways.append(ArrayShape(unique=True))
    if a.low > 0:
        ways.append(ArrayShape(high=a.low - 1))
    if a.high is not None:
        ways.append(ArrayShape(low=a.high + 1))
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


def _object_complement(nodes: Nodes, a: ObjectShape) -> tuple[ObjectShape, ...]:
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
        members = Members({}, ((w.names, nodes.negation(w.node)),))
        ways.append(ObjectShape(members=(members,)))
    for m in a.members:
        ways.extend(_members_complement(nodes, m))
    return tuple(replace(w, pointer=a.pointer) for w in ways)


def _members_complement(nodes: Nodes, m: Members) -> list[ObjectShape]:
    ways: list[ObjectShape] = []
    for name, node in m.properties.items():
        if node is not EVERYTHING:
            ways.append(ObjectShape(members=(Members({name: nodes.negation(node)}),), required=(name,)))
    for language, node in m.patterns:
        if node is not EVERYTHING:
            ways.append(ObjectShape(witnesses=(Witness(language, nodes.negation(node)),)))
    if m.additional is not EVERYTHING:
        others = Language.anything()
        if m.properties:
            others = others & ~Language.literals(m.properties)
        for language, _ in m.patterns:
            others = others & ~language
        ways.append(ObjectShape(witnesses=(Witness(others, nodes.negation(m.additional)),)))
    return ways
