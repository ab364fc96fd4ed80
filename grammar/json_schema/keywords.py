"""The keywords of JSON Schema: what each may hold, and where subschemas are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

Json = Any

MAX_COUNT = 1 << 30  # lengths and numbers of items beyond it are never reached; a larger maximum bounds nothing
TYPES = ("null", "boolean", "object", "array", "number", "integer", "string")
NUMBER_KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
STRING_KEYWORDS = ("minLength", "maxLength", "pattern", "format")
ARRAY_KEYWORDS = ("items", "prefixItems", "additionalItems", "contains", "minItems", "maxItems", "uniqueItems")
OBJECT_KEYWORDS = (
    "properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties", "maxProperties",
    "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties",
)  # fmt: skip
SCHEMA_MAPS = ("properties", "patternProperties", "dependentSchemas")
SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SCHEMAS = (
    "items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedItems",
    "unevaluatedProperties",
)  # fmt: skip
ANNOTATIONS = frozenset((
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$comment", "$defs", "definitions", "$vocabulary", "title",
    "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType",
    "contentSchema", "discriminator", "externalDocs", "xml",
))  # fmt: skip


def is_number(x: Json) -> bool:
    """Whether a value is a JSON number."""
    return isinstance(x, int | float | Decimal) and not isinstance(x, bool)


def _count(x: Json) -> str | None:
    if is_number(x) and x >= 0:
        # a Decimal with a huge exponent must not be written out
        whole = isinstance(x, int) or (x.is_integer() if isinstance(x, float) else x.adjusted() > 30 or x == x.to_integral_value())
        if whole:
            return None
    return "must be a non-negative integer"


def _number(x: Json) -> str | None:
    return None if is_number(x) else "must be a number"


def _positive(x: Json) -> str | None:
    return None if is_number(x) and x > 0 else "must be a number above 0"


def _number_or_bool(x: Json) -> str | None:
    return None if isinstance(x, bool) or is_number(x) else "must be a number (or a boolean, in draft 4)"


def _bool(x: Json) -> str | None:
    return None if isinstance(x, bool) else "must be a boolean"


def _string(x: Json) -> str | None:
    return None if isinstance(x, str) else "must be a string"


def _names(x: Json) -> str | None:
    return None if isinstance(x, list) and all(isinstance(n, str) for n in x) else "must be an array of strings"


def _required(x: Json) -> str | None:
    # draft 3 wrote a boolean beside each property; validators of later drafts do not read it
    return None if isinstance(x, bool) else _names(x)


def _name_lists(x: Json) -> str | None:
    return None if isinstance(x, dict) and all(_names(v) is None for v in x.values()) else "must be an object of arrays of strings"


def _dependencies(x: Json) -> str | None:
    if isinstance(x, dict) and all(not isinstance(v, list) or _names(v) is None for v in x.values()):
        return None
    return "must be an object of schemas and arrays of strings"


def _array(x: Json) -> str | None:
    return None if isinstance(x, list) else "must be an array"


def _schemas(x: Json) -> str | None:
    return None if isinstance(x, list) and x else "must be a non-empty array of schemas"


def _object(x: Json) -> str | None:
    return None if isinstance(x, dict) else "must be an object"


def _type(x: Json) -> str | None:
    given = [x] if isinstance(x, str) else x
    if isinstance(given, list) and given and all(isinstance(t, str) for t in given):
        unknown = [t for t in given if t not in TYPES]
        return f"names the unknown type {unknown[0]!r}; known: {', '.join(TYPES)}" if unknown else None
    return "must be a type name or an array of them"


def _anything(x: Json) -> str | None:
    return None


VALUE_CHECKS: dict[str, Callable[[Json], str | None]] = {
    "type": _type, "enum": _array, "const": _anything, "nullable": _bool,
    "$ref": _string, "$dynamicRef": _string, "$recursiveRef": _string,
    "multipleOf": _positive, "minimum": _number, "maximum": _number,
    "exclusiveMinimum": _number_or_bool, "exclusiveMaximum": _number_or_bool,
    "minLength": _count, "maxLength": _count, "pattern": _string, "format": _string,
    "minItems": _count, "maxItems": _count, "uniqueItems": _bool, "minContains": _count, "maxContains": _count,
    "minProperties": _count, "maxProperties": _count, "required": _required,
    "dependentRequired": _name_lists, "dependencies": _dependencies,
    "properties": _object, "patternProperties": _object, "dependentSchemas": _object,
    "allOf": _schemas, "anyOf": _schemas, "oneOf": _schemas, "prefixItems": _array,
}  # fmt: skip
IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")  # apply to the same value
KNOWN = frozenset(VALUE_CHECKS) | frozenset(SCHEMAS)
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def types_of(schema: Mapping[str, Json]) -> set[str]:
    """The types that `type` and `nullable` admit."""
    given = schema.get("type")
    types: set[str] = set(TYPES) if given is None else {given} if isinstance(given, str) else set(given)
    if schema.get("nullable") is True:
        types.add("null")
    return types
