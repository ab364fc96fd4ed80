"""Typed normal form of a schema: what its values look like, one type at a time.

`Shapes` is a union: some of null/true/false, a set of numbers, a set of strings, and lists of array and object
shapes. It is closed under intersection, union and complement; subschemas below stay unexpanded nodes.

Nothing here is ever changed. It is not frozen, since to make a frozen one takes twice as long, and thousands are made.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from ..lazily import lazy
from ..limits import Limits
from ..regex import Language
from .nodes import EVERYTHING, Node
from .numbers import NumberSet
from .pointers import ROOT, Pointer

LITERALS = frozenset({"null", "true", "false"})


@dataclass(unsafe_hash=True, slots=True)
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
        return self.other.is_empty(limits) and (self.plain & NumberSet.integers()).is_empty(limits)

    def __and__(self, numbers: Numbers) -> Numbers:
        plain = self.plain & numbers.plain
        if self.plain is self.other and numbers.plain is numbers.other:
            return Numbers(plain, plain)
        return Numbers(plain, self.other & numbers.other)

    def __or__(self, numbers: Numbers) -> Numbers:
        return Numbers(self.plain | numbers.plain, self.other | numbers.other)

    def __invert__(self) -> Numbers:
        return Numbers(~self.plain, ~self.other)


ALL_NUMBERS = Numbers.of(NumberSet.all())
NO_NUMBERS = Numbers.of(NumberSet.nothing())


@dataclass(unsafe_hash=True, slots=True)
class StringSet:
    """Strings of `language` (None: all) whose length in code points is in [low, high]."""

    language: Language | None = None
    low: int = 0
    high: int | None = None

    @property
    def is_all(self) -> bool:
        return self.language is None and self.low == 0 and self.high is None

    def to_language(self) -> Language:
        base = self.language if self.language is not None else Language.anything()
        if self.low == 0 and self.high is None:
            return base
        return base & Language.length(self.low, self.high)

    def without_high(self) -> Language | None:
        """The set without `high`, where that is better counted beside the states than multiplied with them; else None."""
        if self.language is None or self.high is None:
            return None
        longer = self.language & Language.length(self.low, None) if self.low else self.language
        return longer if longer.is_countable(self.high) else None

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
        return StringSet(language, low, high)

    def __or__(self, other: StringSet) -> StringSet:
        if self.is_all or other == NO_STRING or self == other:
            return self
        if other.is_all or self == NO_STRING:
            return other
        return StringSet(self.to_language() | other.to_language())

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


@dataclass(unsafe_hash=True, slots=True)
class ArrayShape:
    prefix: tuple[Node, ...] = ()
    rest: Node = EVERYTHING
    low: int = 0
    high: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: bool = False
    repeats: bool = False  # some two items are equal
    pointer: Pointer = field(default=ROOT, compare=False)

    def item(self, index: int) -> Node:
        return self.prefix[index] if index < len(self.prefix) else self.rest


@dataclass(eq=False)
class Members:
    """What one schema object says about members: the value of a declared name is its property and all matching patterns; of any
    other name all matching patterns, or `additional` when none matches. `invites` tells that it says so itself of further
    members, which decides where they may stand but not which they are."""

    properties: Mapping[str, Node] = field(default_factory=dict)
    patterns: tuple[tuple[Language, Node], ...] = ()
    additional: Node = EVERYTHING
    invites: bool = False

    @property
    def is_open(self) -> bool:
        """Whether nothing is said about undeclared names."""
        return not self.patterns and self.additional is EVERYTHING

    def known(self, name: str) -> Node:
        """A node that the value of a member is in; patterns are not looked at."""
        return self.properties.get(name, EVERYTHING if self.patterns else self.additional)

    @lazy
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


@dataclass(unsafe_hash=True, slots=True)
class ObjectShape:
    members: tuple[Members, ...] = ()
    required: tuple[str, ...] = ()
    names: Language | None = None
    low: int = 0
    high: int | None = None
    dependencies: tuple[tuple[str, frozenset[str]], ...] = ()
    witnesses: tuple[Witness, ...] = ()
    pointer: Pointer = field(default=ROOT, compare=False)

    # written out because `dataclasses.replace` takes five times as long

    def with_members(self, members: tuple[Members, ...]) -> ObjectShape:
        return ObjectShape(members, self.required, self.names, self.low, self.high, self.dependencies, self.witnesses, self.pointer)

    def at(self, pointer: Pointer) -> ObjectShape:
        """The same objects, from another place of the schema."""
        return ObjectShape(self.members, self.required, self.names, self.low, self.high, self.dependencies, self.witnesses, pointer)


@dataclass(unsafe_hash=True, slots=True)
class Shapes:
    literals: frozenset[str]
    number: Numbers
    string: StringSet
    arrays: tuple[ArrayShape, ...]
    objects: tuple[ObjectShape, ...]


ALL_SHAPES = Shapes(LITERALS, ALL_NUMBERS, StringSet(), (ArrayShape(),), (ObjectShape(),))
NO_SHAPES = Shapes(frozenset(), NO_NUMBERS, NO_STRING, (), ())

Step = Generator[Node, Shapes, Shapes]  # yields nodes to expand, receives their shapes
