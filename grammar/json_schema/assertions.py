"""Single assertions to shapes: what the keywords of one place say themselves, without its in-place applicators."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from ..regex import Language
from .algebra import Algebra
from .document import Draft
from .formats import format_language
from .interior import Interior
from .keywords import ARRAY_KEYWORDS, MAX_COUNT, NUMBER_KEYWORDS, OBJECT_KEYWORDS, STRING_KEYWORDS, types_of
from .nodes import EVERYTHING, NOTHING, Node, Nodes
from .numbers import NumberSet
from .pointers import Pointer
from .shapes import (
    ALL_NUMBERS,
    ALL_SHAPES,
    LITERALS,
    NO_NUMBERS,
    NO_STRING,
    ArrayShape,
    Contains,
    Members,
    Numbers,
    ObjectShape,
    Shapes,
    Step,
    StringSet,
)
from .steps import Steps

Json = Any
_NESTED_PRICE = 20  # steps for an array or object of an `enum`
_ASSERTING = frozenset(("type", "nullable", *NUMBER_KEYWORDS, *STRING_KEYWORDS, *ARRAY_KEYWORDS, *OBJECT_KEYWORDS))


class Assertions:
    """Reads the assertions of places.

    Args:
        nodes: makes expressions.
        algebra: combines shapes.
        steps: what it may cost.
    """

    def __init__(self, nodes: Nodes, algebra: Algebra, steps: Steps):
        self._nodes = nodes
        self._algebra = algebra
        self._steps = steps

    def of(self, inside: Interior) -> Step:
        """What the assertions of a place admit."""
        shapes = ALL_SHAPES
        for asserted in (yield from self.each(inside)):
            shapes = self._algebra.intersect(shapes, asserted)
        return shapes

    def constant(self, value: Json, pointer: Pointer) -> Shapes:
        """The one value."""
        nodes = self._nodes
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

    def each(self, inside: Interior) -> Generator[Node, Shapes, list[Shapes]]:
        """Shapes whose conjunction the place's own assertions are."""
        schema = inside.schema
        if inside.only_ref:
            return []
        asserted: list[Shapes] = []
        if any(keyword in _ASSERTING for keyword in schema):
            asserted.append((yield from self._keywords(inside)))
        if "enum" in schema:
            asserted.append(self._enum(schema["enum"], inside.pointer.child("enum")))
        if inside.has("const"):
            asserted.append(self.constant(schema["const"], inside.pointer.child("const")))
        return asserted

    def _keywords(self, inside: Interior) -> Step:
        schema = inside.schema
        types = types_of(schema)
        literals = frozenset(t for t in LITERALS if ("null" if t == "null" else "boolean") in types)
        number = NO_NUMBERS
        if "number" in types or "integer" in types:
            number = ALL_NUMBERS if "number" in types else self._integers(inside.draft)
            if any(k in schema for k in NUMBER_KEYWORDS):
                number = number & Numbers.of(self._number(schema))
        string = NO_STRING
        if "string" in types:
            string = self._string(schema) if any(k in schema for k in STRING_KEYWORDS) else StringSet()
        arrays: tuple[ArrayShape, ...] = ()
        if "array" in types:
            shape = self._array(inside) if any(k in schema for k in ARRAY_KEYWORDS) else ArrayShape()
            arrays = () if shape is None else (shape,)
        objects: tuple[ObjectShape, ...] = ()
        if "object" in types:
            objects = ((yield from self._object(inside)) if any(k in schema for k in OBJECT_KEYWORDS) else ObjectShape(),)
        return Shapes(literals, number, string, arrays, objects)

    def _integers(self, draft: Draft) -> Numbers:
        old = draft.declared and draft.number == 4
        return Numbers(NumberSet.integers(), NumberSet.nothing() if old else NumberSet.integers())

    def _enum(self, values: list[Json], pointer: Pointer) -> Shapes:
        literals = frozenset("null" if v is None else str(v).lower() for v in values if v is None or isinstance(v, bool))
        strings = [v for v in values if isinstance(v, str)]
        numbers = [v for v in values if not isinstance(v, bool | str | list | Mapping) and v is not None]
        number = Numbers.of(NumberSet.literals(numbers)) if numbers else NO_NUMBERS
        string = StringSet(Language.literals(strings), listed=True) if strings else NO_STRING
        nested = [value for value in values if isinstance(value, list | Mapping)]
        self._steps.spend(_NESTED_PRICE * len(nested))
        return self._algebra.unite((Shapes(literals, number, string, (), ()), *(self.constant(value, pointer) for value in nested)))

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

    def _object(self, inside: Interior) -> Generator[Node, Shapes, ObjectShape]:
        schema = inside.schema
        properties = inside.named("properties")
        patterns = tuple((Language.pattern(k, "ecma", "search"), node) for k, node in inside.named("patternProperties").items())
        additional = inside.sub("additionalProperties")
        invites = any(schema.get(k, False) is not False for k in ("additionalProperties", "unevaluatedProperties") if inside.has(k))
        says_more = additional is not EVERYTHING or invites
        if not says_more and _NAME_OF_SCHEMA not in properties and inside.is_named_document:
            properties = {_NAME_OF_SCHEMA: EVERYTHING, **properties}
        required = schema.get("required", ())
        names: Language | None = None
        if inside.has("propertyNames"):
            strings = (yield inside.sub("propertyNames")).string
            names = None if strings.is_all else strings.to_language()
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


# The member by which documents name their schema. It is open to them anyway; as a property it may stand in front.
_NAME_OF_SCHEMA = "$schema"


def _at_most(schema: Mapping[str, Json], keyword: str) -> int | None:
    """An upper bound; None where there is none, or none that is ever reached."""
    bound = schema.get(keyword)
    return None if bound is None or bound > MAX_COUNT else int(bound)
