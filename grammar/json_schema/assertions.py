"""Single assertions to shapes: what the keywords of one place say themselves, without its in-place applicators."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from ..regex import Language
from .algebra import Algebra
from .interior import Interior
from .keywords import ARRAY_KEYWORDS, NUMBER_KEYWORDS, OBJECT_KEYWORDS, STRING_KEYWORDS, types_of
from .nodes import EVERYTHING, NOTHING, Node, Nodes
from .numbers import NumberSet
from .pointers import Pointer
from .scalar_assertions import at_most, is_old, listed_scalars, scalar_shapes, typed_scalars
from .shapes import ALL_SHAPES, NO_NUMBERS, NO_STRING, ArrayShape, Contains, Members, Numbers, ObjectShape, Shapes, Step, StringSet
from .steps import Steps

Json = Any
_NESTED_PRICE = 20  # steps for an array or object of an `enum`
_OF_ARRAYS, _OF_OBJECTS = frozenset(ARRAY_KEYWORDS), frozenset(OBJECT_KEYWORDS)
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
        names = yield from self._names(inside)
        return self.alone(inside, names)

    def alone(self, inside: Interior, names: StringSet | None = None) -> Shapes:
        """As `of`, of a place whose `propertyNames`, if it has any, admits `names`."""
        if not inside.only_ref:
            shapes = scalar_shapes(inside.schema, inside.draft)
            if shapes is not None:
                return shapes
        shapes = ALL_SHAPES
        for asserted in self._each(inside, names):
            shapes = self._algebra.intersect(shapes, asserted)
        return shapes

    def constant(self, value: Json, pointer: Pointer) -> Shapes:
        """The one value."""
        nodes = self._nodes
        literals, number, string, arrays, objects = frozenset[str](), NO_NUMBERS, NO_STRING, (), ()
        if value is None or isinstance(value, bool):
            literals = frozenset({"null" if value is None else str(value).lower()})
        elif isinstance(value, str):
            string = StringSet(Language.literal(value))
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
        names = yield from self._names(inside)
        return self._each(inside, names)

    def _names(self, inside: Interior) -> Generator[Node, Shapes, StringSet | None]:
        """The names that `propertyNames` admits."""
        if "propertyNames" not in inside.schema or inside.only_ref or not inside.has("propertyNames"):
            return None
        if "object" not in types_of(inside.schema):
            return None
        return (yield inside.sub("propertyNames")).string

    def _each(self, inside: Interior, names: StringSet | None) -> list[Shapes]:
        schema = inside.schema
        if inside.only_ref:
            return []
        asserted: list[Shapes] = []
        if not _ASSERTING.isdisjoint(schema):
            asserted.append(self._keywords(inside, names))
        if "enum" in schema:
            asserted.append(self._enum(schema["enum"], inside.pointer.child("enum")))
        if inside.has("const"):
            asserted.append(self.constant(schema["const"], inside.pointer.child("const")))
        return asserted

    def _keywords(self, inside: Interior, names: StringSet | None) -> Shapes:
        schema = inside.schema
        types = types_of(schema)
        scalars = typed_scalars(schema, old=is_old(inside.draft))
        arrays: tuple[ArrayShape, ...] = ()
        if "array" in types:
            shape = ArrayShape() if _OF_ARRAYS.isdisjoint(schema) else self._array(inside)
            arrays = () if shape is None else (shape,)
        objects: tuple[ObjectShape, ...] = ()
        if "object" in types:
            objects = (ObjectShape() if _OF_OBJECTS.isdisjoint(schema) else self._object(inside, names),)
        return Shapes(scalars.literals, scalars.number, scalars.string, arrays, objects)

    def _enum(self, values: list[Json], pointer: Pointer) -> Shapes:
        nested = [value for value in values if isinstance(value, list | Mapping)]
        self._steps.spend(_NESTED_PRICE * len(nested))
        return self._algebra.unite((listed_scalars(values), *(self.constant(value, pointer) for value in nested)))

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
        high = at_most(schema, "maxItems")
        if high is not None and low > high:
            return None
        contains: tuple[Contains, ...] = ()
        if inside.has("contains"):
            least = int(schema["minContains"]) if inside.has("minContains") else 1
            most = at_most(schema, "maxContains") if inside.has("maxContains") else None
            if most is not None and least > most:
                return None
            contains = (Contains(inside.sub("contains"), least, most),)
        return ArrayShape(prefix, rest, low, high, contains, schema.get("uniqueItems") is True, pointer=inside.pointer)

    def _object(self, inside: Interior, names: StringSet | None) -> ObjectShape:
        schema = inside.schema
        properties = inside.named("properties") if "properties" in schema else {}
        patterns: tuple[tuple[Language, Node], ...] = ()
        if "patternProperties" in schema:
            patterns = tuple((Language.pattern(k, "ecma", "search"), node) for k, node in inside.named("patternProperties").items())
        additional = inside.sub("additionalProperties") if "additionalProperties" in schema else EVERYTHING
        invites = schema.get("additionalProperties", False) is not False or (
            inside.has("unevaluatedProperties") and schema["unevaluatedProperties"] is not False
        )
        says_more = additional is not EVERYTHING or invites
        if not says_more and _NAME_OF_SCHEMA not in properties and inside.is_named_document:
            properties = {_NAME_OF_SCHEMA: EVERYTHING, **properties}
        required = schema.get("required", ())
        dependencies = dict(schema["dependencies"]) if "dependencies" in schema else {}
        if inside.has("dependentRequired"):
            dependencies.update(schema["dependentRequired"])
        return ObjectShape(
            members=(Members(properties, patterns, additional, invites),) if properties or patterns or says_more else (),
            required=tuple(dict.fromkeys(required)) if not isinstance(required, bool) else (),
            names=None if names is None or names.is_all else names.to_language(),
            low=int(schema.get("minProperties", 0)),
            high=at_most(schema, "maxProperties"),
            dependencies=tuple((name, frozenset(needs)) for name, needs in dependencies.items() if isinstance(needs, list)),
            pointer=inside.pointer,
        )


# The member by which documents name their schema. It is open to them anyway; as a property it may stand in front.
_NAME_OF_SCHEMA = "$schema"

