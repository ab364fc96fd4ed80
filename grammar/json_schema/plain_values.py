"""Schemas that plainly admit a value: most of those that real schemas ask about, found without expanding anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .keywords import IN_PLACE, MAX_COUNT, NUMBER_KEYWORDS, REFERENCES

Json = Any

_MOST_LOOKS = 100  # schemas that one question looks at
_COMBINING = frozenset((*REFERENCES, *IN_PLACE))
_LISTING = frozenset(("enum", "const"))
_NARROWING_STRINGS = frozenset(("minLength", "maxLength", "pattern", "format"))
_NARROWING_NUMBERS = frozenset(NUMBER_KEYWORDS)
_STRICT = frozenset(("exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_NARROWING_OBJECTS = frozenset(("patternProperties", "propertyNames", "maxProperties", "unevaluatedProperties", "dependentRequired"))
_NARROWING_ARRAYS = frozenset(("prefixItems", "contains", "uniqueItems", "unevaluatedItems"))


def is_plainly_inhabited(schema: Json) -> bool:
    """True only if a schema admits a value for a reason that is written in it and in the schemas of what it requires."""
    needs = [schema]
    for _ in range(_MOST_LOOKS):
        schema = needs.pop()
        if schema is not True and (not isinstance(schema, dict) or not _COMBINING.isdisjoint(schema) or not _admits(schema, needs)):
            return False
        if not needs:
            return True
    return False


def _admits(schema: Mapping[str, Json], needs: list[Json]) -> bool:
    """Whether some value is admitted as long as all of the schemas that this adds to `needs` admit one."""
    named = schema.get("type")
    if not _LISTING.isdisjoint(schema):
        return _admits_listed(schema, named)
    if isinstance(named, list):
        if "null" in named or "boolean" in named:
            return True
        named = named[0]  # one type is enough
    if named == "string":
        return _NARROWING_STRINGS.isdisjoint(schema) or _admits_string(schema)
    if named == "object":
        return _admits_object(schema, needs)
    if named == "array":
        return _admits_array(schema, needs)
    if named == "integer" or named == "number":
        return _NARROWING_NUMBERS.isdisjoint(schema) or _admits_number(schema)
    return True  # null, true and false are narrowed by nothing


def _admits_listed(schema: Mapping[str, Json], named: Json) -> bool:
    """Whether a listed string is a value."""
    if named not in (None, "string") or not _NARROWING_STRINGS.isdisjoint(schema) or _LISTING.issubset(schema):
        return False
    values = schema["enum"] if "enum" in schema else [schema["const"]]
    return any(isinstance(value, str) and value.isascii() for value in values)


def _admits_string(schema: Mapping[str, Json]) -> bool:
    if "pattern" in schema or ("format" in schema and ("minLength" in schema or "maxLength" in schema)):
        return False
    return "maxLength" not in schema or schema.get("minLength", 0) <= schema["maxLength"]  # every format has a value


def _admits_number(schema: Mapping[str, Json]) -> bool:
    """Of whole bounds that are not too large."""
    if not _STRICT.isdisjoint(schema):
        return False
    low, high = schema.get("minimum", -MAX_COUNT), schema.get("maximum", MAX_COUNT)
    return type(low) is int and type(high) is int and -MAX_COUNT <= low <= high <= MAX_COUNT


def _admits_object(schema: Mapping[str, Json], needs: list[Json]) -> bool:
    required = schema.get("required")
    if schema.get("minProperties", 0) > 0:
        return False
    if not isinstance(required, list) or not required:
        return True
    if not _NARROWING_OBJECTS.isdisjoint(schema):
        return False
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    needs.extend([properties.get(name, others) for name in required])
    return all(map(str.isascii, required))


def _admits_array(schema: Mapping[str, Json], needs: list[Json]) -> bool:
    least = schema.get("minItems", 0)
    if least > 0:
        items = schema.get("items", True)
        if not _NARROWING_ARRAYS.isdisjoint(schema) or isinstance(items, list) or least > schema.get("maxItems", least):
            return False
        needs.append(items)
    return "contains" not in schema
