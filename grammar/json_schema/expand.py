"""Keywords to shapes: the meaning of one schema place, and whether an expression admits any value.

In-place applicators (`$ref`, `allOf`, `anyOf`, `oneOf`, `not`, `if`) are expanded together with their place; child
schemas (of properties and items) stay nodes. Expansion runs on an explicit stack of generators, so nesting costs no recursion.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import GrammarError, LimitError
from ..limits import Limits
from ..regex import Language
from .document import Document
from .formats import format_language
from .keywords import ANNOTATIONS, TYPES, child
from .nodes import EVERYTHING, NOTHING, And, Constant, Everything, Node, Nodes, Not, One, Or, Place
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

Json = Any
Step = Generator[Node, Shapes, Shapes]  # yields nodes to expand, receives their shapes

_NUMBER_KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRING_KEYWORDS = ("minLength", "maxLength", "pattern", "format")
_ARRAY_KEYWORDS = ("items", "prefixItems", "additionalItems", "contains", "minItems", "maxItems", "uniqueItems")
_OBJECT_KEYWORDS = (
    "properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties", "maxProperties",
    "dependentRequired", "dependentSchemas", "dependencies",
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
        self._requirements: dict[str, Mapping[str, Json]] = {}

    @property
    def root(self) -> Node:
        return self.nodes.place(self.document.root, "", "")

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
            raise GrammarError("the schema refers to itself without passing a property or an item", pointer=_pointer(node))
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
                    raise LimitError("the schema takes too many steps to expand (max_depth, max_steps)", pointer=_pointer(wanted))
                opened.add(wanted)
                self._open.add(wanted)
                stack.append((wanted, self._start(wanted)))
        if loop is not None:
            raise GrammarError("the schema refers to itself without passing a property or an item", pointer=_pointer(loop.node))
        assert answer is not None
        return answer

    def _start(self, node: Node) -> Step:
        if isinstance(node, Place):
            return self._place(node)
        if isinstance(node, And):
            return self._and(node)
        if isinstance(node, Or):
            return self._or(node)
        if isinstance(node, One):
            return self._one_of(node.parts, ALL_SHAPES)
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
        for part in sorted(node.parts, key=_pointer):
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
            asserted, conjuncts = [], sorted(part.parts, key=_pointer)
        elif isinstance(part, Place):
            asserted, conjuncts = self._conjuncts(part)
        else:
            return complement(nodes, (yield part))
        shapes = NO_SHAPES
        for inner in asserted:
            shapes = unite(shapes, complement(nodes, inner))
        for inner in conjuncts:
            shapes = unite(shapes, (yield nodes.negation(inner)))
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

    def _place(self, place: Place) -> Step:
        asserted, conjuncts = self._conjuncts(place)
        shapes = ALL_SHAPES
        for inner in asserted:
            shapes = intersect(self.nodes, shapes, inner)
        for node in conjuncts:
            if not isinstance(node, One):
                shapes = intersect(self.nodes, shapes, (yield node))
        for node in conjuncts:
            if isinstance(node, One):  # last: what stands beside it often tells the branches apart
                shapes = yield from self._one_of(node.parts, shapes)
        return shapes

    def _conjuncts(self, place: Place) -> tuple[list[Shapes], list[Node]]:
        """What the place is the conjunction of: shapes of its own assertions, and nodes of its in-place applicators."""
        schema, draft = place.schema, self.document.draft
        base = self.document.base_of(schema, place.base)
        conjuncts: list[Node] = []
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(schema.get(keyword), str) and draft.has(keyword):
                follow = self.document.resolve if keyword == "$ref" else self.document.resolve_dynamic
                target = follow(schema[keyword], base, child(place.pointer, keyword))
                conjuncts.append(self.nodes.place(target.schema, target.base, target.pointer))
                if keyword == "$ref" and draft.ref_hides_siblings:
                    return [], conjuncts
        asserted: list[Shapes] = []
        if any(keyword in _ASSERTING for keyword in schema):
            asserted.append(self._assertions(schema, base, place.pointer))
        if "enum" in schema:
            asserted.append(self._enum(schema["enum"], child(place.pointer, "enum")))
        if "const" in schema and draft.has("const"):
            asserted.append(self._constant(schema["const"], child(place.pointer, "const")))
        return asserted, conjuncts + self._applied(schema, base, place.pointer)

    def _applied(self, schema: Mapping[str, Json], base: str, pointer: str) -> list[Node]:
        """Nodes that the place is the conjunction of, from in-place applicators."""
        nodes, draft = self.nodes, self.document.draft

        def at(subschema: Json, *parts: str | int) -> Node:
            return nodes.place(subschema, base, child(pointer, *parts))

        applied: list[Node] = [at(s, "allOf", i) for i, s in enumerate(schema.get("allOf", ()))]
        if "anyOf" in schema:
            applied.append(nodes.any_of(at(s, "anyOf", i) for i, s in enumerate(schema["anyOf"])))
        if "oneOf" in schema:
            applied.append(nodes.one_of(tuple(at(s, "oneOf", i) for i, s in enumerate(schema["oneOf"]))))
        if "not" in schema:
            applied.append(nodes.negation(at(schema["not"], "not")))
        if "if" in schema and draft.has("if"):
            condition = at(schema["if"], "if")
            met = nodes.all_of((condition, at(schema.get("then", True), "then")))
            unmet = nodes.all_of((nodes.negation(condition), at(schema.get("else", True), "else")))
            applied.append(nodes.any_of((met, unmet)))
        dependent = dict(schema.get("dependentSchemas", {})) if draft.has("dependentSchemas") else {}
        for keyword, pairs in (("dependentSchemas", dependent), ("dependencies", schema.get("dependencies", {}))):
            for name, subschema in pairs.items():
                if not isinstance(subschema, list):
                    absent = nodes.negation(self._has_member(name))
                    applied.append(nodes.any_of((absent, at(subschema, keyword, name))))
        return applied

    def _has_member(self, name: str) -> Node:
        """Objects that have a member `name`."""
        schema = self._requirements.setdefault(name, {"type": "object", "required": [name]})
        return self.nodes.place(schema, "", "")

    def _one_of(self, branches: tuple[Node, ...], context: Shapes) -> Step:
        """Exactly one branch, within `context`: a plain union where branches cannot overlap, else each without the ones it may overlap.

        Types are told apart first: branches without `type` overlap in every type that their keywords say nothing about.
        """
        nodes = self.nodes
        expanded: list[Shapes] = []
        for branch in branches:
            expanded.append(intersect(nodes, context, (yield branch)))
        union = NO_SHAPES
        for i, shapes in enumerate(expanded):
            for j, other in enumerate(expanded):
                if i == j:
                    continue
                both = intersect(nodes, expanded[i], other)
                others = replace(
                    other,
                    arrays=other.arrays if (yield from self._any_open(self._needs(both.arrays, ()))) else (),
                    objects=other.objects if (yield from self._any_open(self._needs((), both.objects))) else (),
                )
                shapes = intersect(nodes, shapes, complement(nodes, others))
            union = unite(union, shapes)
        return union

    def _needs(self, arrays: Sequence[ArrayShape], objects: Sequence[ObjectShape]) -> list[list[Node]]:
        """Alternatives of nodes that must be inhabited for one of the shapes to have a value."""
        from .arrays import array_needs
        from .objects import object_needs

        ways = [way for shape in arrays for way in array_needs(self, shape)]
        return ways + [way for shape in objects for way in object_needs(self, shape)]

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

    def _assertions(self, schema: Mapping[str, Json], base: str, pointer: str) -> Shapes:
        types = _types(schema)
        literals = frozenset(t for t in LITERALS if ("null" if t == "null" else "boolean") in types)
        number = NO_NUMBERS
        if "number" in types or "integer" in types:
            number = ALL_NUMBERS if "number" in types else self._integers()
            if any(k in schema for k in _NUMBER_KEYWORDS):
                number = number & Numbers.of(self._number(schema))
        string = NO_STRING
        if "string" in types:
            string = self._string(schema) if any(k in schema for k in _STRING_KEYWORDS) else StringSet()
        arrays: tuple[ArrayShape, ...] = ()
        if "array" in types:
            shape = self._array(schema, base, pointer) if any(k in schema for k in _ARRAY_KEYWORDS) else ArrayShape()
            arrays = () if shape is None else (shape,)
        objects: tuple[ObjectShape, ...] = ()
        if "object" in types:
            objects = (self._object(schema, base, pointer),) if any(k in schema for k in _OBJECT_KEYWORDS) else (ObjectShape(),)
        return Shapes(literals, number, string, arrays, objects)

    def _integers(self) -> Numbers:
        old = self.document.draft.declared and self.document.draft.number == 4
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
            low, high = int(schema.get("minLength", 0)), schema.get("maxLength")
            if high is not None and low > high:
                return NO_STRING
            strings = StringSet(None, low, None if high is None else int(high))
        if "pattern" in schema:
            strings = strings & StringSet(Language.pattern(schema["pattern"], "ecma", "search"))
        if "format" in schema:
            language = format_language(schema["format"])
            if language is not None:
                strings = strings & StringSet(language)
        return strings

    def _array(self, schema: Mapping[str, Json], base: str, pointer: str) -> ArrayShape | None:
        nodes, draft = self.nodes, self.document.draft
        prefix: tuple[Node, ...] = ()
        rest: Node = EVERYTHING
        items = schema.get("items")
        if isinstance(items, list):
            prefix = tuple(nodes.place(s, base, child(pointer, "items", i)) for i, s in enumerate(items))
            if "additionalItems" in schema and draft.has("additionalItems"):
                rest = nodes.place(schema["additionalItems"], base, child(pointer, "additionalItems"))
        else:
            if "prefixItems" in schema and draft.has("prefixItems"):
                prefix = tuple(nodes.place(s, base, child(pointer, "prefixItems", i)) for i, s in enumerate(schema["prefixItems"]))
            if items is not None:
                rest = nodes.place(items, base, child(pointer, "items"))
        low = int(schema.get("minItems", 0))
        high = int(schema["maxItems"]) if "maxItems" in schema else None
        if high is not None and low > high:
            return None
        contains: tuple[Contains, ...] = ()
        if "contains" in schema and draft.has("contains"):
            least = int(schema.get("minContains", 1)) if draft.has("minContains") else 1
            most = int(schema["maxContains"]) if "maxContains" in schema and draft.has("maxContains") else None
            if most is not None and least > most:
                return None
            contains = (Contains(nodes.place(schema["contains"], base, child(pointer, "contains")), least, most),)
        return ArrayShape(prefix, rest, low, high, contains, schema.get("uniqueItems") is True, pointer)

    def _object(self, schema: Mapping[str, Json], base: str, pointer: str) -> ObjectShape:
        nodes, draft = self.nodes, self.document.draft
        properties = {k: nodes.place(s, base, child(pointer, "properties", k)) for k, s in schema.get("properties", {}).items()}
        patterns = tuple(
            (Language.pattern(k, "ecma", "search"), nodes.place(s, base, child(pointer, "patternProperties", k)))
            for k, s in schema.get("patternProperties", {}).items()
        )
        additional = nodes.place(schema.get("additionalProperties", True), base, child(pointer, "additionalProperties"))
        required = schema.get("required", ())
        names: Language | None = None
        if "propertyNames" in schema and draft.has("propertyNames"):
            names = self._names(nodes.place(schema["propertyNames"], base, child(pointer, "propertyNames")))
        dependencies = dict(schema.get("dependencies", {}))
        if draft.has("dependentRequired"):
            dependencies.update(schema.get("dependentRequired", {}))
        return ObjectShape(
            members=(Members(properties, patterns, additional),) if properties or patterns or additional is not EVERYTHING else (),
            required=tuple(dict.fromkeys(required)) if not isinstance(required, bool) else (),
            names=names,
            low=int(schema.get("minProperties", 0)),
            high=int(schema["maxProperties"]) if "maxProperties" in schema else None,
            dependencies=tuple((name, frozenset(needs)) for name, needs in dependencies.items() if isinstance(needs, list)),
            pointer=pointer,
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
                raise LimitError("deciding whether the schema admits a value takes too many steps (max_steps)", pointer=_pointer(node))
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
        return tuple(self.nodes.constant(v, _pointer(node)) for v in values) if len(values) <= cap else None


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


def _types(schema: Mapping[str, Json]) -> set[str]:
    given = schema.get("type")
    types = set(TYPES) if given is None else {given} if isinstance(given, str) else set(given)
    if schema.get("nullable") is True:
        types.add("null")
    return types


def _pointer(node: Node) -> str:
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Place | Constant):
            return current.pointer
        if isinstance(current, Not):
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
_HARMLESS = frozenset({"type", "properties", "patternProperties", "additionalProperties", "items", "enum", "nullable", "maxLength"})


def _all_strings(schema: Mapping[str, Json]) -> bool:
    return schema["type"] == "string" and any(isinstance(v, str) for v in schema["enum"]) and "maxLength" not in schema
