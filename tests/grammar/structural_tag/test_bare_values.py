"""Values without quotation marks: verdicts are those of a validator, and what is written is read back."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_vocabulary import EOS, brute_force, mask_of

from formcast import Grammar, GrammarError, Vocabulary, compile_grammar
from formcast.api.tools.gemma import BareReader, bare_text

QUOTE = '<|"|>'
TREE = {
    "$ref": "#/$defs/tree",
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}},
            "required": ["v"],
            "additionalProperties": False,
        }
    },
}
SCHEMAS: list[Any] = [
    True,
    {"type": "object"},
    TREE,
    {"type": "array", "items": {"type": ["integer", "string"]}, "minItems": 1, "maxItems": 3},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
    {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "null"}, "minItems": 2},
    {"enum": ["a", 1, None, {"v": [1]}, 'q"']},
    {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 2},
    {"type": "string", "maxLength": 2},
    {"anyOf": [{"type": "integer", "minimum": 2}, {"type": "array", "items": {"const": "x"}}, {"type": "boolean"}]},
]
_NAMES = st.sampled_from(["v", "kids", "a b", "a:b", "", "é", "{"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "x", 'q"', "é\n{", "ab c", "<|"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=5,
)


def grammar(schema: Any) -> Grammar:
    return Grammar.structural_tag({"type": "json_schema", "json_schema": schema, "style": "gemma"})


GRAMMARS = [grammar(schema) for schema in SCHEMAS]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(range(len(SCHEMAS))), _VALUES, st.integers(1, 5))
def test_verdicts_are_those_of_a_validator(number: int, value: Any, size: int):
    if SCHEMAS[number] is TREE and isinstance(value, dict):  # members come in the order of the schema
        value = {name: value[name] for name in ("v", "kids") if name in value} | value
    text = bare_text(value, QUOTE)
    assert GRAMMARS[number].accepts(text) == jsonschema.Draft202012Validator(SCHEMAS[number]).is_valid(value)
    reader = BareReader(QUOTE)
    read = "".join(reader.feed(text[at : at + size]) for at in range(0, len(text), size))
    assert json.loads(read) == value and read == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("text", ["{v:1,}", "{v:1 }", "{v 1}", "{kids:[]}", "{v:1,v:2}", "{v:01}", "{v:1,kids:[{v:2},]}", "{v:1", '{"v":1}'])
def test_texts_that_are_no_trees(text: str):
    assert not GRAMMARS[2].accepts(text)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "array", "uniqueItems": True}, "/json_schema"),
        ({"properties": {"a": {"contains": {"const": 1}}}}, "/json_schema/properties/a"),
        ({"type": "object", "properties": {"a": {}}, "dependentRequired": {"a": ["b"]}}, "/json_schema"),
        ({"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1}, "/json_schema"),
        ({"type": "object", "properties": {'<|"|>': {}}}, "/json_schema"),
        ({"type": "integer", "minimum": 2, "maximum": 1}, "/json_schema"),
    ],
)
def test_what_cannot_be_written(schema: Any, pointer: str):
    with pytest.raises(GrammarError) as caught:
        grammar(schema)
    assert caught.value.pointer == pointer


def test_masks_name_the_token():
    pieces: list[bytes | None] = [None, None, *(bytes((b,)) for b in range(256)), b"kids:[", b"{v:", b"}]", b'<|"|>', b'a<|"']
    vocabulary = Vocabulary(pieces, [EOS], special_tokens={QUOTE: 1})
    cursor = compile_grammar(grammar({"type": "object", "properties": {"v": {"type": "string"}}}), vocabulary).cursor()
    for token in (2 + 256 + 1, 1, 2 + ord("a")):
        assert mask_of(cursor) == brute_force(cursor)
        assert cursor.advance(token)
    assert mask_of(cursor) == brute_force(cursor) and 1 in mask_of(cursor)
    assert not cursor.fork().advance(2 + 256 + 3), "the text of the token is in no string, so that readers can tell them apart"
    assert cursor.advance(1) and cursor.advance(2 + ord("}")) and cursor.accepting
