"""Where the members of an object may stand by default, and that no order leads into a dead end."""

from __future__ import annotations

import json
import re
from itertools import permutations, product
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy_vocabulary import mask_of, text_of, vocabulary

from formcast import Grammar, GrammarError, compile_grammar
from formcast.fsm_cache import Cursor

VOCAB = vocabulary()
BYTES = {text_of(VOCAB, [t]): t for t in range(VOCAB.vocab_size) if len(text_of(VOCAB, [t])) == 1}


def document(names: str) -> str:
    return json.dumps(dict.fromkeys(names, 1))


def declared(names: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in names}, **more}


ROWS: list[tuple[dict[str, Any], str, str]] = [
    # required ones keep the order of `properties`, optional ones come anywhere
    (declared("bca", required=["b", "a"]), "ba bca cba bac", "ab acb cab"),
    (declared("bca"), "abc cba bca acb", ""),
    # undeclared ones wait for the required ones, unless the schema speaks of them
    (declared("abc", required=["b"]), "bx bax abx bxcya", "xb axb"),
    (declared("abc", required=["b"], additionalProperties=True), "xb axb bx", ""),
    (declared("abc", required=["b"], additionalProperties={"type": "integer"}), "xb bx", ""),
    (declared("abc", required=["b"], unevaluatedProperties={"type": "integer"}), "xb bx", ""),
    (declared("abc", required=["b"], unevaluatedProperties=True), "xb bx", ""),
    (declared("abc", required=["b"], patternProperties={"^x": {}}), "xb bx by", "yb xyb"),
    (declared("abc", required=["b"], patternProperties={"^[xy]$": {}}), "xb ybx bz", "zb"),
    (declared("abc", required=["b"], dependentRequired={"a": ["x"]}), "abx bxa bax", "xab axb ab"),
    (declared("abc", required=["b", "x"]), "bx xb axb bxy byx", "yxb"),
    # an alphabetical `properties` may have been sorted by a program: then the order of `required` is one as well
    (declared("abcd", required=["d", "a", "c"]), "dac acd bdac dabc acdx", "adc cad dca cda"),
    (declared("abcd", required=["b", "a", "d", "c"]), "abcd badc", "abdc bacd"),
    (declared("ba", required=["a", "b"]), "ba", "ab"),
    # merged schemas: first seen, first
    ({"allOf": [declared("b", required=["b"]), declared("a", required=["a"])]}, "ba", "ab"),
    ({**declared("cb", required=["b"]), "allOf": [declared("a", required=["a", "c"])]}, "cba", "bca abc cab"),
    # closed, all required: forced from end to end
    (declared("bac", required=["c", "b", "a"], additionalProperties=False), "bac", "abc cba bca bacx ba"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda i: json.dumps(ROWS[i][0])[:70])
def test_orders(number: int) -> None:
    schema, in_order, out_of_order = ROWS[number]
    ordered, free = Grammar.json_schema(schema), Grammar.json_schema(schema, property_order="any")
    valid = jsonschema.Draft202012Validator(schema).is_valid
    for names in in_order.split():
        assert ordered.accepts(document(names)), names
        assert free.accepts(document(names)), names
    for names in out_of_order.split():
        assert not ordered.accepts(document(names)), names
        assert free.accepts(document(names)) == valid(json.loads(document(names))), names


@pytest.mark.parametrize(
    ("more", "is_open"),
    [
        ({"$id": "https://example.com/thing"}, True),
        ({}, False),
        ({"$id": "https://example.com/thing", "additionalProperties": False}, None),
    ],
)
def test_documents_may_begin_with_the_name_of_their_schema(more: dict[str, Any], is_open: bool | None) -> None:
    schema = declared("ba", required=["b", "a"], **more)
    grammar = Grammar.json_schema(schema)
    assert grammar.accepts('{"$schema": "https://example.com/thing", "b": 1, "a": 2}') == bool(is_open)
    assert grammar.accepts('{"b": 1, "a": 2, "$schema": 0}') == (is_open is not None)
    assert not grammar.accepts('{"x": 0, "b": 1, "a": 2}')
    assert not grammar.accepts('{"$schema": 0, "b": 1, "a": 2, "$schema": 0}')
    inner = Grammar.json_schema({"$id": "https://example.com/list", "items": declared("b", required=["b"])})
    assert not inner.accepts('[{"$schema": 0, "b": 1}]')


def test_a_closed_object_of_required_members_is_forced_text() -> None:
    schema = declared("ba", required=["a", "b"], additionalProperties=False)
    schema["properties"] = {key: {"const": None} for key in schema["properties"]}
    cursor = compile_grammar(Grammar.json_schema(schema, whitespace="compact"), VOCAB).cursor()
    text = b'{"b":null,"a":null}'
    for at in range(len(text)):
        following = [byte for byte in BYTES if cursor.fork().advance(BYTES[byte])]
        assert following == [text[at : at + 1]]
        assert cursor.advance(BYTES[text[at : at + 1]])


# --- against an oracle -------------------------------------------------------------------------------------------------

NAMES = "abcxy"
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.permutations("abc").map(lambda names: {name: {} for name in names})},
    optional={
        "required": st.lists(st.sampled_from("abcx"), unique=True),
        "minProperties": st.integers(0, 4),
        "maxProperties": st.integers(1, 4),
        "dependentRequired": st.dictionaries(
            st.sampled_from("abcx"), st.lists(st.sampled_from(NAMES), unique=True, max_size=2), max_size=3
        ),
        "patternProperties": st.sampled_from([{"^x": {}}, {"[ax]": {}}]),
        "additionalProperties": st.sampled_from([True, False, {"type": "integer"}]),
        "not": st.sampled_from([{"propertyNames": {"pattern": "[abc]"}}, {"additionalProperties": False, "properties": {"b": True}}]),
    },
)


def in_order(schema: dict[str, Any], names: tuple[str, ...]) -> bool:
    """The rule, said anew."""
    declared, required = list(schema["properties"]), schema.get("required", [])
    seen = [n for n in names if n in declared and n in required]
    sequences = [[n for n in declared if n in required]]
    if declared == sorted(declared):
        sequences.append([n for n in required if n in declared])
    if not any(seen == sequence for sequence in sequences):
        return False
    first_wait = len(seen) and max(names.index(n) for n in seen)
    patterns = schema.get("patternProperties", {})
    return all(
        name in declared or name in required or "additionalProperties" in schema or any(re.search(p, name) for p in patterns)
        for name in names[:first_wait]
    )


def takes(cursor: Cursor, text: str) -> bool:
    return all(cursor.advance(BYTES[bytes((byte,))]) for byte in text.encode())


@settings(max_examples=48, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS, st.sampled_from(["schema", "any"]))
def test_what_is_taken_can_be_finished(schema: dict[str, Any], order: str) -> None:
    """Exactly the beginnings of documents that are valid and in order are taken."""
    valid = jsonschema.Draft202012Validator(schema).is_valid
    documents = [names for size in range(len(NAMES) + 1) for names in permutations(NAMES, size)]
    complete = {names for names in documents if valid(dict.fromkeys(names, 1)) and (order == "any" or in_order(schema, names))}
    beginnings = {names[:size] for names in complete for size in range(len(names) + 1)}
    try:
        fsm = compile_grammar(Grammar.json_schema(schema, whitespace="compact", property_order=order), VOCAB)
    except GrammarError as error:
        assert "no finite value" in error.reason
        assert not complete
        return
    for names in documents:
        cursor = fsm.cursor()
        text = "{" + ",".join(f'"{name}":1' for name in names)
        assert takes(cursor, text) == (names in beginnings), text
        if names in beginnings:
            assert cursor.fork().advance(BYTES[b"}"]) == (names in complete), text


@pytest.mark.parametrize(
    "schema",
    [
        {"required": ["drivers"], "properties": {"drivers": {}}, "patternProperties": {"^.{3}$": {}}},
        {"required": ["z"], "properties": {"z": {}}, "patternProperties": {"^a.$": {}, "^ab.?$": {}, "^b.{0,2}$": {"type": "null"}}},
        {"patternProperties": {"^a.$": {"const": 1}, "^ab?.$": {}}, "not": {"properties": {"q": {}}, "additionalProperties": {"const": 1}}},
    ],
)
def test_a_used_name_of_a_small_class_is_no_way_on(schema: Any) -> None:
    """While other names wait, no key may begin that could only repeat one of the class."""
    fsm, names = compile_grammar(Grammar.json_schema({"type": "object", **schema}), VOCAB), ("abc", "ab", "b", "bb", "bbc", "a", "ac")
    for first, second in product(names, names):
        cursor = fsm.cursor()
        for byte in f'{{"{first}":1,"{second}'.encode():
            if not cursor.advance(BYTES[bytes((byte,))]):
                break
            assert mask_of(cursor), f"dead end inside {second!r} behind {first!r}"
