"""OpenAI's rules for a schema that is sent with `strict: true`.

formcast enforces any schema exactly, with or without the flag. But a client that sets it counts on what OpenAI promises with it: an
answer with every member and no other. A schema that does not say so is refused, as OpenAI does
(https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas"), with the place of the first violation. Keywords that
OpenAI lacks (`allOf`, `not`, `if` ...) are no violation here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_ONE_SCHEMA = ("items", "additionalItems", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")


@dataclass(frozen=True, kw_only=True)
class Violation:
    """Attributes:
    pointer: JSON pointer (RFC 6901) of the subschema.
    rule: what it breaks, as one clause.
    """

    pointer: str
    rule: str

    def __str__(self) -> str:
        return f"{self.rule} (at {self.pointer or 'the root'})"


def violations(schema: Any) -> Iterator[Violation]:
    """What a strict schema may not leave open, in document order."""
    if not isinstance(schema, dict) or not (schema.get("type") == "object" or "$ref" in schema):
        yield Violation(pointer="", rule="the root must have type 'object'")
    elif "anyOf" in schema:
        yield Violation(pointer="", rule="the root must not be an 'anyOf'")
    waiting = [("", schema)]
    while waiting:
        pointer, subschema = waiting.pop()
        if isinstance(subschema, dict):
            yield from _of_object(pointer, subschema)
            waiting += reversed(list(_children(pointer, subschema)))


def _of_object(pointer: str, schema: dict[str, Any]) -> Iterator[Violation]:
    properties = schema.get("properties")
    if schema.get("type") != "object" and not isinstance(properties, dict):
        return
    if schema.get("additionalProperties") is not False:
        yield Violation(pointer=pointer, rule="'additionalProperties' must be there and false")
    required = schema.get("required")
    listed = required if isinstance(required, list) else []
    missing = [name for name in (properties if isinstance(properties, dict) else ()) if name not in listed]
    if missing:
        yield Violation(pointer=pointer, rule=f"'required' must list every property; {missing[0]!r} is missing")


def _children(pointer: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for keyword, value in schema.items():
        here = f"{pointer}/{keyword}"
        if keyword in _ONE_SCHEMA:
            yield here, value
        elif keyword in _LISTS and isinstance(value, list):
            yield from ((f"{here}/{index}", child) for index, child in enumerate(value))
        elif keyword in _MAPS and isinstance(value, dict):
            yield from ((f"{here}/{_escaped(name)}", child) for name, child in value.items())


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
