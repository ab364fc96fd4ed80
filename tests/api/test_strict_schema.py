"""OpenAI's rules for `strict: true`."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel

from formcast.api.openai.strict_schema import violations


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class Part(BaseModel):
    name: str
    kind: Literal["a", "b"]
    parts: list[Part]


class Whole(BaseModel):
    parts: list[Part]
    first: Part | None
    count: int = 3


@pytest.mark.parametrize("schema", [closed(), closed(a={"type": "string"}), closed(a=closed(b={})), to_strict_json_schema(Whole)])
def test_schemas_that_keep_the_rules(schema: Any):
    assert list(violations(schema)) == []


STRING = {"type": "string"}
BROKEN: list[tuple[Any, str, str]] = [
    (True, "", "root"),
    (STRING, "", "root"),
    ({"type": "array", "items": closed()}, "", "root"),
    (closed() | {"anyOf": [closed()]}, "", "anyOf"),
    ({"type": "object", "properties": {"a": STRING}, "required": ["a"]}, "", "additionalProperties"),
    ({"type": "object", "properties": {"a": STRING}, "required": ["a"], "additionalProperties": STRING}, "", "additionalProperties"),
    ({"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a"], "additionalProperties": False}, "", "'b' is missing"),
    ({"type": "object", "properties": {"a": STRING}, "additionalProperties": False}, "", "'a' is missing"),
    (closed(a={"type": "object"}), "/properties/a", "additionalProperties"),
    (closed(a={"type": "array", "items": {"type": "object"}}), "/properties/a/items", "additionalProperties"),
    (closed(a={"anyOf": [STRING, {"type": "object"}]}), "/properties/a/anyOf/1", "additionalProperties"),
    (closed(a={"$ref": "#/$defs/x~y"}) | {"$defs": {"x~y": {"type": "object"}}}, "/$defs/x~0y", "additionalProperties"),
]


@pytest.mark.parametrize(("schema", "pointer", "rule"), BROKEN)
def test_schemas_that_break_a_rule(schema: Any, pointer: str, rule: str):
    first = next(violations(schema))
    assert first.pointer == pointer
    assert rule in first.rule


def test_deep_schemas_are_no_trouble():
    schema: Any = {"type": "object"}
    for _ in range(20_000):
        schema = {"items": schema}
    assert next(violations(closed(a=schema))).pointer.count("/items") == 20_000
