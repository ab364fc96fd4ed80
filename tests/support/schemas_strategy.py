"""Random schemas and values for property tests; `jsonschema` is the judge."""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import strategies as st

NAMES = ["a", "b", "ab", "é", ""]
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 12), st.sampled_from([0.5, 2.5, 1.0, -1.25]), st.sampled_from(["", "a", "ab", "b1", "é😀", "abc"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip

_SCALAR = st.one_of(
    st.sampled_from([{}, True, False, {"type": "null"}, {"type": "boolean"}, {"type": "string"}, {"type": "integer"}, {"type": "number"}]),
    st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(-3, 3)}, optional={"maximum": st.integers(3, 11), "multipleOf": st.sampled_from([2, 3])}),
    st.fixed_dictionaries({"exclusiveMinimum": st.integers(-2, 4)}),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 2), "maxLength": st.integers(2, 3), "pattern": st.sampled_from(["^a", "b$", "^[a-z]*$", "1"])}),
    st.fixed_dictionaries({"enum": st.lists(VALUES, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"const": VALUES}),
    st.fixed_dictionaries({"type": st.lists(st.sampled_from(["null", "string", "integer", "array", "object"]), min_size=1, max_size=3, unique=True)}),
)  # fmt: skip


_DISTINCT = [
    {"type": "string"}, {"type": "integer"}, {"type": ["integer", "null"], "maximum": 5}, {"enum": ["a", 1, None]}, {"type": ["boolean", "string"], "maxLength": 2},
    {"type": "string", "pattern": "^a?b*$"}, {"type": "integer", "minimum": 0, "maximum": 200},
]  # fmt: skip


def _extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    some = st.lists(inner, min_size=1, max_size=3)
    obj = st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": properties,
            "required": names,
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b", "^.$"]), inner, min_size=1, max_size=2),
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(1, 3),
            "propertyNames": st.sampled_from([{"maxLength": 1}, {"pattern": "^a"}, {"enum": ["a", "b"]}]),
            "dependentRequired": st.dictionaries(st.sampled_from(NAMES), names, max_size=2),
        },
    )
    arr = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": some,
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(1, 3),
            "contains": inner,
            "maxContains": st.integers(1, 2),
            "uniqueItems": st.booleans(),
        },
    )
    distinct = st.fixed_dictionaries(
        {"type": st.just("array"), "uniqueItems": st.just(True), "items": st.sampled_from(_DISTINCT)},
        optional={"minItems": st.integers(0, 3), "maxItems": st.integers(2, 4)},
    )
    combined = st.one_of(
        st.fixed_dictionaries({"anyOf": some}),
        st.fixed_dictionaries({"allOf": some}),
        st.fixed_dictionaries({"oneOf": some}),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner, "then": inner}, optional={"else": inner}),
        st.fixed_dictionaries(
            {"type": st.just("object"), "dependentSchemas": st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=1)}
        ),
        st.fixed_dictionaries({"properties": properties, "not": inner}),
    )
    return st.one_of(obj, arr, distinct, combined)


SCHEMAS = st.recursive(_SCALAR, _extend, max_leaves=6)


def is_valid(schema: Any, value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)
