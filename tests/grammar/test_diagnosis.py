"""`Grammar.diagnose`: where a text leaves its grammar, and what was expected there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formcast import Grammar

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "colour": {"enum": ["red", "green", "grey"]},
        "age": {"type": "integer"},
        "flags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        "a/b": {"type": "object", "properties": {"~": {"const": None}}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
JSON = Grammar.json_schema(SCHEMA, whitespace="any", property_order="any")

# text, pointer, what stands from the fault on, some of what is expected
FAULTS = [
    ("[]", "", "[]", "an object"),
    ("", "", "", "an object"),
    ("{}", "", "}", 'one of the keys "a/b", "age", "colour", "flags", "name"'),
    ('{"age": 1}', "", "}", '"," and one of the keys "a/b", "colour", "flags", "name"'),
    ('{"nam": 1}', "", '": 1}', 'the key "name"'),
    ('{"name" 1}', "", "1}", '":"'),
    ('{"name": 1}', "/name", "1}", "a string"),
    ('{"name": "x"', "", "", '"}"'),
    ('{"name": "x"} 5', "", "5", "the end of the text"),
    ('{"name": "x", "colour": "grx"}', "/colour", 'x"}', '"grey"'),
    ('{"name": "x", "colour": 5}', "/colour", "5}", '"red"'),
    ('{"name": "x", "age": -x}', "/age", "x}", "a digit"),
    ('{"name": "x", "age": "5"}', "/age", '"5"}', "a number"),
    ('{"name": "x", "flags": [true, 0]}', "/flags/1", "0]}", "false"),
    ('{"name": "x", "flags": [true, false, true]}', "/flags", ", true]}", '"]"'),
    ('{"name": "x", "a/b": {"~": 1}}', "/a~1b/~0", "1}}", "null"),
    ('{"name": "\x01"}', "/name", '\x01"}', "the closing quotation mark"),
]


@pytest.mark.parametrize(("text", "pointer", "rest", "expected"), FAULTS)
def test_a_fault_in_a_document(text: str, pointer: str, rest: str, expected: str) -> None:
    failure = JSON.diagnose(text)
    assert failure is not None
    assert (failure.pointer, failure.rest) == (pointer, rest)
    assert expected in failure.expected
    assert failure.position == len(text) - len(rest)


def test_the_place_counts_lines_and_code_points() -> None:
    failure = JSON.diagnose('{"name": "\U0001f600",\n "age": null}')
    assert failure is not None
    assert (failure.line, failure.column, failure.position) == (2, 9, 22)
    assert str(failure) == 'line 2, column 9, at /age: found "null}", expected a number'


@pytest.mark.parametrize(
    ("grammar", "text", "position", "expected"),
    [
        (Grammar.regex(r"\d{3}-[a-z]+"), "12", 2, ("a digit",)),
        (Grammar.regex(r"\d{3}-[a-z]+"), "123_", 3, ('"-"',)),
        (Grammar.regex(r"\d{3}-[a-z]+"), "123-A", 4, ('"a" to "z"',)),
        (Grammar.regex("[A-Za-z]"), "5", 0, ("a letter",)),
        (Grammar.choice(["yes", "no", "maybe"]), "x", 0, ('"maybe"', '"no"', '"yes"')),
        (Grammar.choice(["yes", "no", "maybe"]), "yess", 3, ("the end of the text",)),
        (Grammar.choice(["\u00fc\u00f6"]), "\u00fca", 1, ('"\u00f6"',)),
        (Grammar.choice(["\u00fc"]), "\u00f6", 0, ('"\u00fc"',)),
        (Grammar.ebnf('root ::= "SELECT " [a-z]+ " FROM " [a-z]+'), "SELCT", 3, ('"ECT "',)),
        (Grammar.choice(["a"]), "\ud800", 0, ('"a"',)),
    ],
)
def test_a_fault_in_another_text(grammar: Grammar, text: str, position: int, expected: tuple[str, ...]) -> None:
    failure = grammar.diagnose(text)
    assert failure is not None
    assert (failure.position, failure.pointer, failure.expected) == (position, None, expected)


@pytest.mark.parametrize("length", [1, 4_095, 4_096, 4_097, 10_000])
def test_the_place_is_exact_far_into_a_text(length: int) -> None:
    failure = Grammar.regex("a*").diagnose("a" * length + "b")
    assert failure is not None
    assert failure.position == length


def test_a_deep_document_is_no_burden() -> None:
    failure = Grammar.json_schema(True).diagnose("[" * 5_000 + "x")
    assert failure is not None
    assert failure.pointer == "/0" * 5_000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ANYTHING = Grammar.json_schema(True, whitespace="any")


@given(VALUES, st.data())
def test_it_agrees_with_accepts_and_with_the_reader_of_the_standard_library(value: object, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert ANYTHING.diagnose(text) is None
    cut = data.draw(st.integers(0, len(text)))
    broken = text[:cut] + "\x00"
    failure = ANYTHING.diagnose(broken)
    assert failure is not None
    assert failure.position == cut
    assert not ANYTHING.accepts(broken)
    assert failure.expected
