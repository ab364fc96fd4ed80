"""`unevaluatedProperties` and `unevaluatedItems`: rows that a validator agrees with, and random schemas against it."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st
from toy_vocabulary import vocabulary, walk

from formcast import Grammar, GrammarError, LimitError

VOCAB = vocabulary()
OLD = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
NEW = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
INT, TEXT = {"type": "integer"}, {"type": "string"}
A, B, C = ({"properties": {name: True}, "required": [name]} for name in "abc")
TREE = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}

# schema, what it admits, what it does not
ROWS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    # members that the place itself evaluates
    ({"properties": {"a": INT}, "unevaluatedProperties": False}, [{}, {"a": 1}, 3], [{"a": "x"}, {"b": 1}]),
    ({"properties": {"a": True}, "patternProperties": {"^x": INT}, "unevaluatedProperties": TEXT}, [{"a": 1, "x1": 2, "b": "s"}], [{"b": 1}, {"x": "s"}]),
    ({"additionalProperties": INT, "unevaluatedProperties": False}, [{"z": 1}], [{"z": "x"}]),
    ({"unevaluatedProperties": {"minimum": 5}}, [{"a": 5}, []], [{"a": 4}]),
    ({"unevaluatedProperties": True}, [{"a": 1}], []),
    # conjunctions and references
    ({"allOf": [{"properties": {"a": INT}}, {"allOf": [{"properties": {"b": INT}}]}], "unevaluatedProperties": False}, [{"a": 1, "b": 2}], [{"c": 1}, {"a": "x"}]),
    ({"$ref": "#/$defs/base", "properties": {"b": True}, "unevaluatedProperties": False, "$defs": {"base": {"properties": {"a": True}}}}, [{"a": 1, "b": 1}], [{"a": 1, "c": 1}]),
    ({"allOf": [{"properties": {"a": True}}, {"unevaluatedProperties": False}]}, [{}, 1], [{"a": 1}]),
    ({"properties": {"a": True}, "allOf": [{"properties": {"b": True}, "unevaluatedProperties": False}]}, [{"b": 1}], [{"a": 1}, {"a": 1, "b": 1}]),
    ({"properties": {"a": True}, "allOf": [{"unevaluatedProperties": True}], "unevaluatedProperties": False}, [{"z": 1}], []),
    ({"allOf": [{"unevaluatedProperties": INT}], "unevaluatedProperties": False}, [{"z": 1}], [{"z": "x"}]),
    ({"$ref": "#/$defs/tree", "unevaluatedProperties": False, "$defs": {"tree": TREE}}, [{"kids": [{"z": 1, "kids": []}]}], [{"z": 1}, {"kids": 1}]),
    ({"$ref": "#/$defs/tree", "$defs": {"tree": {**TREE, "unevaluatedProperties": False}}}, [{"kids": [{"kids": []}]}], [{"kids": [{"z": 1}]}]),
    # choices
    ({"anyOf": [A, B, C], "unevaluatedProperties": False}, [{"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}, {"c": 3}], [{}, {"z": 1}, {"a": 1, "z": 1}]),
    ({"anyOf": [{"properties": {"a": INT}}, {"properties": {"b": INT}}], "unevaluatedProperties": False}, [{}, {"a": 1}, {"a": 1, "b": 1}], [{"a": "x"}, {"a": "x", "b": 1}, {"c": 1}]),
    ({"anyOf": [True, A], "unevaluatedProperties": False}, [{}, {"a": 1}], [{"b": 1}]),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": True, "b": True}, "unevaluatedProperties": False}, [{"a": 1}, {"a": 1, "b": 1}], [{}, {"a": 1, "c": 1}]),
    ({"oneOf": [A, B], "unevaluatedProperties": False}, [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 1}, {"a": 1, "c": 1}]),
    ({"oneOf": [A, {"required": ["b"]}], "unevaluatedProperties": False}, [{"a": 1}], [{"b": 1}, {"a": 1, "b": 1}]),
    ({"oneOf": [{"anyOf": [A, B]}, C], "unevaluatedProperties": False}, [{"a": 1, "b": 1}, {"c": 1}, {"b": 2}], [{"a": 1, "c": 1}, {}]),
    ({"oneOf": [{"properties": {"k": {"const": "x"}, "a": INT}}, {"properties": {"k": {"const": "y"}, "b": INT}}], "required": ["k"], "unevaluatedProperties": False}, [{"k": "x", "a": 1}, {"k": "y"}], [{"k": "x", "b": 1}, {"k": "z"}]),
    ({"not": {"required": ["x"], "properties": {"y": True}}, "unevaluatedProperties": False}, [{}], [{"y": 1}, {"x": 1}]),
    ({"not": {"not": A}, "unevaluatedProperties": False}, [1], [{"a": 1}, {}]),
    ({"if": A, "then": {"properties": {"t": True}}, "else": {"properties": {"e": True}}, "unevaluatedProperties": False}, [{"a": 1, "t": 1}, {"e": 1}, {}], [{"t": 1}, {"a": 1, "e": 1}]),
    ({"if": A, "unevaluatedProperties": False}, [{"a": 1}, {}], [{"b": 1}]),
    ({"if": {"properties": {"a": {"const": 1}}}, "else": {"properties": {"b": True}}, "unevaluatedProperties": False}, [{"a": 1}, {}], [{"a": 2}, {"b": 1}]),
    ({"dependentSchemas": {"a": {"properties": {"a": True, "b": INT}}}, "unevaluatedProperties": False}, [{}, {"a": 1}, {"a": 1, "b": 1}], [{"b": 1}, {"a": 1, "b": "x"}]),
    # under `not` and `oneOf` themselves
    ({"type": "object", "not": {"properties": {"a": True}, "unevaluatedProperties": False}}, [{"b": 1}], [{}, {"a": 1}]),
    ({"type": "object", "not": {"anyOf": [A, B], "unevaluatedProperties": False}}, [{}, {"c": 1}, {"a": 1, "c": 1}], [{"a": 1}, {"a": 1, "b": 1}]),
    ({"type": "object", "oneOf": [{**A, "unevaluatedProperties": False}, {"required": ["a"], "unevaluatedProperties": INT}]}, [{"a": "x"}, {"a": 1, "b": 2}], [{"a": 1}, {"b": 1}]),
    # items
    ({"prefixItems": [INT], "unevaluatedItems": False}, [[], [1], "x"], [["x"], [1, 2]]),
    ({"prefixItems": [INT], "unevaluatedItems": TEXT}, [[1, "x", "y"]], [[1, 2]]),
    ({"items": INT, "unevaluatedItems": False}, [[1, 2]], [["x"]]),
    ({"allOf": [{"prefixItems": [True, INT]}], "prefixItems": [TEXT], "unevaluatedItems": False}, [["x", 1]], [["x", 1, 1], [1]]),
    ({"allOf": [{"unevaluatedItems": INT}], "unevaluatedItems": False}, [[1, 2]], [["x"]]),
    ({"anyOf": [{"prefixItems": [True, {"const": 1}]}, {"prefixItems": [True, True, {"const": 2}]}], "unevaluatedItems": False}, [[0], [0, 1], [0, 0, 2], [0, 1, 2]], [[0, 1, 3], [0, 1, 2, 3]]),
    ({"if": {"prefixItems": [{"const": 1}]}, "then": {"prefixItems": [True, INT]}, "unevaluatedItems": False}, [[1], [1, 2], []], [[1, 2, 3], [2]]),
    ({"contains": INT, "unevaluatedItems": False}, [[1], [1, 2]], [[], [1, "x"]]),
    ({"contains": INT, "unevaluatedItems": TEXT}, [[1, "x"], ["x", 1]], [["x"], [1, None]]),
    ({"contains": INT, "minContains": 0, "unevaluatedItems": False}, [[], [1]], [["x"]]),
    ({"contains": INT, "maxContains": 2, "unevaluatedItems": TEXT}, [[1, "x", 2]], [[1, 2, 3], [1, None]]),
    ({"allOf": [{"contains": {"multipleOf": 2}}, {"contains": {"multipleOf": 3}}], "unevaluatedItems": {"multipleOf": 5}}, [[2, 3, 4, 5, 6], [6]], [[2, 3, 7], [2, 4], [5, 2]]),
    ({"if": {"contains": {"const": "a"}}, "then": {"if": {"contains": {"const": "b"}}}, "unevaluatedItems": False}, [[], ["a", "a"], ["b", "a"]], [["b"], ["a", "c"]]),
    ({"type": "array", "not": {"contains": INT, "unevaluatedItems": TEXT}}, [[], ["x"], [1, None]], [[1], [1, "x"]]),
    ({**OLD, "items": [INT], "unevaluatedItems": False}, [[1]], [[1, 2]]),
    ({**OLD, "items": [INT], "additionalItems": TEXT, "unevaluatedItems": False}, [[1, "x"]], [[1, 2]]),
    ({**OLD, "anyOf": [{"items": [True, TEXT]}, {"items": [True]}], "unevaluatedItems": INT}, [[0, "x"], [0, 1], [0, "x", 1]], [[0, None], [0, 1, "x"]]),
    # both at once, each blind to the other
    ({"anyOf": [A, {"prefixItems": [True]}], "unevaluatedProperties": False, "unevaluatedItems": False}, [{"a": 1}, [1], {}, []], [{"b": 1}, [1, 2]]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "admitted", "refused"), ROWS, ids=lambda x: json.dumps(x) if isinstance(x, dict) else "")
def test_rows(schema: dict[str, Any], admitted: list[Any], refused: list[Any]) -> None:
    judge = jsonschema_rs.validator_for({**NEW, **schema})
    assert all(judge.is_valid(v) for v in admitted) and not any(judge.is_valid(v) for v in refused)
    grammar = Grammar.json_schema(schema, property_order="any")
    assert [v for v in admitted if not grammar.accepts(json.dumps(v))] == []
    assert [v for v in refused if grammar.accepts(json.dumps(v))] == []


def test_contains_evaluates_nothing_in_2019_09() -> None:
    """2019-09 section 9.3.1.3 names only `items`, `additionalItems` and `unevaluatedItems`."""
    grammar = Grammar.json_schema({**OLD, "contains": INT, "unevaluatedItems": TEXT}, property_order="any")
    assert grammar.accepts("3")
    assert not any(grammar.accepts(text) for text in ("[1]", '["x"]', '[1, "x"]'))


def test_schema_order_keeps_the_order_of_declarations() -> None:
    grammar = Grammar.json_schema({"allOf": [{"properties": {"b": INT, "a": INT}, "required": ["a", "b"]}], "unevaluatedProperties": False})
    assert grammar.accepts('{"b": 1, "a": 2}')
    assert not grammar.accepts('{"a": 2, "b": 1}')


def test_a_malformed_rest_is_refused_with_its_place() -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.json_schema({"properties": {"a": {"unevaluatedProperties": 3}}})
    assert caught.value.pointer == "/properties/a/unevaluatedProperties"


def test_older_drafts_do_not_know_the_keywords() -> None:
    grammar = Grammar.json_schema({"$schema": "http://json-schema.org/draft-07/schema#", "unevaluatedProperties": False})
    assert grammar.accepts('{"a": 1}')


def test_many_disjoint_branches_stay_within_the_budget() -> None:
    kinds = [{"properties": {"kind": {"const": f"k{i}"}, f"p{i}": INT}} for i in range(40)]
    grammar = Grammar.json_schema({"type": "object", "required": ["kind"], "anyOf": kinds, "unevaluatedProperties": False})
    assert grammar.accepts('{"kind": "k7", "p7": 1}')
    assert not grammar.accepts('{"kind": "k7", "p8": 1}')


def test_too_many_overlapping_branches_are_refused() -> None:
    with pytest.raises(LimitError):
        Grammar.json_schema({"anyOf": [{"properties": {f"p{i}": INT}} for i in range(40)], "unevaluatedProperties": False})


NAMES = ["a", "b", "ab", "c"]
_LEAVES = st.sampled_from([True, {}, {"type": "integer"}, {"const": 1}, {"type": "string"}, {"minimum": 2}, False])
_VALUES = st.sampled_from([1, 2, "x", None, 0])
INSTANCES = st.one_of(
    st.dictionaries(st.sampled_from([*NAMES, "z"]), _VALUES, max_size=4), st.lists(st.one_of(_VALUES, st.just([])), max_size=4), _VALUES
)


def _place(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Small schema objects over a few names and items."""
    properties = st.dictionaries(st.sampled_from(NAMES), _LEAVES, max_size=2)
    some = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": properties,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), _LEAVES, max_size=1),
            "required": st.lists(st.sampled_from(NAMES), max_size=1),
            "prefixItems": st.lists(_LEAVES, min_size=1, max_size=2),
            "contains": _LEAVES,
            "minContains": st.integers(0, 1),
            "maxContains": st.integers(1, 2),
            "additionalProperties": st.sampled_from([True, {"type": "integer"}]),
            "items": _LEAVES,
            "unevaluatedProperties": _LEAVES,
            "unevaluatedItems": _LEAVES,
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "dependentSchemas": st.dictionaries(st.sampled_from(NAMES), inner, max_size=1),
            "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
        },
    ).map(_thinned)


def _thinned(schema: dict[str, Any]) -> dict[str, Any]:
    """At most four keywords, so that not everything contradicts everything."""
    keep = list(schema)[-4:] if len(schema) % 2 else list(schema)[:4]
    return {k: schema[k] for k in keep}


_DEFS = {"x": {"properties": {"a": True}, "prefixItems": [True]}, "y": {"anyOf": [{"properties": {"b": {"const": 1}}}, {"required": ["c"], "properties": {"c": True}}]}}  # fmt: skip
_CLOSED = st.tuples(st.recursive(_LEAVES, _place, max_leaves=8), st.sampled_from(["unevaluatedProperties", "unevaluatedItems"]), _LEAVES)
SCHEMAS = _CLOSED.map(lambda drawn: {"allOf": [drawn[0]], drawn[1]: drawn[2], "$defs": _DEFS})
_SETTINGS = settings(max_examples=48, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def grammar_of(schema: Any, order: str) -> Grammar | None:
    try:
        return Grammar.json_schema(schema, property_order=order)
    except LimitError:
        reject()
    except GrammarError as error:
        assert "no finite value" in error.reason, error
    return None


def _accepts(grammar: Grammar | None, value: Any) -> bool:
    if grammar is None:
        return False
    try:
        return grammar.accepts(json.dumps(value))
    except LimitError:
        reject()
    except GrammarError as error:
        assert "no finite value" in error.reason, error
        return False


@_SETTINGS
@given(SCHEMAS, st.lists(INSTANCES, min_size=1, max_size=8))
def test_verdicts_equal_the_validator(schema: Any, values: list[Any]) -> None:
    judge = jsonschema_rs.Draft202012Validator(schema)
    grammar = grammar_of(schema, "any")
    for value in values:
        assert _accepts(grammar, value) == judge.is_valid(value), value


@_SETTINGS
@given(SCHEMAS, st.sampled_from(["schema", "any"]), st.integers(0, 1000))
def test_random_walks_end_valid_and_never_get_stuck(schema: Any, order: str, seed: int) -> None:
    grammar = grammar_of(schema, order)
    assume(grammar is not None and _accepts(grammar, None) is not None)
    assert grammar is not None
    judge = jsonschema_rs.Draft202012Validator(schema)
    rng = random.Random(seed)
    try:
        texts = [walk(grammar, VOCAB, rng) for _ in range(2)]
    except LimitError:
        reject()
    except GrammarError as error:
        assert "no finite value" in error.reason, error
        return
    for text in texts:
        assert text is None or judge.is_valid(json.loads(text)), text
