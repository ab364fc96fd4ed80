"""`uniqueItems` over values of every kind: equality in every spelling, no dead ends, exact masks."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy_vocabulary import brute_force, mask_of, text_of, vocabulary, walk

from formcast import Grammar, GrammarError, LimitError, compile_grammar

VOCAB = vocabulary()
BYTES = {text_of(VOCAB, [t]): t for t in range(VOCAB.vocab_size) if len(text_of(VOCAB, [t])) == 1}
_SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def unique(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "uniqueItems": True, "items": items, **more}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
PAIR = {"type": "object", "properties": {"a": TEXT, "b": NUMBER}}
SCHEMAS: list[tuple[Any, list[Any], list[Any]]] = [
    # open objects
    (unique(PAIR), [[], [{}], [{}, {"a": "x"}], [{"a": "x"}, {"a": "y"}, {"a": "x", "b": 1}, {"a": "x", "b": 2}]], [[{}, {}], [{"a": "x"}, {}, {"a": "x"}]]),
    (unique(PAIR), ['[{"a":"x","b":1},{"a":"x","b":1.5}]'], ['[{"a":"x","b":1},{"b":1.0,"a":"\\u0078"}]', '[{"b":10},{"b":1e1}]', '[{"b":0},{"b":-0.0}]', '[{"b":0.5},{"b":0.50}]']),
    (unique(PAIR), [[{"z": 1}, {"y": 1}, {"z": [1]}, {"z": {"y": 1}}]], [[{"z": [1, 2]}, {"a": "x"}, {"z": [1, 2]}], '[{"z":1,"y":2},{"y":2,"z":1}]']),
    # what must differ is the last member
    (unique({**closed(a=TEXT), "required": ["a"]}), [[{"a": "x"}, {"a": "y"}, {"a": "xy"}, {"a": ""}]], [[{"a": "x"}, {"a": "y"}, {"a": "x"}]]),
    (unique({**closed(a=FLAG, b=FLAG), "required": ["a", "b"]}), [[{"a": True, "b": True}, {"a": True, "b": False}, {"a": False, "b": True}]], [[{"a": True, "b": True}, {"a": True, "b": True}]]),
    (unique({**closed(a={"type": "integer", "minimum": 0, "maximum": 3}), "minItems": 2, "required": ["a"]}), [[{"a": k} for k in range(4)]], [[{"a": 0}, {"a": 0.0}]]),
    # few values
    (unique(closed(a=FLAG)), [[{}, {"a": True}, {"a": False}]], [[{}, {}], [{"a": True}, {"a": False}, {"a": True}], [{}, {"a": True}, {"a": False}, {}]]),
    (unique({"enum": [{"a": 1}, [1], 1, {}]}), [[{"a": 1}, [1], 1, {}]], [[{"a": 1}, {"a": 1.0}], [{}, {}], [1, 1.0]]),
    ({"prefixItems": [closed(a=FLAG), {"const": {"a": True}}], "items": False, "minItems": 2, "type": "array", "uniqueItems": True}, [[{"a": False}, {"a": True}], [{}, {"a": True}]], [[{"a": True}, {"a": True}]]),
    # anything
    ({"uniqueItems": True}, [[1, "1", None, True, [], {}, [1], {"a": 1}, [[1]], 0, 1.5, "x", False], 3], [[1, 1.0], "[1,10e-1]", [[1], [1.0]], [{"a": [1]}, {"a": [1]}], [None, None], [[], []], ["a", "b", "a"], "[123456789012345678901.5,123456789012345678901.50]"]),
    (unique(NUMBER), [[0.5, 5, 0.05, -0.5]], [[0.5, 1, 0.5], "[2,2.0]", "[100,1e2]", "[0,-0]"]),
    # arrays in arrays
    (unique({"type": "array", "items": NUMBER}), [[[], [1], [1, 1], [1, 2], [2, 1]]], [[[1, 2], [1, 2]], [[], []], "[[1],[1.0]]"]),
    (unique(unique(TEXT)), [[["a", "b"], ["b", "a"], [], ["a"]]], [[["a", "a"]], [["a"], ["b"], ["a"]], [[], []]]),
    (unique({"prefixItems": [TEXT, FLAG], "items": False, "minItems": 2, "type": "array"}), [[["a", True], ["a", False], ["b", True]]], [[["a", True], ["a", True]]]),
    ({"items": {"properties": {"k": unique(unique(unique({"type": "integer"})))}}}, [[{"k": [[[1, 2], [2, 1]], [[1, 2]]]}, {"k": [[[1]]]}, {"k": [[[1]]]}]], [[{"k": [[[1, 2], [1, 2]]]}], [{"k": [[[1]], [[1.0]]]}]]),
    # beside other keywords
    ({"type": "array", "uniqueItems": True, "contains": {"type": "object", "required": ["a"]}}, [[{"a": 1}], [1, {"a": 1}, {"a": 2}]], [[], [1, 2], [{"a": 1}, {"a": 1}]]),
    (unique({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}), [[{"a": 1}, {"b": 1}]], [[{"a": 1}, {"a": 1}], [{"a": 1, "b": 1}]]),
    # negated
    ({"type": "array", "not": {"uniqueItems": True}}, [[1, 1], [1, 2, 1.0], [{}, [], {}, 5]], [[], [1], [1, 2], [{}, []]]),
    ({"type": "array", "not": {"uniqueItems": True}, "maxItems": 2}, [[1, 1], [{"a": 1}, {"a": 1.0}]], [[], [1], [1, 2], [1, 1, 1]]),
    ({"type": "array", "not": {"uniqueItems": True}, "prefixItems": [{"type": "integer"}, TEXT, {"enum": [1, "x"]}], "items": False}, [[1, "b", 1], [2, "x", "x"]], [[1, "b", "x"], [2, "a", 1], [1, 1]]),
    ({"oneOf": [{"type": "array", "uniqueItems": True}, {"type": "array", "minItems": 2}]}, [[], [1], [1, 1], [[], [], 1]], [[1, 2], 3]),
    ({"if": {"uniqueItems": True}, "then": {"maxItems": 2}, "else": {"minItems": 3}}, [[1], [1, 2], [1, 1, 1], "x"], [[1, 1], [1, 2, 3]]),
    ({"oneOf": [{"type": "array", "uniqueItems": True, "items": {"$ref": "#"}, "minItems": 2}, {"type": "array", "minItems": 3}, {"type": "null"}]}, [[None, [None, None, None]], [1, 1, 1]], [[None], [None, None], [[None, None]]]),
    # beside other keywords
    ({"oneOf": [{"type": "string"}, unique(PAIR)]}, ["x", [{"a": "x"}]], [1, [{}, {}]]),
    # alternatives that begin alike and compare in their own ways
    ({"anyOf": [unique(TEXT, maxItems=3), unique(TEXT, minItems=2)]}, [[], ["a", "b"], ["a", "b", "c", "d"]], [["a", "a"], ["a", "b", "a"], ["a", "b", "c", "a"]]),
    ({"anyOf": [unique({"type": "integer"}), {"type": "array", "items": {"type": "integer"}, "minItems": 3}, unique(NUMBER)]}, [[1, 2], [1, 1, 1], [1.5, 1]], [[1, 1], [1.5, 1.5], [1.5, 1, 1]]),
    ({"anyOf": [unique(PAIR, maxItems=2), unique({"anyOf": [PAIR, TEXT]}, minItems=2)]}, [[{}], [{}, "x", {"a": "x"}]], [["x"], [{}, {}], [{}, "x", "x"]]),
]  # fmt: skip


@pytest.mark.parametrize("order", ["any", "schema"])
@pytest.mark.parametrize("number", range(len(SCHEMAS)), ids=lambda i: json.dumps(SCHEMAS[i][0])[:70])
def test_verdicts(number: int, order: str) -> None:
    schema, valid, invalid = SCHEMAS[number]
    validator = jsonschema.Draft202012Validator(schema)
    grammar = Grammar.json_schema(schema, property_order=order)
    for row, expected in ((valid, True), (invalid, False)):
        for value in row:
            text = value if isinstance(value, str) and value[:1] == "[" else json.dumps(value)
            assert validator.is_valid(json.loads(text)) == expected, "the row is wrong"
            assert grammar.accepts(text) == expected, text


@pytest.mark.parametrize("number", range(len(SCHEMAS)), ids=lambda i: json.dumps(SCHEMAS[i][0])[:70])
def test_masks_are_exact_at_every_token(number: int) -> None:
    schema, valid, _ = SCHEMAS[number]
    fsm = compile_grammar(Grammar.json_schema(schema, whitespace="compact"), VOCAB)
    for value in valid:
        text = value if isinstance(value, str) and value[:1] == "[" else json.dumps(value, separators=(",", ":"))
        cursor = fsm.cursor()
        for byte in text.encode():
            assert mask_of(cursor) == brute_force(cursor), text
            assert cursor.advance(BYTES[bytes((byte,))])
        assert mask_of(cursor) == brute_force(cursor)


def test_rollback_and_fork_keep_what_was_read() -> None:
    fsm = compile_grammar(Grammar.json_schema(unique(PAIR), whitespace="compact"), VOCAB)
    cursor = fsm.cursor()

    def take(text: str) -> list[bool]:
        return [cursor.advance(BYTES[bytes((byte,))]) for byte in text.encode()]

    assert all(take('[{"a":"x"}'))
    fork = cursor.fork()
    assert all(take(',{"a":"x"'))
    assert take("}") == [False]
    cursor.rollback(2)
    assert all(take('y"},'))
    cursor = fork
    assert all(take(',{"a":"y"},{"b":1}]'))
    assert cursor.accepting


def test_a_thousand_objects() -> None:
    grammar = Grammar.json_schema(unique({**closed(id=TEXT), "required": ["id"]}))
    ids = [f"item {k * 7919 % 1000}" for k in range(300)]
    assert grammar.accepts(json.dumps([{"id": i} for i in ids]))
    assert not grammar.accepts(json.dumps([{"id": i} for i in [*ids, ids[100]]]))


@pytest.mark.parametrize(
    "schema",
    [
        unique(closed(a=FLAG), minItems=4),
        unique({"enum": [[1], [1.0]]}, minItems=2),
        {"type": "array", "prefixItems": [{"const": {}}, {"const": {}}], "minItems": 2, "uniqueItems": True},
    ],
)
def test_too_few_values_admit_nothing(schema: Any) -> None:
    with pytest.raises(GrammarError, match="no finite value"):
        Grammar.json_schema(schema).accepts("")


def test_what_would_be_used_up_is_refused_with_its_place() -> None:
    with pytest.raises(GrammarError, match="contains") as caught:
        Grammar.json_schema({"properties": {"a": unique({}, contains=closed(a=FLAG), minContains=3)}})
    assert caught.value.pointer == "/properties/a/uniqueItems"


@pytest.mark.parametrize("other", [{"type": "integer"}, NUMBER, PAIR])
def test_strings_that_are_used_up_do_not_begin_again(other: Any) -> None:
    cursor = compile_grammar(Grammar.json_schema(unique({"anyOf": [{"enum": ["", "x"]}, other]}), whitespace="compact"), VOCAB).cursor()
    assert all(cursor.advance(BYTES[bytes((byte,))]) for byte in b'["x","",')
    assert not cursor.advance(BYTES[b'"'])


def test_zero_does_not_begin_again() -> None:
    cursor = compile_grammar(Grammar.json_schema(unique(NUMBER), whitespace="compact"), VOCAB).cursor()
    assert all(cursor.advance(BYTES[bytes((byte,))]) for byte in b"[0,5,0")
    assert not any(cursor.fork().advance(BYTES[byte]) for byte in (b",", b"]", b"e"))
    assert all(cursor.advance(BYTES[bytes((byte,))]) for byte in b".0")
    assert not any(cursor.fork().advance(BYTES[byte]) for byte in (b",", b"]", b"e"))
    assert all(cursor.advance(BYTES[bytes((byte,))]) for byte in b"1e-400,-0.00")
    assert not cursor.advance(BYTES[b"E"])
    assert all(cursor.advance(BYTES[bytes((byte,))]) for byte in b"5,50e-1")
    assert not cursor.advance(BYTES[b"]"])


# --- against an oracle -------------------------------------------------------------------------------------------------

NAMES = ["a", "b"]
_LEAF = st.sampled_from([FLAG, {"enum": ["", "x"]}, {"const": 1}, {"type": "integer", "minimum": 0, "maximum": 1}, {"enum": [0.5, 1, None]}, TEXT, NUMBER, {}, {"type": "null"}])  # fmt: skip


def _extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    obj = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=2)},
        optional={
            "required": st.lists(st.sampled_from(NAMES), unique=True),
            "additionalProperties": st.one_of(st.just(False), inner),
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(1, 2),
            "dependentRequired": st.just({"a": ["b"]}),
            "patternProperties": st.just({"^a": {"enum": [True, 1]}}),
        },
    )
    arr = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(1, 3),
            "uniqueItems": st.booleans(),
            "not": st.just({"uniqueItems": True}),
        },
    )
    return st.one_of(obj, arr, st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}))


ITEMS = st.recursive(_LEAF, _extend, max_leaves=4)
ARRAYS = st.fixed_dictionaries(
    {"type": st.just("array"), "items": ITEMS},
    optional={
        "uniqueItems": st.just(True),
        "not": st.just({"uniqueItems": True}),
        "prefixItems": st.lists(ITEMS, min_size=1, max_size=2),
        "minItems": st.integers(0, 3),
        "maxItems": st.integers(1, 4),
        "contains": ITEMS,
    },
)
SMALL = st.recursive(
    st.sampled_from([True, None, 0, 1, 1.0, 0.5, "", "x"]),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["a", "b", "ab"]), inner, max_size=2)),
    max_leaves=3,
)


def grammar_of(schema: Any, **options: Any) -> Grammar | None:
    try:
        grammar = Grammar.json_schema(schema, whitespace="compact", **options)
        grammar.accepts("")
    except GrammarError as error:
        assert "no finite value" in error.reason or "contains" in error.reason, error
        return None
    return grammar


@_SETTINGS
@given(ARRAYS, st.lists(st.lists(SMALL, max_size=4), min_size=1, max_size=5), st.sampled_from(["schema", "any"]))
def test_verdicts_equal_jsonschema(schema: Any, arrays: list[list[Any]], order: str) -> None:
    grammar = grammar_of(schema, property_order=order)
    if grammar is None:
        return
    valid = jsonschema.Draft202012Validator(schema).is_valid
    for array in arrays:
        text = json.dumps(array, separators=(",", ":"))
        if order == "any":
            assert grammar.accepts(text) == valid(array), text
        else:
            assert not grammar.accepts(text) or valid(array), text


@_SETTINGS
@given(ARRAYS, st.sampled_from(["schema", "any"]), st.integers(0, 1000))
def test_walks_end_valid_and_never_get_stuck(schema: Any, order: str, seed: int) -> None:
    grammar = grammar_of(schema, property_order=order)
    if grammar is None:
        return
    rng = random.Random(seed)
    for _ in range(3):
        try:
            text = walk(grammar, VOCAB, rng)
        except LimitError as error:
            assert "too large or too small" in error.reason
            continue
        if text is not None and b"e" not in text:
            assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)), text


@settings(_SETTINGS, max_examples=30)
@given(ARRAYS, st.integers(0, 1000))
def test_masks_equal_brute_force(schema: Any, seed: int) -> None:
    grammar = grammar_of(schema)
    if grammar is None:
        return
    rng = random.Random(seed)
    cursor = compile_grammar(grammar, VOCAB).cursor()
    for _ in range(40):
        allowed = mask_of(cursor)
        assert allowed == brute_force(cursor)
        tokens = sorted(allowed - set(VOCAB.eos_token_ids))
        plain = [t for t in tokens if (VOCAB.token_bytes[t] or b"").isascii() and b"\\" not in (VOCAB.token_bytes[t] or b"")]
        if not tokens or not cursor.advance(rng.choice(plain or tokens)):
            break
