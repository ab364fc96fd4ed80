"""Keywords to shapes: the meaning of one schema place, and whether an expression admits any value.

In-place applicators (see `applicators`) are expanded together with their place; child
schemas (of properties and items) stay nodes. Expansion runs on an explicit stack of generators, so nesting costs no recursion.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import GrammarError, LimitError
from ..limits import Limits
from ..regex import Language
from .applicators import applicators
from .document import Document, Draft
from .evaluation import Evaluated, Evaluation, Kind
from .formats import format_language
from .interior import Interior
from .keywords import ANNOTATIONS, MAX_COUNT, TYPES, child
from .nodes import EVERYTHING, NOTHING, And, Asserted, Constant, Everything, Node, Nodes, Not, One, Or, Place, Sole
from .numbers import NumberSet
from .shapes import (
    ALL_NUMBERS,
    ALL_SHAPES,
    LITERALS,
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
    complement,
    intersect,
    unite,
)

if TYPE_CHECKING:
    from .extent import Extent

Json = Any
Step = Generator[Node, Shapes, Shapes]  # yields nodes to expand, receives their shapes

_NUMBER_KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRING_KEYWORDS = ("minLength", "maxLength", "pattern", "format")
_ARRAY_KEYWORDS = ("items", "prefixItems", "additionalItems", "contains", "minItems", "maxItems", "uniqueItems")
_OBJECT_KEYWORDS = (
    "properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties", "maxProperties",
    "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties",
)  # fmt: skip


_ASSERTING = frozenset(("type", "nullable", *_NUMBER_KEYWORDS, *_STRING_KEYWORDS, *_ARRAY_KEYWORDS, *_OBJECT_KEYWORDS))


class _Loop(Exception):
    """The expansion of `node` needs the expansion of `node`."""

    def __init__(self, node: Node):
        super().__init__()
        self.node = node


class Expander:
    """Expands nodes of one document, memoised."""

    def __init__(self, document: Document, limits: Limits):
        self.document = document
        self.limits = limits
        self.nodes = Nodes()
        self._shapes: dict[Node, Shapes] = {}
        self._inhabited: dict[Node, bool] = {}
        self._open: set[Node] = set()
        self._evaluation = Evaluation(self.nodes, self._inside, self._overlap)

    @property
    def root(self) -> Node:
        return self.nodes.place(self.document.root, "", "")

    @cached_property
    def extent(self) -> Extent:
        """Counts the values of nodes."""
        from .extent import Extent

        return Extent(self)

    # --- shapes ----------------------------------------------------------------------------------------------------

    def expand(self, node: Node) -> Shapes:
        """The shapes of `node`.

        Raises:
            GrammarError: a reference loop that passes no property or item.
            LimitError: more work than `max_steps`, or more nested applicators than `max_depth`.
        """
        known = self._shapes.get(node)
        if known is not None:
            return known
        if node in self._open:
            raise GrammarError("the schema refers to itself without passing a property or an item", pointer=pointer_of(node))
        opened = {node}
        self._open.add(node)
        try:
            return self._run([(node, self._start(node))], opened)
        finally:
            self._open -= opened

    def _run(self, stack: list[tuple[Node, Step]], opened: set[Node]) -> Shapes:
        answer: Shapes | None = None
        loop: _Loop | None = None
        while stack:
            current, steps = stack[-1]
            try:
                if loop is not None:
                    wanted, loop = steps.throw(loop), None
                else:
                    wanted = steps.send(answer) if answer is not None else next(steps)
            except StopIteration as stop:
                answer, loop = stop.value, None
                self._shapes[current] = stop.value
                self._open.discard(current)
                stack.pop()
                continue
            except _Loop as error:
                answer, loop = None, error
                self._open.discard(current)
                stack.pop()
                continue
            answer = self._shapes.get(wanted)
            if answer is None:
                if wanted in self._open:
                    loop = _Loop(wanted)
                    continue
                if len(stack) > self.limits.max_depth or len(self._shapes) > self.limits.max_steps:
                    raise LimitError("the schema takes too many steps to expand (max_depth, max_steps)", pointer=pointer_of(wanted))
                opened.add(wanted)
                self._open.add(wanted)
                stack.append((wanted, self._start(wanted)))
        if loop is not None:
            raise GrammarError("the schema refers to itself without passing a property or an item", pointer=pointer_of(loop.node))
        assert answer is not None
        return answer

    def _start(self, node: Node) -> Step:
        if isinstance(node, Place):
            return self._place(node)
        if isinstance(node, And):
            return self._and(node)
        if isinstance(node, Or):
            return self._or(node)
        if isinstance(node, One | Sole):
            return self._told_apart(node, ALL_SHAPES)
        if isinstance(node, Asserted):
            return self._asserted(node)
        if isinstance(node, Not):
            return self._not(node)
        return self._leaf(node)

    def _leaf(self, node: Node) -> Step:
        yield from ()
        if isinstance(node, Constant):
            return self._constant(node.value, node.pointer)
        return ALL_SHAPES if isinstance(node, Everything) else NO_SHAPES

    def _and(self, node: And) -> Step:
        shapes = ALL_SHAPES
        for part in sorted(node.parts, key=pointer_of):
            shapes = intersect(self.nodes, shapes, (yield part))
        return shapes

    def _or(self, node: Or) -> Step:
        shapes = NO_SHAPES
        for part in node.parts:
            shapes = unite(shapes, (yield part))
        return shapes

    def _not(self, node: Not) -> Step:
        """Complement, pushed below conjunctions and disjunctions (De Morgan), so that only single assertions are complemented."""
        nodes, part = self.nodes, node.part
        if isinstance(part, Or):
            shapes = ALL_SHAPES
            for inner in part.parts:
                shapes = intersect(nodes, shapes, (yield nodes.negation(inner)))
            return shapes
        if isinstance(part, And):
            return (yield from self._none_of_all(part.parts))
        if isinstance(part, Sole):
            shapes = yield nodes.negation(part.part)
            for inner in part.others:
                shapes = unite(shapes, (yield inner))
            return shapes
        if isinstance(part, Place):
            return (yield from self._not_place(part))
        return complement(nodes, (yield part))

    def _none_of_all(self, parts: Iterable[Node]) -> Step:
        """What is not in all of the parts."""
        shapes = NO_SHAPES
        for inner in sorted(parts, key=pointer_of):
            shapes = unite(shapes, (yield self.nodes.negation(inner)))
        return shapes

    def _not_place(self, place: Place) -> Step:
        inside = self._inside(place)
        shapes = NO_SHAPES
        for asserted in self._assertions_of(inside):
            shapes = unite(shapes, complement(self.nodes, asserted))
        shapes = unite(shapes, (yield from self._none_of_all(a.meaning(self.nodes) for a in applicators(inside))))
        for kind in _closed_kinds(inside):
            open_ways = _only(kind, ALL_SHAPES)
            for way in (yield from self._evaluation.ways(place, kind)):
                outside = complement(self.nodes, self._closing(inside, kind, way.evaluated))
                outside = unite(outside, (yield from self._none_of_all(way.nodes - {place})))
                open_ways = intersect(self.nodes, open_ways, outside)
            shapes = unite(shapes, open_ways)
        return shapes

    def _constant(self, value: Json, pointer: str) -> Shapes:
        nodes = self.nodes
        literals, number, string, arrays, objects = frozenset[str](), NO_NUMBERS, NO_STRING, (), ()
        if value is None or isinstance(value, bool):
            literals = frozenset({"null" if value is None else str(value).lower()})
        elif isinstance(value, str):
            string = StringSet(Language.literal(value), listed=True)
        elif isinstance(value, list):
            items = tuple(nodes.constant(x, pointer) for x in value)
            arrays = (ArrayShape(items, NOTHING, len(items), len(items), pointer=pointer),)
        elif isinstance(value, Mapping):
            members = Members({k: nodes.constant(v, pointer) for k, v in value.items()}, (), NOTHING)
            objects = (ObjectShape((members,), tuple(value), pointer=pointer),)
        else:
            number = Numbers.of(NumberSet.literal(value))
        return Shapes(literals, number, string, arrays, objects)

    # --- one place -------------------------------------------------------------------------------------------------

    def _inside(self, place: Place) -> Interior:
        return Interior.of(place, self.document, self.nodes)

    def _place(self, place: Place) -> Step:
        inside = self._inside(place)
        shapes = self._asserted_shapes(inside)
        shapes = yield from self._meet(shapes, [a.meaning(self.nodes) for a in applicators(inside)])
        for kind in _closed_kinds(inside):
            ways = yield from self._evaluation.ways(place, kind)
            closed = NO_SHAPES
            for way in ways:
                whole = shapes if place in way.nodes else (yield from self._meet(ALL_SHAPES, way.nodes))
                closed = unite(closed, intersect(self.nodes, whole, self._closing(inside, kind, way.evaluated)))
            shapes = _with(kind, shapes, closed)
        return shapes

    def _asserted(self, node: Asserted) -> Step:
        yield from ()
        return self._asserted_shapes(self._inside(node.place))

    def _asserted_shapes(self, inside: Interior) -> Shapes:
        shapes = ALL_SHAPES
        for asserted in self._assertions_of(inside):
            shapes = intersect(self.nodes, shapes, asserted)
        return shapes

    def _assertions_of(self, inside: Interior) -> list[Shapes]:
        """Shapes whose conjunction the place's own assertions are."""
        schema = inside.schema
        if inside.only_ref:
            return []
        asserted: list[Shapes] = []
        if any(keyword in _ASSERTING for keyword in schema):
            asserted.append(self._assertions(inside))
        if "enum" in schema:
            asserted.append(self._enum(schema["enum"], child(inside.pointer, "enum")))
        if inside.has("const"):
            asserted.append(self._constant(schema["const"], child(inside.pointer, "const")))
        return asserted

    def _meet(self, shapes: Shapes, parts: Collection[Node]) -> Step:
        """What is in `shapes` and all of the parts."""
        late = [part for part in parts if isinstance(part, One | Sole)]  # what stands beside them often tells branches apart
        for part in parts:
            if not isinstance(part, One | Sole):
                shapes = intersect(self.nodes, shapes, (yield part))
        for part in late:
            shapes = yield from self._told_apart(part, shapes)
        return shapes

    def _told_apart(self, node: One | Sole, context: Shapes) -> Step:
        """Exactly one branch, or a given one and no other, within `context`."""
        nodes = self.nodes
        expanded: list[Shapes] = []
        for branch in node.parts if isinstance(node, One) else (node.part, *node.others):
            expanded.append(intersect(nodes, context, (yield branch)))
        if isinstance(node, Sole):
            return (yield from self._without(expanded[0], expanded[1:]))
        union = NO_SHAPES
        for i, shapes in enumerate(expanded):
            union = unite(union, (yield from self._without(shapes, expanded[:i] + expanded[i + 1 :])))
        return union

    def _without(self, shapes: Shapes, others: Sequence[Shapes]) -> Step:
        """`shapes` without those of `others` that it may overlap.

        Types are told apart first: branches without `type` overlap in every type that their keywords say nothing about.
        """
        nodes, own = self.nodes, shapes
        for other in others:
            both = intersect(nodes, own, other)
            overlapping = replace(
                other,
                arrays=other.arrays if (yield from self._any_open(self._roughly_needs(both.arrays, ()))) else (),
                objects=other.objects if (yield from self._any_open(self._roughly_needs((), both.objects))) else (),
            )
            shapes = intersect(nodes, shapes, complement(nodes, overlapping))
        return shapes

    def _closing(self, inside: Interior, kind: Kind, evaluated: Evaluated) -> Shapes:
        """Values whose members or items outside of `evaluated` are what the place says about unevaluated ones."""
        rest = inside.sub(kind.value)
        if evaluated.everything or rest is EVERYTHING:
            return ALL_SHAPES
        if kind is Kind.PROPERTIES:
            properties = dict.fromkeys(evaluated.names, EVERYTHING)
            patterns = tuple((language, EVERYTHING) for language in evaluated.patterns)
            return replace(ALL_SHAPES, objects=(ObjectShape((Members(properties, patterns, rest, invites=True),), pointer=inside.pointer),))
        items = self.nodes.any_of((*evaluated.schemas, rest))
        return replace(ALL_SHAPES, arrays=(ArrayShape((EVERYTHING,) * evaluated.prefix, items, pointer=inside.pointer),))

    def _overlap(self, kind: Kind, parts: tuple[Node, ...]) -> Generator[Node, Shapes, bool]:
        shapes = yield self.nodes.all_of(parts)
        shapes = _only(kind, shapes)
        return (yield from self._any_open(self._roughly_needs(shapes.arrays, shapes.objects)))

    def _needs(self, arrays: Sequence[ArrayShape], objects: Sequence[ObjectShape]) -> list[list[Node]]:
        """Alternatives of nodes that must be inhabited for one of the shapes to have a value."""
        from .arrays import array_needs
        from .object_needs import object_needs

        ways = [way for shape in arrays for way in array_needs(self, shape)]
        return ways + [way for shape in objects for way in object_needs(self, shape)]

    def _roughly_needs(self, arrays: Sequence[ArrayShape], objects: Sequence[ObjectShape]) -> list[list[Node]]:
        """The same for more values, without what only expanding other nodes could tell."""
        return self._needs([replace(shape, unique=False, repeats=False) for shape in arrays], objects)

    def _any_open(self, ways: list[list[Node]]) -> Generator[Node, Shapes, bool]:
        """False only if each way needs an empty node. Looks one level deep, which is where real schemas tell branches apart."""
        for way in ways:
            possible = True
            for need in way:
                try:
                    inner = yield need
                except _Loop:
                    continue  # not known yet, so it may be open
                if not inner.arrays and not inner.objects and not self.has_scalar(inner):
                    possible = False
                    break
            if possible:
                return True
        return False

    # --- assertions ------------------------------------------------------------------------------------------------

    def _assertions(self, inside: Interior) -> Shapes:
        schema = inside.schema
        types = _types(schema)
        literals = frozenset(t for t in LITERALS if ("null" if t == "null" else "boolean") in types)
        number = NO_NUMBERS
        if "number" in types or "integer" in types:
            number = ALL_NUMBERS if "number" in types else self._integers(inside.draft)
            if any(k in schema for k in _NUMBER_KEYWORDS):
                number = number & Numbers.of(self._number(schema))
        string = NO_STRING
        if "string" in types:
            string = self._string(schema) if any(k in schema for k in _STRING_KEYWORDS) else StringSet()
        arrays: tuple[ArrayShape, ...] = ()
        if "array" in types:
            shape = self._array(inside) if any(k in schema for k in _ARRAY_KEYWORDS) else ArrayShape()
            arrays = () if shape is None else (shape,)
        objects: tuple[ObjectShape, ...] = ()
        if "object" in types:
            objects = (self._object(inside) if any(k in schema for k in _OBJECT_KEYWORDS) else ObjectShape(),)
        return Shapes(literals, number, string, arrays, objects)

    def _integers(self, draft: Draft) -> Numbers:
        old = draft.declared and draft.number == 4
        return Numbers(NumberSet.integers(), NumberSet.nothing() if old else NumberSet.integers())

    def _enum(self, values: list[Json], pointer: str) -> Shapes:
        literals = frozenset("null" if v is None else str(v).lower() for v in values if v is None or isinstance(v, bool))
        strings = [v for v in values if isinstance(v, str)]
        numbers = [v for v in values if not isinstance(v, bool | str | list | Mapping) and v is not None]
        number = Numbers.of(NumberSet.literals(numbers)) if numbers else NO_NUMBERS
        string = StringSet(Language.literals(strings), listed=True) if strings else NO_STRING
        shapes = Shapes(literals, number, string, (), ())
        for value in values:
            if isinstance(value, list | Mapping):
                shapes = unite(shapes, self._constant(value, pointer))
        return shapes

    def _number(self, schema: Mapping[str, Json]) -> NumberSet:
        low, high = schema.get("minimum"), schema.get("maximum")
        low_open, high_open = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        numbers = NumberSet.range(
            minimum=low,
            maximum=high,
            exclusive_minimum=low_open is True and low is not None,
            exclusive_maximum=high_open is True and high is not None,
        )
        if low_open is not None and not isinstance(low_open, bool):
            numbers = numbers & NumberSet.range(minimum=low_open, exclusive_minimum=True)
        if high_open is not None and not isinstance(high_open, bool):
            numbers = numbers & NumberSet.range(maximum=high_open, exclusive_maximum=True)
        if "multipleOf" in schema:
            numbers = numbers & NumberSet.multiple_of(schema["multipleOf"])
        return numbers

    def _string(self, schema: Mapping[str, Json]) -> StringSet:
        strings = StringSet()
        if "minLength" in schema or "maxLength" in schema:
            low, high = int(schema.get("minLength", 0)), _at_most(schema, "maxLength")
            if high is not None and low > high:
                return NO_STRING
            strings = StringSet(None, low, high)
        if "pattern" in schema:
            strings = strings & StringSet(Language.pattern(schema["pattern"], "ecma", "search"))
        if "format" in schema:
            language = format_language(schema["format"])
            if language is not None:
                strings = strings & StringSet(language)
        return strings

    def _array(self, inside: Interior) -> ArrayShape | None:
        schema = inside.schema
        prefix: tuple[Node, ...] = ()
        rest: Node = EVERYTHING
        if isinstance(schema.get("items"), list):
            prefix = inside.listed("items")
            if inside.has("additionalItems"):
                rest = inside.sub("additionalItems")
        else:
            if inside.has("prefixItems"):
                prefix = inside.listed("prefixItems")
            rest = inside.sub("items")
        low = int(schema.get("minItems", 0))
        high = _at_most(schema, "maxItems")
        if high is not None and low > high:
            return None
        contains: tuple[Contains, ...] = ()
        if inside.has("contains"):
            least = int(schema["minContains"]) if inside.has("minContains") else 1
            most = _at_most(schema, "maxContains") if inside.has("maxContains") else None
            if most is not None and least > most:
                return None
            contains = (Contains(inside.sub("contains"), least, most),)
        return ArrayShape(prefix, rest, low, high, contains, schema.get("uniqueItems") is True, pointer=inside.pointer)

    def _object(self, inside: Interior) -> ObjectShape:
        schema = inside.schema
        properties = inside.named("properties")
        patterns = tuple((Language.pattern(k, "ecma", "search"), node) for k, node in inside.named("patternProperties").items())
        additional = inside.sub("additionalProperties")
        invites = any(schema.get(k, False) is not False for k in ("additionalProperties", "unevaluatedProperties") if inside.has(k))
        says_more = additional is not EVERYTHING or invites
        required = schema.get("required", ())
        names = self._names(inside.sub("propertyNames")) if inside.has("propertyNames") else None
        dependencies = dict(schema.get("dependencies", {}))
        if inside.has("dependentRequired"):
            dependencies.update(schema["dependentRequired"])
        return ObjectShape(
            members=(Members(properties, patterns, additional, invites),) if properties or patterns or says_more else (),
            required=tuple(dict.fromkeys(required)) if not isinstance(required, bool) else (),
            names=names,
            low=int(schema.get("minProperties", 0)),
            high=_at_most(schema, "maxProperties"),
            dependencies=tuple((name, frozenset(needs)) for name, needs in dependencies.items() if isinstance(needs, list)),
            pointer=inside.pointer,
        )

    def _names(self, node: Node) -> Language | None:
        """Names that a propertyNames schema admits."""
        strings = self.expand(node).string
        return None if strings.is_all else strings.to_language()

    # --- emptiness -------------------------------------------------------------------------------------------------

    def inhabited(self, node: Node) -> bool:
        """Whether some finite value is in `node`: the least fixed point over what its values must contain."""
        known = self._inhabited.get(node)
        if known is not None:
            return known
        if isinstance(node, Place) and _plainly_inhabited(node.schema):
            return True
        rules: dict[Node, list[list[Node]]] = {}  # node -> alternatives, each the nodes it needs
        stack = [node]
        while stack:
            current = stack.pop()
            if current in rules or current in self._inhabited:
                continue
            ways = rules[current] = self._ways(current)
            stack.extend(need for way in ways for need in way if need not in rules)
            if len(rules) > self.limits.max_steps:
                raise LimitError("deciding whether the schema admits a value takes too many steps (max_steps)", pointer=pointer_of(node))
        self._solve(rules)
        return self._inhabited[node]

    def _solve(self, rules: dict[Node, list[list[Node]]]) -> None:
        """Marks as inhabited what can be derived, and everything else of `rules` as empty (Horn clauses, unit propagation)."""
        waiting: dict[Node, list[tuple[Node, list[int]]]] = {}
        ready: list[Node] = []
        for node, ways in rules.items():
            for way in ways:
                open_needs = [n for n in dict.fromkeys(way) if self._inhabited.get(n) is not True]
                if any(self._inhabited.get(n) is False for n in open_needs):
                    continue
                left = [len(open_needs)]
                if not open_needs:
                    ready.append(node)
                for need in open_needs:
                    waiting.setdefault(need, []).append((node, left))
        true: set[Node] = set()
        while ready:
            node = ready.pop()
            if node in true:
                continue
            true.add(node)
            for head, left in waiting.get(node, ()):
                left[0] -= 1
                if left[0] == 0:
                    ready.append(head)
        for node in rules:
            self._inhabited[node] = node in true

    def _ways(self, node: Node) -> list[list[Node]]:
        shapes = self.expand(node)
        if self.has_scalar(shapes):
            return [[]]
        return self._needs(shapes.arrays, shapes.objects)

    def has_scalar(self, shapes: Shapes) -> bool:
        if shapes.literals or not shapes.number.is_empty(self.limits):
            return True
        return self.has_string(shapes.string)

    def has_string(self, strings: StringSet) -> bool:
        if strings == NO_STRING:
            return False
        return strings.language is None or not strings.to_language().is_empty(self.limits)

    def finite_values(self, node: Node, cap: int) -> tuple[Node, ...] | None:
        """The constants that `node` consists of, None if it has arrays, objects or more than `cap` values."""
        shapes = self.expand(node)
        if shapes.arrays or shapes.objects:
            return None
        strings: Sequence[str] | None = ()
        if self.has_string(shapes.string):
            strings = members(shapes.string.to_language(), cap, self.limits)
        numbers = (shapes.number.plain | shapes.number.other).values(cap)
        if strings is None or numbers is None:
            return None
        values: list[Json] = [_LITERAL_VALUES[word] for word in sorted(shapes.literals)]
        values += [*strings, *numbers]
        return tuple(self.nodes.constant(v, pointer_of(node)) for v in values) if len(values) <= cap else None


_LITERAL_VALUES = {"null": None, "true": True, "false": False}


def members(language: Language, cap: int, limits: Limits) -> list[str] | None:
    """All strings of a language with at most `cap` of them, sorted, else None."""
    automaton = language.automaton(limits)
    if automaton.tail_count(automaton.start, cap) is None:
        return None
    found: list[str] = []
    stack = [(automaton.start, "")]
    while stack:
        q, text = stack.pop()
        if automaton.accepting(q):
            found.append(text)
        for lo, hi, target in automaton.edges(q):
            stack.extend((target, text + chr(c)) for c in range(lo, hi + 1))
    return sorted(found)


def _closed_kinds(inside: Interior) -> list[Kind]:
    return [] if inside.only_ref else [kind for kind in Kind if inside.has(kind.value) and inside.sub(kind.value) is not EVERYTHING]


def _only(kind: Kind, shapes: Shapes) -> Shapes:
    """The objects of `shapes`, or its arrays."""
    return _with(kind, NO_SHAPES, shapes)


def _with(kind: Kind, shapes: Shapes, part: Shapes) -> Shapes:
    """`shapes` with the objects, or arrays, of `part`."""
    return replace(shapes, objects=part.objects) if kind is Kind.PROPERTIES else replace(shapes, arrays=part.arrays)


def _at_most(schema: Mapping[str, Json], keyword: str) -> int | None:
    """An upper bound; None where there is none, or none that is ever reached."""
    bound = schema.get(keyword)
    return None if bound is None or bound > MAX_COUNT else int(bound)


def _types(schema: Mapping[str, Json]) -> set[str]:
    given = schema.get("type")
    types: set[str] = set(TYPES) if given is None else {given} if isinstance(given, str) else set(given)
    if schema.get("nullable") is True:
        types.add("null")
    return types


def pointer_of(node: Node) -> str:
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Place | Constant):
            return current.pointer
        if isinstance(current, Asserted):
            return current.place.pointer
        if isinstance(current, Not | Sole):
            stack.append(current.part)
        elif isinstance(current, And | Or | One):
            stack.extend(current.parts)
    return ""


def _plainly_inhabited(schema: Mapping[str, Json]) -> bool:
    """True only if the schema admits a value for a reason that needs no expansion: the common schemas of optional members."""
    for keyword in schema:
        if keyword not in _HARMLESS and keyword not in ANNOTATIONS:
            return False
    return "enum" not in schema or (len(schema["enum"]) > 0 and ("type" not in schema or _all_strings(schema)))


# keywords that leave the empty object, the empty array or some scalar of every type
_HARMLESS = frozenset(
    ("type", "properties", "patternProperties", "additionalProperties", "items", "enum", "nullable", "maxLength", *(k.value for k in Kind))
)


def _all_strings(schema: Mapping[str, Json]) -> bool:
    return schema["type"] == "string" and any(isinstance(v, str) for v in schema["enum"]) and "maxLength" not in schema
