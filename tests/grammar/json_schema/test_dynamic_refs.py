"""References: base URIs, anchors, embedded resources, and the dynamic scope of `$dynamicRef` and `$recursiveRef`.

The rows are checked against `jsonschema_rs` too.
"""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_vocabulary import vocabulary, walk

from formcast import Grammar, GrammarError
from formcast.grammar.json_schema.uris import resolve

VOCAB = vocabulary()
NEW = "https://json-schema.org/draft/2020-12/schema"
OLD = "https://json-schema.org/draft/2019-09/schema"
SEVEN = "http://json-schema.org/draft-07/schema#"
INT, TEXT = {"type": "integer"}, {"type": "string"}


def tree(anchor: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
    return {"$id": "http://x.test/tree", **anchor, "type": "object", "properties": {"kids": {"type": "array", "items": reference}}}


def strict_tree(anchor: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
    """A tree whose nodes, all of them, have nothing but `kids`: the classical use of a dynamic reference."""
    draft = OLD if "$recursiveAnchor" in anchor else NEW
    return {
        "$schema": draft, "$id": "http://x.test/strict", **anchor, "$ref": "tree", "unevaluatedProperties": False,
        "$defs": {"tree": tree(anchor, reference)},
    }  # fmt: skip


def generic_list(anchor_of_items: dict[str, Any]) -> dict[str, Any]:
    """A list of a type that the referring resource binds."""
    return {
        "$id": "http://x.test/list", "type": "array", "items": {"$dynamicRef": "#T"},
        "$defs": {"any": {"$dynamicAnchor": "T", **anchor_of_items}},
    }  # fmt: skip


LISTS = {
    "$schema": NEW, "$id": "http://x.test/root", "type": "object", "additionalProperties": False,
    "properties": {"n": {"$ref": "numbers"}, "s": {"$ref": "strings"}, "free": {"$ref": "list"}},
    "$defs": {
        "numbers": {"$id": "numbers", "$ref": "list", "$defs": {"t": {"$dynamicAnchor": "T", **INT}}},
        "strings": {"$id": "strings", "$ref": "list", "$defs": {"t": {"$dynamicAnchor": "T", **TEXT}}},
        "list": generic_list({}),
    },
}  # fmt: skip

# schema, what it admits, what it does not
ROWS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    # dynamic scope
    (strict_tree({"$dynamicAnchor": "node"}, {"$dynamicRef": "#node"}), [{}, {"kids": [{"kids": []}]}], [{"z": 1}, {"kids": [{"z": 1}]}]),
    (strict_tree({"$recursiveAnchor": True}, {"$recursiveRef": "#"}), [{}, {"kids": [{"kids": []}]}], [{"z": 1}, {"kids": [{"z": 1}]}]),
    (strict_tree({"$dynamicAnchor": "node"}, {"$ref": "#"}), [{"kids": [{"z": 1}]}], [{"z": 1}, {"kids": [3]}]),
    (LISTS, [{"n": [1], "s": ["x"]}, {"free": [1, "x"]}], [{"n": ["x"]}, {"s": [1]}, {"n": [1], "s": [1]}]),
    ({"$schema": NEW, "$id": "http://x.test/r", "$ref": "list", "$defs": {"list": generic_list(TEXT)}}, [["x"]], [[1]]),
    # the first target decides whether the scope is asked: an anchor of another kind does not
    ({"$schema": NEW, "$id": "http://x.test/r", "$ref": "list", "$defs": {"t": {"$dynamicAnchor": "T", **INT}, "list": {"$id": "list", "items": {"$dynamicRef": "#T"}, "$defs": {"a": {"$anchor": "T", **TEXT}}}}}, [["x"]], [[1]]),
    ({"$schema": NEW, "$id": "http://x.test/r", "$dynamicRef": "#/$defs/t", "$defs": {"t": {"$dynamicAnchor": "T", **INT}}}, [1], ["x"]),
    # a resource that is left again no longer counts
    ({"$schema": NEW, "$id": "http://x.test/r", "allOf": [{"$ref": "bound"}, {"properties": {"b": {"$ref": "list"}}}], "$defs": {"bound": {"$id": "bound", "properties": {"a": {"$ref": "list"}}, "$defs": {"t": {"$dynamicAnchor": "T", **INT}}}, "list": generic_list({})}}, [{"a": [1], "b": ["x"]}], [{"a": ["x"]}]),
    ({"$schema": OLD, "$id": "http://x.test/r", "anyOf": [INT, {"$ref": "#/$defs/o"}], "$defs": {"o": {"$id": "o", "$recursiveAnchor": True, "anyOf": [TEXT, {"type": "object", "additionalProperties": {"$recursiveRef": "#"}}]}}}, [1, {"a": "x"}, {"a": {"b": "x"}}], [{"a": 1}]),
    ({"$schema": OLD, "$id": "http://x.test/r", "$recursiveAnchor": True, "anyOf": [INT, {"$ref": "#/$defs/o"}], "$defs": {"o": {"$id": "o", "$recursiveAnchor": True, "anyOf": [TEXT, {"type": "object", "additionalProperties": {"$recursiveRef": "#"}}]}}}, [1, {"a": 1}, {"a": {"b": 1}}], [{"a": None}]),
    # metaschemas
    ({"$schema": NEW, "$ref": NEW}, [True, {"minimum": 1}, {"items": {"type": "string"}}], [1, {"minimum": "x"}, {"items": {"type": "no"}}, {"$defs": {"a": {"allOf": []}}}]),
    ({"$schema": OLD, "$ref": OLD}, [{"items": [{"minLength": 1}]}], [{"items": [{"minLength": -1}]}]),
    ({"$schema": SEVEN, "$ref": SEVEN}, [{"definitions": {"a": {"type": "null"}}}], [{"definitions": {"a": {"type": "no"}}}]),
    # base URIs
    ({"$schema": NEW, "$id": "urn:uuid:deadbeef-1234-0000-0000-4321feebdaed", "items": {"$ref": "#/$defs/t"}, "$defs": {"t": INT}}, [[1]], [["x"]]),
    ({"$schema": NEW, "$id": "tag:x.test,2024:r", "items": {"$ref": "tag:x.test,2024:t#here"}, "$defs": {"t": {"$id": "tag:x.test,2024:t", "$defs": {"u": {"$anchor": "here", **INT}}}}}, [[1]], [["x"]]),
    ({"$schema": NEW, "$id": "http://x.test/r/", "$ref": "#/$defs/deep", "$defs": {"deep": {"$id": "deep/", "$ref": "./leaf"}, "leaf": {"$id": "http://x.test/r/deep/leaf", **INT}, "wrong": {"$id": "http://x.test/r/leaf", **TEXT}}}, [1], ["x"]),
    ({"$schema": NEW, "$id": "http://x.test/a/b", "$ref": "../c?q#/$defs/t", "$defs": {"c": {"$id": "/c?q", "$defs": {"t": INT}}}}, [1], ["x"]),
    ({"$schema": NEW, "$id": "http://x.test/r", "$ref": "http://x.test/r#/$defs/t", "$defs": {"t": INT}}, [1], ["x"]),
    ({"$schema": NEW, "$ref": "#here", "$defs": {"a": {"$id": "http://x.test/a", "$defs": {"b": {"$anchor": "here", **TEXT}}}, "b": {"$anchor": "here", **INT}}}, [1], ["x"]),
    ({"$schema": NEW, "$ref": "#/$defs/a~1b%25~0c", "$defs": {"a/b%~c": INT}}, [1], ["x"]),
    ({"$schema": SEVEN, "$ref": "#here", "definitions": {"a": {"$id": "#here", **INT}}}, [1], ["x"]),
    ({"$schema": SEVEN, "$id": "http://x.test/r", "allOf": [{"$ref": "#/definitions/a"}], "definitions": {"a": {"$ref": "t", "$id": "http://y.test/elsewhere"}, "t": {"$id": "t", **INT}}}, [1], ["x"]),
    # identifiers in data, and names that look like keywords
    ({"$schema": NEW, "$id": "http://x.test/r", "$ref": "t", "$defs": {"e": {"enum": [{"$id": "t", **TEXT}]}, "c": {"const": {"$id": "t", **TEXT}}, "t": {"$id": "t", **INT}}}, [1], ["x"]),
    ({"$schema": NEW, "$ref": "#here", "$defs": {"enum": {"$defs": {"const": {"$anchor": "here", **INT}}}}}, [1], ["x"]),
    ({"$schema": NEW, "properties": {"$ref": INT, "$id": TEXT}}, [{"$ref": 1, "$id": "x"}], [{"$ref": "x"}]),
    # resources in another draft
    ({"$schema": SEVEN, "properties": {"a": {"$ref": "http://x.test/four"}}, "definitions": {"f": {"$id": "http://x.test/five", "const": 1}, "g": {"$schema": NEW, "$id": "http://x.test/four", "prefixItems": [INT]}}}, [{"a": [1]}], [{"a": ["x"]}]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "admitted", "refused"), ROWS, ids=range(len(ROWS)))
def test_rows(schema: dict[str, Any], admitted: list[Any], refused: list[Any]) -> None:
    judge = jsonschema_rs.validator_for(schema)
    assert all(judge.is_valid(v) for v in admitted) and not any(judge.is_valid(v) for v in refused)
    grammar = Grammar.json_schema(schema, property_order="any")
    assert [v for v in admitted if not grammar.accepts(json.dumps(v))] == []
    assert [v for v in refused if grammar.accepts(json.dumps(v))] == []


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("schema", [ROWS[0][0], ROWS[1][0], LISTS], ids=["dynamic", "recursive", "lists"])
def test_walks_end_valid(schema: dict[str, Any], seed: int) -> None:
    text = walk(Grammar.json_schema(schema), VOCAB, random.Random(seed))
    assert text is None or jsonschema_rs.validator_for(schema).is_valid(json.loads(text))


def test_a_registered_document_may_override_dynamic_anchors() -> None:
    registry = {"http://x.test/list": {"$schema": NEW, **generic_list({})}}
    schema = {"$schema": NEW, "$ref": "http://x.test/list", "$defs": {"t": {"$dynamicAnchor": "T", **INT}}}
    grammar = Grammar.json_schema(schema, registry=registry)
    assert grammar.accepts("[1]")
    assert not grammar.accepts('["x"]')


def test_a_registered_document_keeps_its_draft() -> None:
    registry = {
        "http://x.test/four": {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True, "const": 1}
    }
    grammar = Grammar.json_schema({"$schema": NEW, "$ref": "http://x.test/four"}, registry=registry)
    assert grammar.accepts("2")
    assert not grammar.accepts("3")


def test_identifiers_below_unknown_keywords_come_last() -> None:
    base = {"$schema": NEW, "$id": "http://x.test/r", "$ref": "t", "x-more": {"deep": {"$id": "t", **TEXT}}}
    assert Grammar.json_schema(base).accepts('"x"')
    known = Grammar.json_schema({**base, "$defs": {"t": {"$id": "t", **INT}}})
    assert known.accepts("1")
    assert not known.accepts('"x"')


@pytest.mark.parametrize(
    ("schema", "pointer", "words"),
    [
        ({"items": {"$ref": "http://elsewhere.test/a"}}, "/items/$ref", "http://elsewhere.test/a"),
        ({"items": {"$ref": "#/$defs/none"}}, "/items/$ref", "none"),
        ({"items": {"$ref": "#none"}}, "/items/$ref", "none"),
        ({"allOf": [{"$dynamicRef": "#none"}]}, "/allOf/0/$dynamicRef", "none"),
        ({"$schema": OLD, "items": {"$recursiveRef": "#/x"}}, "/items/$recursiveRef", "'#'"),
        ({"prefixItems": [INT], "items": {"$ref": "#/prefixItems/00"}}, "/items/$ref", "'00'"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "/properties/a/$ref", "circle"),
        ({"properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}}}, None, "circle"),
        ({"allOf": [{"$ref": "#"}]}, None, "without passing"),
        ({"allOf": [{"$ref": "#"}], "unevaluatedProperties": False}, None, "without passing"),
    ],
)  # fmt: skip
def test_a_reference_that_leads_nowhere_is_refused_with_its_place(schema: Any, pointer: str | None, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.json_schema(schema)
    assert words in str(caught.value)
    assert pointer is None or caught.value.pointer == pointer


def test_a_long_chain_of_resources_needs_no_recursion() -> None:
    depth = 2_000
    links = {str(i): {"$id": f"http://x.test/{i}", "$dynamicAnchor": f"a{i % 7}", "$ref": str(i + 1)} for i in range(depth)}
    schema = {"$schema": NEW, "$ref": "http://x.test/0", "$defs": {**links, "end": {"$id": f"http://x.test/{depth}", **INT}}}
    grammar = Grammar.json_schema(schema)
    assert grammar.accepts("1")
    assert not grammar.accepts('"x"')


# RFC 3986 section 5.4.1 and 5.4.2
EXAMPLES = {
    "g:h": "g:h", "g": "http://a/b/c/g", "./g": "http://a/b/c/g", "g/": "http://a/b/c/g/", "/g": "http://a/g", "//g": "http://g",
    "?y": "http://a/b/c/d;p?y", "g?y": "http://a/b/c/g?y", ";x": "http://a/b/c/;x", "g;x": "http://a/b/c/g;x", "": "http://a/b/c/d;p?q",
    ".": "http://a/b/c/", "./": "http://a/b/c/", "..": "http://a/b/", "../": "http://a/b/", "../g": "http://a/b/g", "../..": "http://a/",
    "../../": "http://a/", "../../g": "http://a/g", "../../../g": "http://a/g", "../../../../g": "http://a/g", "/./g": "http://a/g",
    "/../g": "http://a/g", "g.": "http://a/b/c/g.", ".g": "http://a/b/c/.g", "g..": "http://a/b/c/g..", "..g": "http://a/b/c/..g",
    "./../g": "http://a/b/g", "./g/.": "http://a/b/c/g/", "g/./h": "http://a/b/c/g/h", "g/../h": "http://a/b/c/h",
}  # fmt: skip


@pytest.mark.parametrize(("reference", "uri"), EXAMPLES.items())
def test_references_resolve_as_the_rfc_says(reference: str, uri: str) -> None:
    assert resolve("http://a/b/c/d;p?q", reference) == (uri, "")
    assert resolve("http://a/b/c/d;p?q", reference + "#s") == (uri, "s")


_ANCHORS = st.sampled_from(["T", "U"])
_TYPES = st.sampled_from([{"type": "integer"}, {"type": "string"}, {"type": "null"}])


@st.composite
def _resources(draw: st.DrawFn) -> dict[str, Any]:
    """A few resources that bind anchors and refer to each other, statically and dynamically."""
    names = [f"r{i}" for i in range(draw(st.integers(2, 4)))]
    resources: dict[str, Any] = {}
    for name in names:
        anchors = draw(st.dictionaries(_ANCHORS, _TYPES, max_size=2))
        resource: dict[str, Any] = {"$id": name, "$defs": {a: {"$dynamicAnchor": a, **t} for a, t in anchors.items()}}
        for key in draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True)):
            target = draw(st.sampled_from(names))
            kind = draw(st.sampled_from(["$ref", "$dynamicRef"]))
            reference = target if kind == "$ref" else f"{target}#{draw(_ANCHORS)}"
            resource.setdefault("properties", {})[key] = {kind: reference}
        resources[name] = resource
    declared = {f"{n}#{a}" for n, r in resources.items() for a in r["$defs"]}
    for resource in resources.values():
        for key, reference in list(resource.get("properties", {}).items()):
            if reference.get("$dynamicRef", "") not in declared | {""}:
                del resource["properties"][key]
    anchors = draw(st.dictionaries(_ANCHORS, _TYPES, max_size=1))
    own = {a: {"$dynamicAnchor": a, **t} for a, t in anchors.items()}
    return {"$schema": NEW, "$id": "http://x.test/root", "$ref": "r0", "$defs": {**resources, **own}}


_LEAVES = st.sampled_from([1, "x", None])
_OBJECTS = st.recursive(_LEAVES, lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8)


@settings(max_examples=60)
@given(_resources(), st.lists(_OBJECTS, min_size=1, max_size=6))
def test_random_resources_mean_what_the_validator_says(schema: dict[str, Any], values: list[Any]) -> None:
    judge = jsonschema_rs.validator_for(schema)
    grammar = Grammar.json_schema(schema, property_order="any")
    for value in values:
        assert grammar.accepts(json.dumps(value)) == judge.is_valid(value), value
