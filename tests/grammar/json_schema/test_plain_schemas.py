"""What is known of schemas without expanding them is never more than is true."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from formcast import Grammar
from formcast.grammar.json_schema.document import EMPTY_SCOPE, Document, draft_of
from formcast.grammar.json_schema.plain_values import is_plainly_inhabited
from formcast.grammar.json_schema.tame import Tameness

NESTED = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, "minItems": 2}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (True, 1),
        ({}, None),
        ({"type": "string", "minLength": 2, "maxLength": 2}, "ab"),
        ({"type": "string", "format": "date"}, "2024-02-29"),
        ({"type": "integer", "minimum": -3, "maximum": -3}, -3),
        ({"type": ["object", "null"], "required": ["a"], "properties": {"a": False}}, None),
        ({"type": "object", "required": ["a"]}, {"a": 1}),
        (NESTED, {"a": ["", ""]}),
        ({"type": "array", "uniqueItems": True, "items": False}, []),
        ({"enum": [1, "x"]}, "x"),
        ({"type": "string", "const": "x"}, "x"),
    ],
)
def test_plainly_inhabited_schemas_have_a_value(schema: Any, value: Any) -> None:
    jsonschema.validate(value, schema, jsonschema.Draft202012Validator)
    assert is_plainly_inhabited(schema)
    assert Grammar.json_schema(schema, property_order="any", whitespace="any").accepts(json.dumps(value))


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "string", "pattern": "a^b"},
        {"type": "string", "format": "date", "minLength": 11},
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
        {"type": "integer", "enum": ["x"]},
        {"type": "string", "enum": [1]},
        {"enum": ["x"], "const": "y"},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "object", "required": ["b"], "properties": {"b": False}}}},
        {"type": "object", "required": ["a"], "patternProperties": {"a": False}},
        {"type": "object", "required": ["a"], "propertyNames": {"maxLength": 0}},
        {"type": "object", "required": ["a"], "maxProperties": 0},
        {"type": "object", "required": ["\ud800"]},
        {"type": "array", "minItems": 2, "maxItems": 1},
        {"type": "array", "minItems": 1, "items": False},
        {"type": "array", "contains": False},
        {"not": {}},
        {"anyOf": [False]},
    ],
)
def test_what_admits_nothing_is_never_plain(schema: Any) -> None:
    assert not is_plainly_inhabited(schema)


def test_a_long_chain_of_requirements_is_not_followed_for_ever() -> None:
    schema: Any = {"type": "string"}
    for _ in range(5_000):
        schema = {"type": "object", "required": ["a"], "properties": {"a": schema}}
    assert not is_plainly_inhabited(schema)


KIND = {"kind": {"enum": ["a"]}}
TAGGED = [{"type": "object", "required": ["kind"], "properties": {"kind": {"const": tag}}} for tag in "ab"]


@pytest.mark.parametrize(
    ("schema", "tame"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "object", "properties": KIND}]}, True),
        ({"allOf": [{"$ref": "#/$defs/a"}, {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]}], "$defs": {"a": NESTED}}, True),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}, True),
        ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, False),
        ({"oneOf": TAGGED}, True),
        ({"oneOf": [*TAGGED, TAGGED[0]]}, False),
        ({"type": "array", "uniqueItems": True, "items": {"type": "string", "enum": ["a", "b"]}}, True),
        ({"type": "array", "uniqueItems": True, "items": {"type": "string", "pattern": "^(a|b){9}$"}}, False),
        ({"type": "array", "uniqueItems": True, "contains": {"const": 1}}, False),
        ({"patternProperties": {"^a": {}, "^b": {}}}, True),
        ({"patternProperties": {f"^{c}": {} for c in "abcd"}}, False),
        ({"allOf": [{"anyOf": [{"minLength": n} for n in range(9)]}] * 2}, False),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, False),
        ({"not": {"type": "string"}}, False),
    ],
)
def test_tame_places_have_few_alternatives_and_no_circle(schema: Any, tame: bool) -> None:
    document = Document(schema, draft_of(schema))
    assert Tameness(document).is_tame(schema, "", EMPTY_SCOPE) == tame


def test_a_reference_astray_is_never_tame() -> None:
    schema = {"allOf": [{"$ref": "#/nowhere"}]}
    assert not Tameness(Document(schema, draft_of(schema))).is_tame(schema, "", EMPTY_SCOPE)
