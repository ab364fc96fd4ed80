"""The shipped schemas: well formed, and they say yes and no where they should."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest

from formcast import Grammar, schemas
from formcast.grammar.errors import FormcastError

ABSENT = object()

VALID: dict[str, list[Any]] = {
    "bug_report": [
        {
            "title": "Crash on empty file",
            "severity": "critical",
            "component": None,
            "version": "v1.4.0-rc.1",
            "steps": ["Open an empty file", "Press save"],
            "expected": "An empty file is written",
            "actual": "The program ends with a stack trace",
            "regression": True,
            "labels": ["crash", "file-io"],
        }
    ],
    "chat_tool_call": [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_9f", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Köln"}'}},
            ],
        }
    ],
    "contact": [
        {
            "name": "Ada Lovelace",
            "email": "ada.l+work@mail.engines.example",
            "phone": "+44 20 7946 0958",
            "company": "Analytical Engines Ltd",
            "job_title": "Analyst",
            "city": None,
        },
        {"name": "李雷", "email": None, "phone": "(555) 010-9999", "company": None, "job_title": None, "city": "北京"},
    ],
    "entity_extraction": [
        {
            "entities": [
                {"text": "Marie Curie", "type": "person", "canonical": None},
                {"text": "Sorbonne", "type": "organization", "canonical": "University of Paris"},
            ],
            "relations": [{"subject": 0, "predicate": "taught at", "object": 1}],
        },
        {"entities": [], "relations": []},
    ],
    "event": [
        {
            "title": "Review",
            "start": "2031-02-03T09:30:00+01:00",
            "end": "2031-02-03T10:00:00Z",
            "all_day": False,
            "location": "Room 4",
            "attendees": [{"name": "Bo", "email": "bo@team.example"}, {"name": "Cy", "email": None}],
            "recurrence": "weekly",
        }
    ],
    "geojson": [
        {"type": "Point", "coordinates": [13.4, 52.5]},
        {"type": "LineString", "coordinates": [[0, 0], [1, 1, 12.5]]},
        {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 0]]]},
        {
            "type": "GeometryCollection",
            "geometries": [{"type": "GeometryCollection", "geometries": [{"type": "MultiPoint", "coordinates": []}]}],
        },
        {
            "type": "FeatureCollection",
            "features": [
                {
                    "type": "Feature",
                    "id": "a",
                    "geometry": {"type": "Point", "coordinates": [-1e-3, 2]},
                    "properties": {"name": "x", "tags": [1, None, {"deep": True}]},
                },
                {"type": "Feature", "id": 7, "geometry": None, "properties": None},
                {"type": "Feature", "geometry": None, "properties": {}},
            ],
        },
    ],
    "invoice": [
        {
            "number": "2031/00-17",
            "issued": "2031-01-31",
            "due": None,
            "currency": "EUR",
            "seller": {"name": "Nut & Bolt", "address": "1 Mill Lane", "tax_id": "DE123"},
            "buyer": {"name": "Café Été", "address": None, "tax_id": None},
            "lines": [{"description": "Bolt M6", "quantity": 0.5, "unit_price": 10, "amount": 5.0}],
            "subtotal": 5,
            "tax": 0.95,
            "total": 5.95,
            "notes": "",
        }
    ],
    "json_rpc": [
        {"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1},
        {"jsonrpc": "2.0", "method": "update", "params": {"a": {"b": []}}},
        {"jsonrpc": "2.0", "method": "ping"},
        {"jsonrpc": "2.0", "result": None, "id": "x"},
        {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found", "data": [1]}, "id": None},
        [{"jsonrpc": "2.0", "method": "ping"}, {"jsonrpc": "2.0", "result": {"ok": True}, "id": 2}],
    ],
    "openai_function": [
        {
            "type": "function",
            "function": {
                "name": "book_table",
                "description": "Book a table",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "guests": {"type": "integer", "minimum": 1, "maximum": 12},
                        "area": {"type": "string", "enum": ["inside", "terrace"]},
                        "times": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "maxItems": 3},
                        "contact": {"type": "object", "properties": {}, "required": [], "additionalProperties": True},
                    },
                    "required": ["guests"],
                    "additionalProperties": False,
                },
                "strict": True,
            },
        }
    ],
    "recipe": [
        {
            "title": "Porridge",
            "servings": 2,
            "prep_minutes": 0,
            "cook_minutes": 10,
            "difficulty": "easy",
            "ingredients": [{"name": "oats", "quantity": 80, "unit": "g"}, {"name": "salt", "quantity": None, "unit": "pinch"}],
            "steps": ["Bring the milk to the boil.", "Stir in the oats."],
            "diet": ["vegetarian"],
        }
    ],
    "resume": [
        {
            "name": "Grace Hopper",
            "headline": None,
            "email": "grace@navy.example",
            "phone": None,
            "location": "Arlington",
            "links": ["https://example.org/~grace?cv=1#top"],
            "summary": 'Compilers, and a "bug".',
            "experience": [{"employer": "Navy", "role": "Rear admiral", "start": "1943-12", "end": None, "highlights": ["FLOW-MATIC"]}],
            "education": [{"school": "Yale", "degree": "PhD", "start": None, "end": "1934-06"}],
            "skills": ["COBOL"],
            "languages": [{"language": "English", "level": "native"}],
        }
    ],
    "sentiment": [
        {"sentiment": "mixed", "confidence": 0.75, "emotions": ["joy", "fear"], "evidence": ["I love it, but"]},
        {"sentiment": "neutral", "confidence": 1, "emotions": [], "evidence": []},
    ],
}

# (schema, index into VALID, path into that instance, the value put there or ABSENT to take it away)
BREAKS: list[tuple[str, int, tuple[str | int, ...], Any]] = [
    ("bug_report", 0, ("severity",), "urgent"),
    ("bug_report", 0, ("steps",), []),
    ("bug_report", 0, ("labels", 1), "File IO"),
    ("bug_report", 0, ("version",), "latest"),
    ("chat_tool_call", 0, ("tool_calls",), []),
    ("chat_tool_call", 0, ("tool_calls", 0, "function", "name"), "get weather"),
    ("chat_tool_call", 0, ("tool_calls", 0, "function", "arguments"), {"city": "Köln"}),
    ("chat_tool_call", 0, ("role",), "user"),
    ("contact", 0, ("email",), "ada at engines"),
    ("contact", 0, ("phone",), "ring me"),
    ("contact", 0, ("name",), ""),
    ("contact", 0, ("name",), "x" * 61),
    ("contact", 0, ("city",), ABSENT),
    ("contact", 0, ("nickname",), "Ada"),
    ("entity_extraction", 0, ("entities", 0, "type"), "animal"),
    ("entity_extraction", 0, ("relations", 0, "subject"), -1),
    ("entity_extraction", 0, ("relations", 0, "subject"), 0.5),
    ("event", 0, ("start",), "2031-13-03T09:30:00Z"),
    ("event", 0, ("start",), "2031-02-03T09:30:00"),
    ("event", 0, ("end",), "2031-02-03T24:00:00Z"),
    ("event", 0, ("all_day",), "no"),
    ("event", 0, ("attendees", 0, "email"), "bo"),
    ("geojson", 0, ("coordinates",), [13.4]),
    ("geojson", 0, ("coordinates",), [1, 2, 3, 4]),
    ("geojson", 0, ("type",), "Circle"),
    ("geojson", 1, ("coordinates",), [[0, 0]]),
    ("geojson", 2, ("coordinates", 0), [[0, 0], [4, 0], [0, 0]]),
    ("geojson", 3, ("geometries", 0, "geometries", 0, "coordinates"), [0, 0]),
    ("geojson", 4, ("features", 0, "geometry"), ABSENT),
    ("geojson", 4, ("features", 0, "properties"), []),
    ("invoice", 0, ("currency",), "euro"),
    ("invoice", 0, ("issued",), "31.01.2031"),
    ("invoice", 0, ("lines",), []),
    ("invoice", 0, ("lines", 0, "quantity"), 0),
    ("invoice", 0, ("total",), -1),
    ("invoice", 0, ("total",), "5.95"),
    ("json_rpc", 0, ("jsonrpc",), "1.0"),
    ("json_rpc", 0, ("params",), 42),
    ("json_rpc", 0, ("id",), 1.5),
    ("json_rpc", 3, ("error",), {"code": 1, "message": "both"}),
    ("json_rpc", 4, ("error", "code"), "E1"),
    ("json_rpc", 5, (0,), []),
    ("openai_function", 0, ("function", "name"), "book.table"),
    ("openai_function", 0, ("function", "parameters", "properties", "guests", "minimum"), "one"),
    ("openai_function", 0, ("function", "parameters", "properties", "times", "items", "items", "type"), "text"),
    ("openai_function", 0, ("function", "parameters", "properties", "times", "items"), ABSENT),
    ("recipe", 0, ("servings",), 0),
    ("recipe", 0, ("servings",), 2.5),
    ("recipe", 0, ("ingredients", 0, "unit"), "handful"),
    ("recipe", 0, ("steps", 0), "Boil"),
    ("resume", 0, ("experience", 0, "start"), "1943"),
    ("resume", 0, ("links", 0), "ftp://example.org"),
    ("resume", 0, ("languages", 0, "level"), "D1"),
    ("sentiment", 0, ("confidence",), 1.01),
    ("sentiment", 0, ("confidence",), -0.5),
    ("sentiment", 0, ("emotions", 0), "hunger"),
    ("sentiment", 0, ("emotions",), ["joy"] * 5),
]

VALID_CASES = [(name, instance) for name, instances in VALID.items() for instance in instances]


def broken(instance: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of `instance` with the place at `path` replaced, added or (ABSENT) taken away."""
    copied = copy.deepcopy(instance)
    *parents, last = path
    holder = copied
    for key in parents:
        holder = holder[key]
    if value is ABSENT:
        del holder[last]
    else:
        holder[last] = value
    return copied


def text_of(instance: Any) -> str:
    return json.dumps(instance, ensure_ascii=False)


@pytest.fixture(scope="module")
def grammars() -> dict[str, Grammar]:
    return {name: Grammar.json_schema(schemas.load(name)) for name in schemas.names()}


def test_each_schema_has_cases():
    assert tuple(sorted(VALID)) == schemas.names()
    assert {name for name, *_ in BREAKS} == set(schemas.names())


@pytest.mark.parametrize("name", schemas.names())
def test_is_valid_under_its_metaschema(name: str):
    schema = schemas.load(name)
    assert schema["title"] and schema["description"]
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(("name", "instance"), VALID_CASES)
def test_validator_accepts(name: str, instance: Any):
    jsonschema.Draft202012Validator(schemas.load(name)).validate(instance)


@pytest.mark.parametrize(("name", "index", "path", "value"), BREAKS)
def test_validator_refuses(name: str, index: int, path: tuple[str | int, ...], value: Any):
    assert not jsonschema.Draft202012Validator(schemas.load(name)).is_valid(broken(VALID[name][index], path, value))


@pytest.mark.parametrize(("name", "instance"), VALID_CASES)
def test_grammar_accepts(grammars: dict[str, Grammar], name: str, instance: Any):
    assert grammars[name].accepts(text_of(instance))


@pytest.mark.parametrize(("name", "index", "path", "value"), BREAKS)
def test_grammar_refuses(grammars: dict[str, Grammar], name: str, index: int, path: tuple[str | int, ...], value: Any):
    assert not grammars[name].accepts(text_of(broken(VALID[name][index], path, value)))


def test_load_gives_a_fresh_copy():
    schemas.load("contact")["properties"].clear()
    assert schemas.load("contact")["properties"]


@pytest.mark.parametrize(
    ("name", "near"),
    [("invoce", ("invoice",)), ("geo_json", ("geojson",)), ("zzzz", ()), ("../pyproject", ()), ("contact.json", ("contact",)), ("", ())],
)
def test_unknown_name_is_refused_with_near_matches(name: str, near: tuple[str, ...]):
    with pytest.raises(schemas.UnknownSchema) as refusal:
        schemas.load(name)
    assert isinstance(refusal.value, FormcastError) and isinstance(refusal.value, KeyError)
    assert refusal.value.name == name
    assert refusal.value.near[:1] == near
    assert (near or schemas.names())[0] in str(refusal.value)
