"""Each keyword with values it admits and values it refuses; `jsonschema` agrees with every row."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from jsonschema.validators import validator_for

from formcast import Grammar

OLD = {"$schema": "http://json-schema.org/draft-07/schema#"}
FOUR = {"$schema": "http://json-schema.org/draft-04/schema#"}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["v"],
            "additionalProperties": False,
        }
    },
}

ROWS: list[tuple[Any, list[Any], list[Any]]] = [
    # types
    (True, [None, 1, "x", [], {}, [{"a": [1]}]], []),
    ({"type": "null"}, [None], [0, False, "", "null"]),
    ({"type": "boolean"}, [True, False], [0, 1, None, "true"]),
    ({"type": "integer"}, [0, -7, 1.0, 10**30, 25.0], [1.5, "1", True]),
    ({"type": "number"}, [0, -0.5, 1e300, 1e-7, 12345678901234567890], ["1", None]),
    ({"type": ["string", "null"]}, ["x", None], [1, [], {}]),
    ({"type": "object"}, [{}, {"a": {"b": []}}], [[], 1]),
    ({"type": "array"}, [[], [1, "x", None]], [{}, ""]),
    # enum and const
    ({"enum": ["a", 1, None, [1, {"k": 2}], {"x": []}]}, ["a", 1, 1.0, None, [1, {"k": 2}], {"x": []}], ["b", 2, True, [1], {}, [1, {"k": 3}]]),
    ({"enum": [0]}, [0, 0.0], [False, "", None]),
    ({"const": False}, [False], [0, None, True]),
    ({"const": {"a": [1, "é\n\""]}}, [{"a": [1, 'é\n"']}], [{"a": [1, "e"]}, {"a": [1, 'é\n"'], "b": 1}]),
    ({"enum": ["abc", "abd"], "type": "string", "minLength": 3}, ["abc"], ["ab", "abe"]),
    # numbers
    ({"minimum": 3}, [3, 3.0, 1e5, "x"], [2, 2.99, -5]),
    ({"maximum": -2.5}, [-2.5, -3, "x"], [-2.4, 0]),
    ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.1, 0.999], [0, 1, -0.0, 1.0]),
    ({"type": "integer", "minimum": -12, "maximum": 105}, [-12, 0, 99, 100, 105], [-13, 106, 1000, -100]),
    ({**FOUR, "minimum": 3, "exclusiveMinimum": True}, [4, 3.1], [3, 2]),
    ({"multipleOf": 0.25}, [0.25, 4.5, 3, 0], [0.1, 1.3]),
    ({"type": "integer", "multipleOf": 7, "minimum": 10**20}, [100000000000000000005], [100000000000000000004, 7]),
    # strings
    ({"minLength": 2, "maxLength": 3}, ["ab", "é😀", "abc", 5], ["", "a", "abcd"]),
    ({"type": "string", "pattern": "^a+b?$"}, ["a", "aab"], ["", "b", "abb", "xa"]),
    ({"type": "string", "pattern": "cat|^dog"}, ["cat", "a cat", "dog", "dogs"], ["hot dog", ""]),
    ({"type": "string", "pattern": "^[a-z]+$", "maxLength": 3, "minLength": 2}, ["ab", "abc"], ["a", "abcd", "A1"]),
    ({"pattern": "^\\S+$"}, ["x", 3, None], ["", "a b"]),
    # arrays
    ({"items": {"type": "integer"}}, [[], [1, 2], "x"], [["a"], [1, None]]),
    ({"type": "array", "minItems": 1, "maxItems": 2}, [[1], [1, 2]], [[], [1, 2, 3]]),
    ({"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}, [[], [1], [1, "x"]], [["x"], [1, 2], [1, "x", 3]]),
    ({**OLD, "items": [{"type": "integer"}], "additionalItems": {"type": "string"}}, [[], [1, "x", "y"]], [["x"], [1, 2]]),
    ({"contains": {"const": 1}}, [[1], [0, 1, 2]], [[], [0, 2]]),
    ({"type": "array", "contains": {"type": "string"}, "minContains": 2, "maxContains": 3}, [["a", 1, "b"], ["a", "b", "c"]], [["a"], ["a", "b", "c", "d"]]),
    ({"type": "array", "items": {"enum": [1, 2, "x", None]}, "uniqueItems": True}, [[], [1, "x"], [None, 2, 1, "x"]], [[1, 1], [1, 1.0], ["x", 2, "x"]]),
    ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, [[], ["a"], ["", "a", "aa", "é"], ["null", "1"]], [["a", "a"], ["", "b", ""], ["é", "a", "é"]]),
    ({"type": "array", "items": {"type": ["integer", "null", "string", "boolean"]}, "uniqueItems": True, "minItems": 2}, [[1, "1"], [None, "null", 0, False, -12, 120]], [[1], [1, 1], [None, 3, None], [False, 0, False]]),
    ({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 300}, "uniqueItems": True}, [[1, 11, 111], list(range(150))], [[1, 12, 1], [300, 300], [301]]),
    ({"type": "array", "items": {"type": "string", "pattern": "^(a*|b)$", "maxLength": 200}, "uniqueItems": True}, [["b", "", "aa"]], [["b", "b"], ["aa", "aa"], ["c"]]),
    # objects
    ({"properties": {"a": {"type": "integer"}, "b": {}}}, [{}, {"a": 1}, {"b": None, "z": 1}, 3], [{"a": "x"}]),
    ({"type": "object", "properties": {"a": {}}, "required": ["a", "z"]}, [{"a": 1, "z": 2}], [{}, {"a": 1}, {"z": 1}]),
    ({"properties": {"a": {}}, "additionalProperties": False}, [{}, {"a": 1}], [{"b": 1}, {"a": 1, "aa": 2}]),
    ({"properties": {"mode": {"enum": ["on"]}}, "additionalProperties": {"type": "number"}}, [{"mode": "on", "w": 1}, {"x": 2}], [{"mode": 7}, {"w": "x"}]),
    ({"patternProperties": {"^x_": {"type": "integer"}, "y$": {"minimum": 5}}}, [{"x_a": 1, "x_y": 5}, {"ay": "s"}], [{"x_a": "s"}, {"x_y": 4}, {"y": 1}]),
    ({"properties": {"rank": {"multipleOf": 5}}, "patternProperties": {"^r": {"maximum": 50}}, "additionalProperties": False}, [{"rank": 50, "row": 3}], [{"rank": 55}, {"rank": 7}, {"o": 1}]),
    ({"type": "object", "patternProperties": {"^(on|off)$": {"type": "string"}}, "additionalProperties": False}, [{}, {"on": "a", "off": "b"}, {"off": "b", "on": "a"}], [{"on": 1}, {"up": "a"}]),
    ({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": {"type": "boolean"}}, [{}, {"ok": True}], [{"Ok": True}, {"": True}, {"ok": 1}]),
    ({"type": "object", "minProperties": 1, "maxProperties": 2}, [{"a": 1}, {"a": 1, "b": 2}], [{}, {"a": 1, "b": 2, "c": 3}]),
    ({"properties": {"a": {}, "b": {}}, "additionalProperties": False, "minProperties": 2}, [{"a": 1, "b": 2}], [{"a": 1}, {"b": 1}]),
    ({"dependentRequired": {"a": ["b", "c"]}}, [{}, {"b": 1}, {"a": 1, "b": 2, "c": 3}], [{"a": 1}, {"a": 1, "b": 2}]),
    ({"properties": {"a": {}, "b": {}}, "dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}, "required": ["b"]}}}, [{}, {"b": "x"}, {"a": 1, "b": 2}], [{"a": 1}, {"a": 1, "b": "x"}]),
    ({**OLD, "dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, [{}, {"a": 1, "b": 1}, {"c": 1, "d": 1}], [{"a": 1}, {"c": 1}]),
    # combinators
    ({"allOf": [{"required": ["a"]}, {"properties": {"a": {"type": "integer"}}}]}, [{"a": 1}, 5], [{}, {"a": "x"}]),
    ({"anyOf": [{"type": "string"}, {"type": "object", "required": ["k"]}]}, ["x", {"k": 1}], [1, {}, []]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5, "x"], [3, 1.5]),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}, [{"a": 1}, {"b": 1, "c": 2}], [{}, {"a": 1, "b": 2}]),
    ({"oneOf": [{"properties": {"t": {"const": "x"}}, "required": ["t"]}, {"properties": {"t": {"const": "y"}, "v": {"type": "integer"}}, "required": ["t"]}]}, [{"t": "x", "v": "s"}, {"t": "y", "v": 1}], [{"t": "y", "v": "s"}, {"t": "z"}]),
    ({"not": {"type": "string"}}, [1, None, []], ["", "x"]),
    ({"type": "object", "not": {"required": ["a"]}}, [{}, {"b": 1}], [{"a": 1}]),
    ({"type": "object", "not": {"additionalProperties": {"type": "integer"}}}, [{"a": "x"}, {"b": 1, "a": None}], [{}, {"a": 1}]),
    ({"type": "object", "not": {"propertyNames": {"maxLength": 1}}}, [{"ab": 1}, {"a": 1, "bcd": 2}], [{}, {"a": 1}]),
    ({"type": "array", "not": {"items": {"type": "integer"}}}, [["x"], [1, None]], [[], [1, 2]]),
    ({"not": {"enum": ["a", 1, None]}}, ["b", 2, False, []], ["a", 1, 1.0, None]),
    ({"not": {"multipleOf": 3}, "type": "integer"}, [1, 2, 4], [0, 3, -6]),
    ({"type": "object", "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["v"]}, "else": {"maxProperties": 1}}, [{"kind": "a", "v": 1}, {"kind": "b"}, {"v": 1}], [{"kind": "a"}, {"kind": "b", "v": 1}]),
    # references
    (TREE, [{"v": 1}, {"v": 1, "kids": [{"v": 2, "kids": []}]}], [{}, {"v": 1, "kids": [{}]}, {"v": 1, "x": 1}]),
    ({"$ref": "#/$defs/a~1b~0c%25", "$defs": {"a/b~c%": {"type": "integer"}}}, [1], ["x"]),
    ({"$ref": "#x", "$defs": {"d": {"$anchor": "x", "type": "string"}}}, ["s"], [1]),
    ({"$id": "https://example.com/root", "$ref": "item", "$defs": {"i": {"$id": "item", "type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "null"}}}}}, [[], [None]], [[1], 1]),
    ({"$ref": "#/$defs/p", "properties": {"a": {"type": "integer"}}, "$defs": {"p": {"required": ["a"]}}}, [{"a": 1}], [{}, {"a": "x"}]),
    ({**OLD, "definitions": {"p": {"type": "string"}}, "properties": {"a": {"$ref": "#/definitions/p", "type": "integer"}}}, [{"a": "x"}], [{"a": 1}]),
    ({"$schema": "https://json-schema.org/draft/2020-12/schema", "$dynamicRef": "#n", "$defs": {"d": {"$dynamicAnchor": "n", "type": "null"}}}, [None], [1]),
    # annotations
    ({"title": "t", "description": "d", "default": 1, "examples": [1], "x-extra": {"type": "string"}, "format": "unheard-of"}, [1, "x", None], []),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda i: json.dumps(ROWS[i][0])[:70])
def test_verdicts(number: int) -> None:
    schema, valid, invalid = ROWS[number]
    validator = validator_for(schema, jsonschema.Draft202012Validator)(schema)
    for order in ("any", "schema"):
        grammar = Grammar.json_schema(schema, property_order=order)
        for value in valid:
            assert validator.is_valid(value), "the row is wrong"
            assert grammar.accepts(json.dumps(value)), value
            assert grammar.accepts(json.dumps(value, ensure_ascii=False, indent=2)), value
        for value in invalid:
            assert not validator.is_valid(value), "the row is wrong"
            assert not grammar.accepts(json.dumps(value)), value


FORMATS = [
    ("date-time", "2024-02-29T12:00:00Z", "2023-02-29T12:00:00Z"), ("date", "2024-02-29", "2024-13-01"), ("time", "12:00:00Z", "25:00:00Z"),
    ("email", "a.b@example.com", "a@"), ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"), ("ipv4", "127.0.0.1", "256.0.0.1"),
    ("ipv6", "::1", ":::1"), ("uri", "https://example.com/a?b#c", "no uri"), ("hostname", "example.com", "-bad"), ("duration", "P1DT2H", "P"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "valid", "invalid"), FORMATS)
def test_formats_are_enforced(name: str, valid: str, invalid: str) -> None:
    grammar = Grammar.json_schema({"type": "string", "format": name})
    assert grammar.accepts(json.dumps(valid))
    assert not grammar.accepts(json.dumps(invalid))
    if name == "date":
        assert not Grammar.json_schema({"format": name, "maxLength": 11, "pattern": "^2"}).accepts('"1999-01-01"')


SPELLINGS = [
    ({"const": "a/é😀"}, [r'"a/é😀"', r'"a\/\u00e9\ud83d\ude00"', r'"\u0061/\u00E9😀"'], [r'"a\\/é😀"', r'"a/é\ud83d"', r'"a/\ude00\ud83d"', r'"A/é😀"']),
    ({"enum": ["\n\t\"\\"]}, [r'"\n\t\"\\"', r'"\u000a\u0009\u0022\u005c"'], ['"\n\t\\"\\\\"', r'"\n\t"\\"']),
    ({"type": "string", "maxLength": 1}, [r'"\ud83d\ude00"', r'"\u0000"', '"é"', '"\x7f"'], [r'"\ud83d\ude00a"', '"\x00"', r'"\ud83d"', r'"\q"', r'"\u00g0"', '"ab"']),
    ({"properties": {"a": {"type": "null"}}, "additionalProperties": False}, [r'{"\u0061":null}'], [r'{"a":null,"\u0061":null}', r'{"\u0062":null}']),
    ({"type": "object", "propertyNames": {"maxLength": 1}}, [r'{"":1,"\u00e9":2,"a":3,"\ud83d\ude00":4}'], [r'{"a":1,"\u0061":2}', r'{"ab":1}']),
    ({"type": "object"}, [r'{"a":1,"b":2}', r'{"\ud83d\ude00":1,"x":2}'], [r'{"a":1,"a":2}', r'{"a":1,"\u0061":2}', '{"😀":1,"\\ud83d\\ude00":2}', '{"/":1,"\\/":2}', '{"":1,"":2}']),
    ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, [r'["a","\u0062","\ud83d\ude00"]'], [r'["a","\u0061"]', r'["/","\/"]', r'["\ud83d\ude00","😀"]']),
    ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, ["[0,1]", "[ 10 , 1\n]"], ["[0,-0]", "[10,1,10]", "[10,10 ]"]),
    ({"type": "integer"}, ["1", "1.0", "-0", "1e2"], ["01", "+1", ".5", "1.", "1e", "--1", "0x1", "1.50"]),
    ({"type": "number"}, ["1.50", "1E+2", "-0.0"], ["1.e1", "NaN", "Infinity", "-"]),
    ({}, ["[1 , 2]", " {\n  \"a\" : 1\n}"], ["1 ", "{}\n", "[1,]", "{,}", "[1 2]", '{"a" 1}', "{a:1}", "[1]]", "", " ", "[1,\n\n2]"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "valid", "invalid"), SPELLINGS)
def test_spellings(schema: Any, valid: list[str], invalid: list[str]) -> None:
    grammar = Grammar.json_schema(schema, property_order="any")
    for text in valid:
        json.loads(text)
        assert grammar.accepts(text), text
    for text in invalid:
        assert not grammar.accepts(text), text


def test_known_text_is_spelt_without_needless_escapes_in_schema_order() -> None:
    schema = {
        "type": "object",
        "properties": {'a"é': {"enum": ["x/é", "\n"]}},
        "required": ['a"é'],
        "additionalProperties": {"type": "string"},
    }
    grammar = Grammar.json_schema(schema)
    for text in (r'{"a\"é":"x/é"}', r'{"a\"\u00e9":"x/\u00e9"}', r'{"a\u0022é":"\n"}', r'{"a\"é":"\u000a","b":"\u0061"}'):
        assert grammar.accepts(text), text
    for text in (r'{"\u0061\"é":"x/é"}', r'{"a\"é":"x\/é"}', r'{"a\"é":"\u0078/é"}', r'{"a\"é":"\n","\u0062":""}'):
        assert not grammar.accepts(text), text
        assert Grammar.json_schema(schema, property_order="any").accepts(text)


def test_integers_are_spelt_plainly_in_schema_order() -> None:
    for schema in ({"type": "integer"}, {"type": "integer", "minimum": -5, "maximum": 200}, {"multipleOf": 5}):
        grammar = Grammar.json_schema(schema)
        for text in ("0", "10", "-5", "10.0", "100.0"):
            assert grammar.accepts(text), text
        for text in ("-0", "1e1", "1.5e1", "10.5", "10.", "10.00", "-"):
            assert not grammar.accepts(text), text
    assert not Grammar.json_schema({"type": "integer", "minimum": 0}).accepts("-0")


def test_decimal_divisors_are_exact() -> None:
    """Beside binary floating point, in which 4.02 / 0.01 has a remainder."""
    grammar = Grammar.json_schema({"multipleOf": 0.01})
    for text in ("4.02", "0.01", "0.290", "1e5", "-12345678901234567890.07"):
        assert grammar.accepts(text)
    for text in ("4.021", "0.005", "1e-3"):
        assert not grammar.accepts(text)


def test_draft_4_integers_have_no_fraction() -> None:
    for schema in ({"type": "integer"}, {"type": "integer", "minimum": 2}):
        grammar = Grammar.json_schema({**FOUR, **schema})
        assert grammar.accepts("12") and not grammar.accepts("12.0") and not grammar.accepts("3e1")
    number = Grammar.json_schema({**FOUR, "type": "number"})
    assert number.accepts("12.0") and number.accepts("12")
    other = Grammar.json_schema({**FOUR, "type": "number", "not": {"type": "integer"}})
    assert not other.accepts("12") and other.accepts("1.5")


def test_a_lone_surrogate_in_the_text_is_refused() -> None:
    assert not Grammar.json_schema({}).accepts('"\ud83d"')


WHITESPACE = [
    ("bounded", ['{"a":1}', '{ "a": 1 }', '{\n    "a": 1\n}', '{\r\n\t"a":1}'], ['{  "a":1}', '{\n\n"a":1}', "{" + "\n" + " " * 41 + '"a":1}']),
    ("compact", ['{"a":1}'], ['{ "a":1}', '{"a": 1}', '{"a":1} ', ' {"a":1}']),
    ("any", ['{"a":1}', ' {\n\n\t "a"  :\r1 }  '], ['{\u00a0"a":1}', '{\x0b"a":1}']),
    (" {0,2}", ['{"a":1}', '{  "a":  1}'], ['{   "a":1}', '{\n"a":1}']),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "valid", "invalid"), WHITESPACE)
def test_whitespace_policies(policy: str, valid: list[str], invalid: list[str]) -> None:
    grammar = Grammar.json_schema({"type": "object", "properties": {"a": {"type": "integer"}}}, whitespace=policy)
    for text in valid:
        assert grammar.accepts(text), text
    for text in invalid:
        assert not grammar.accepts(text), text


def test_separators_are_exact() -> None:
    grammar = Grammar.json_schema({}, separators=(", ", ": "))
    assert grammar.accepts(json.dumps([1, {"a": 2, "b": [3]}]))
    for text in ("[1,2]", "[1,  2]", '{"a":1}', "[ 1]", "[1 ]"):
        assert not grammar.accepts(text)
