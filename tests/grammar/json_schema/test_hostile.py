"""Hostile schemas and texts: each is dealt with, or refused by an error of its own that names the place, within its share of time
and memory.

Every case runs in a process of its own, so that one that crashes, hangs or fills the memory is caught: this file, run as a program, is
a server that forks a child for each case it is asked for. `Case.make` runs in the child.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

CPU_SECONDS = 6  # an idle core needs at most 2; a busy one shares its caches
MEMORY_BYTES = 500 << 20  # beside what the process has before
DEEP = 10_000

Json = Any


@dataclass(frozen=True, kw_only=True)
class Case:
    """Attributes:
    make: the schema.
    texts: what the automaton says about each text, if it can be made.
    options: keyword arguments of `Grammar.json_schema`.
    made: True if the schema must be dealt with, False if it must be refused, None if either will do.
    placed: a refusal names a place in the schema. What is not JSON has none.
    late: a budget may run out in the middle of a text, because the text itself spends it.
    """

    make: Callable[[], Json]
    texts: Callable[[], Mapping[str, bool]] = dict
    options: Mapping[str, Any] = field(default_factory=dict)
    made: bool | None = None
    placed: bool = True
    late: bool = False


CASES: dict[str, Case] = {}


def case(name: str, make: Callable[[], Json], texts: Callable[[], Mapping[str, bool]] = dict, **more: Any) -> None:
    assert name not in CASES, name
    CASES[name] = Case(make=make, texts=texts, **more)


# --- deep schemas --------------------------------------------------------------------------------------------------

WRAPPINGS: dict[str, tuple[Callable[[Json], Json], str, str]] = {
    "allOf": (lambda s: {"allOf": [s]}, '{"allOf":[', "]}"),
    "anyOf": (lambda s: {"anyOf": [s]}, '{"anyOf":[', "]}"),
    "oneOf": (lambda s: {"oneOf": [s]}, '{"oneOf":[', "]}"),
    "not": (lambda s: {"not": s}, '{"not":', "}"),
    "if": (lambda s: {"if": s}, '{"if":', "}"),
    "properties": (lambda s: {"properties": {"a": s}}, '{"properties":{"a":', "}}"),
    "items": (lambda s: {"items": s}, '{"items":', "}"),
    "additionalProperties": (lambda s: {"additionalProperties": s}, '{"additionalProperties":', "}"),
    "contains": (lambda s: {"contains": s}, '{"contains":', "}"),
    "dependentSchemas": (lambda s: {"dependentSchemas": {"a": s}}, '{"dependentSchemas":{"a":', "}}"),
    "const": (lambda s: {"const": s}, '{"const":', "}"),
}


def nested(wrap: Callable[[Json], Json], inner: Json) -> Json:
    for _ in range(DEEP):
        inner = wrap(inner)
    return inner


for _keyword, (_wrap, _open, _close) in WRAPPINGS.items():
    case(f"deep {_keyword}", lambda wrap=_wrap: nested(wrap, {"type": "string"}))
    case(f"deep {_keyword} as text", lambda open=_open, close=_close: open * DEEP + '{"type":"string"}' + close * DEEP)
case(
    "deep propertyNames",
    lambda: nested(lambda s: {"propertyNames": s}, {"type": "string"}),
    lambda: {"{}": True, '{"a":1}': True, "{1": False},
)
case(
    "deep closed objects",
    lambda: nested(
        lambda s: {"type": "object", "properties": {"a": s}, "required": ["a"], "additionalProperties": False}, {"type": "string"}
    ),
    lambda: {'{"a":' * DEEP + '"x"' + "}" * DEEP: True, '{"a":' * DEEP + "1": False, '{"a":{}}': False},
)
case(
    "deep items, deep text",
    lambda: nested(lambda s: {"type": "array", "items": s}, {"type": "string"}),
    lambda: {"[" * DEEP + '"x"' + "]" * DEEP: True, "[" * DEEP + "1": False, "[[]]": True},
)
case("deep unfinished text", lambda: '{"items":' * DEEP, made=False, placed=False)
case("deep constant array", lambda: {"const": nested(lambda x: [x], 1)})
case(
    "constant nested 900 deep",
    lambda: {"const": json.loads("[" * 900 + "]" * 900)},
    lambda: {"[" * 900 + "]" * 900: True, "[" * 899 + "]" * 899: False},
)


def chain(link: Callable[[str], Json]) -> Json:
    """Definitions each of which refers to the next, the last one a string."""
    definitions = {f"d{i}": link(f"#/$defs/d{i + 1}") for i in range(DEEP)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{DEEP}": {"type": "string"}}}


case("chain of references", lambda: chain(lambda ref: {"$ref": ref}), lambda: {'"x"': True, "1": False})
case("chain of negations", lambda: chain(lambda ref: {"not": {"$ref": ref}}), lambda: {'"x"': True, "1": False})
case("chain of conjunctions", lambda: chain(lambda ref: {"allOf": [{"$ref": ref}, {"minLength": 1}]}), lambda: {'"x"': True, '""': False})
case(
    "chain of required members",
    lambda: chain(lambda ref: {"type": "object", "properties": {"a": {"$ref": ref}}, "required": ["a"]}),
    lambda: {'{"a":' * DEEP + '"x"' + "}" * DEEP: True, '{"a":1}': False},
)
case(
    "chain of required items",
    lambda: chain(lambda ref: {"type": "array", "items": {"$ref": ref}, "minItems": 1}),
    lambda: {"[" * DEEP + '"x"' + "]" * DEEP: True, "[" * DEEP + "1": False},
)

# --- deep and long texts -------------------------------------------------------------------------------------------

MANY = 100_000
_TREE = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}
case(
    "deep arrays", lambda: _TREE, lambda: {"[" * MANY + "]" * MANY: True, "[" * MANY: False, "[" * MANY + "1": False}, made=True, late=True
)
case(
    "deep objects",
    lambda: {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False},
    lambda: {'{"a":' * MANY + "{}" + "}" * MANY: True},
    made=True,
    late=True,
)
case("deep anything", lambda: True, lambda: {"[" * MANY + "]" * MANY: True}, made=True, late=True)
case(
    "deep and ambiguous",
    lambda: {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "array", "items": {"$ref": "#"}, "maxItems": 1}]},
    lambda: {"[" * MANY + "]" * MANY: True},
    made=True,
    late=True,
)
case("long string", lambda: {"type": "string"}, lambda: {'"' + "x" * 5_000_000 + '"': True}, made=True)
case("long counted string", lambda: {"maxLength": 10**7}, lambda: {'"' + "x" * 500_000 + '"': True}, made=True, late=True)
case("long integer", lambda: {"type": "integer"}, lambda: {"9" * MANY: True}, made=True)
case("long multiple", lambda: {"multipleOf": 7}, lambda: {"7" * MANY: True, "7" * MANY + "1": False}, made=True)
case("long bounded number", lambda: {"minimum": 7}, lambda: {"7" * MANY: True, "-" + "7" * MANY: False}, made=True)
case("long fraction", lambda: {"multipleOf": 0.01}, lambda: {"0." + "0" * MANY: True, "0." + "0" * MANY + "1": False}, made=True)
case("many items", lambda: {"items": {"type": "integer"}}, lambda: {"[" + "1," * MANY + "1]": True}, made=True)
case(
    "many keys",
    lambda: {"type": "object"},
    lambda: {
        "{" + ",".join(f'"k{i}":1' for i in range(3000)) + "}": True,
        "{" + ",".join(f'"k{i}":1' for i in range(3000)) + ',"k7":1}': False,
    },
    made=True,
    late=True,
)

# --- enums and combinators -----------------------------------------------------------------------------------------

case("enum of 100,000 strings", lambda: {"enum": [f"v{i}" for i in range(MANY)]}, lambda: {'"v99999"': True, '"v100000"': False}, made=True)
case("enum of 100,001 strings", lambda: {"enum": [f"v{i}" for i in range(MANY + 1)]}, made=False)
case(
    "enum of 100,000 unlike strings",
    lambda: {"enum": [f"{random.Random(i).getrandbits(120):030x}" for i in range(MANY)]},
    lambda: {'"x"': False},
    made=True,
)
case("enum of 100,000 integers", lambda: {"enum": list(range(0, 2 * MANY, 2))}, lambda: {"99998": True, "99999": False})
case("enum of 100,000 spread integers", lambda: {"enum": [i * i * 7 + 3 for i in range(MANY)]}, lambda: {"10": True, "11": False})
case("enum of 100,000 decimals", lambda: {"enum": [i / 1000 for i in range(MANY)]}, lambda: {"0.003": True, "0.0031": False})
case("enum of 100,000 arrays", lambda: {"enum": [[i] for i in range(MANY)]}, lambda: {"[7]": True, "[]": False})
case("enum of 100,000 objects", lambda: {"enum": [{"a": i} for i in range(MANY)]}, lambda: {'{"a":7}': True, '{"a":null}': False})
case("enum of 3,000 objects", lambda: {"enum": [{"a": i} for i in range(3000)]}, lambda: {'{"a":7}': True, '{"a":null}': False})
case("enum of 3,000 arrays", lambda: {"enum": [[i] for i in range(3000)]}, lambda: {"[7]": True, "[]": False})
case("anything but 100,000 strings", lambda: {"not": {"enum": [f"v{i}" for i in range(MANY)]}}, lambda: {'"v99999"': False, '"w"': True})
case("any of 20,000 constants", lambda: {"anyOf": [{"const": f"v{i}"} for i in range(20_000)]}, lambda: {'"v9999"': True, '"w"': False})
case("one of 2,000 constants", lambda: {"oneOf": [{"const": f"v{i}"} for i in range(2000)]}, lambda: {'"v999"': True, '"w"': False})
case(
    "any of 10,000 objects",
    lambda: {"anyOf": [{"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]} for i in range(10_000)]},
)
case(
    "any of 3,000 lengths",
    lambda: {"items": {"anyOf": [{"type": "array", "maxItems": i} for i in range(3000)]}},
    lambda: {"[[1],[]]": True},
)
case(
    "one of 2,000 objects", lambda: {"oneOf": [{"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]} for i in range(2000)]}
)


def choices(count: int) -> Json:
    return {"type": "object", "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(count)]}


case("2^10 combinations", lambda: choices(10), lambda: {"{" + ",".join(f'"a{i}":1' for i in range(10)) + "}": True, "{}": False})
case("2^30 combinations", lambda: choices(30), lambda: {"{}": False})
case("2^30 combinations of items", lambda: {"items": choices(30)}, lambda: {"[{}]": False})
case("2^30 combinations, negated", lambda: {"not": choices(30)}, lambda: {"{}": True})
case(
    "2^20 combinations of patterns",
    lambda: {"type": "string", "allOf": [{"anyOf": [{"pattern": f"a{i}"}, {"pattern": f"b{i}"}]} for i in range(20)]},
    lambda: {'""': False},
)
case(
    "40 conditions",
    lambda: {"type": "object", "allOf": [{"if": {"required": [f"k{i}"]}, "then": {"required": [f"v{i}"]}} for i in range(40)]},
    lambda: {'{"k0":1}': False},
)
case(
    "200 conditions on a member",
    lambda: {
        "type": "object",
        "properties": {"k": {"enum": [f"c{i}" for i in range(200)]}},
        "required": ["k"],
        "allOf": [{"if": {"properties": {"k": {"const": f"c{i}"}}}, "then": {"required": [f"v{i}"]}} for i in range(200)],
    },
    lambda: {'{"k":"c7","v7":1}': True, '{"k":"c7"}': False},
)


def doubled(link: Callable[[Json], Json]) -> Json:
    """A chain that names each definition twice, so that a copy of what it says has 2^60 parts."""
    definitions = {f"d{i}": link({"$ref": f"#/$defs/d{i + 1}"}) for i in range(60)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, "d60": {"type": "string"}}}


case("doubled conjunctions", lambda: doubled(lambda s: {"allOf": [s, s]}), lambda: {'"x"': True, "1": False}, made=True)
case("doubled disjunctions", lambda: doubled(lambda s: {"anyOf": [s, s]}), lambda: {'"x"': True, "1": False}, made=True)
case(
    "doubled members",
    lambda: doubled(lambda s: {"type": "object", "properties": {"a": s, "b": s}, "required": ["a", "b"]}),
    lambda: {'{"a":1}': False},
    made=True,
)
case("doubled conditions", lambda: doubled(lambda s: {"if": s, "then": s, "else": {"type": "null"}}), lambda: {"null": True, "1": False})


def exclusive(depth: int) -> Json:
    schema: Json = {"type": "object"}
    for i in range(depth):
        schema = {"oneOf": [schema, {"properties": {f"p{i}": schema}, "required": [f"p{i}"]}]}
    return schema


case("overlapping oneOf, nested", lambda: exclusive(200))

# --- numbers -------------------------------------------------------------------------------------------------------

for _keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const"):
    case(
        f"{_keyword} 1e400",
        lambda keyword=_keyword: f'{{"type":"number","{keyword}":1e400}}',
        lambda keyword=_keyword: {"1": keyword in ("maximum", "exclusiveMaximum")},
    )
    case(
        f"{_keyword} 1e999999999",
        lambda keyword=_keyword: f'{{"{keyword}":1e999999999}}',
        lambda keyword=_keyword: {"null": keyword != "const"},
    )
    case(
        f"{_keyword} 1e(10^20)",
        lambda keyword=_keyword: f'{{"{keyword}":1e100000000000000000000}}',
        lambda keyword=_keyword: {"null": keyword != "const"},
    )
    case(
        f"{_keyword} of 10^5 digits",
        lambda keyword=_keyword: f'{{"{keyword}":{"9" * 10**5}}}',
        lambda keyword=_keyword: {"null": keyword != "const"},
    )
    case(
        f"{_keyword} of 10^5 places",
        lambda keyword=_keyword: f'{{"{keyword}":0.{"9" * 10**5}}}',
        lambda keyword=_keyword: {"null": keyword != "const"},
    )
    case(
        f"{_keyword} 10^100000 as an integer",
        lambda keyword=_keyword: {keyword: 10**100_000},
        lambda keyword=_keyword: {"null": keyword != "const"},
    )
    case(
        f"{_keyword} 1e99999 of a member",
        lambda keyword=_keyword: f'{{"properties":{{"a":{{"{keyword}":1e99999}}}}}}',
        lambda keyword=_keyword: {"{}": True, '{"a":null}': keyword != "const"},
    )
case("tiny divisor", lambda: '{"multipleOf":1e-400}', lambda: {"1": True})
case("divisor 1e-99999", lambda: '{"multipleOf":1e-99999}')
case("divisor of 900 digits", lambda: {"multipleOf": 10**900 + 7}, lambda: {"1": False, str(10**900 + 7): True})
case("large prime divisor", lambda: {"type": "integer", "multipleOf": 1_000_000_007}, lambda: {"2000000014": True, "1": False})
case("twelve divisors", lambda: {"allOf": [{"multipleOf": p} for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)]}, lambda: {"1": False})
case(
    "none of twelve divisors",
    lambda: {"type": "integer", "allOf": [{"not": {"multipleOf": p}} for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)]},
    lambda: {"2": False},
)

SMALLEST = {"minLength": '""', "minItems": "[]", "minProperties": "{}", "minContains": '[1, "x"]'}
LARGEST = {"maxLength": '"x"', "maxItems": "[1]", "maxProperties": '{"a":1}', "maxContains": '[1, "x"]'}


def with_count(keyword: str, count: str) -> str:
    contains = '"contains":{"enum":[1,"x"]},' if keyword.endswith("Contains") else ""
    return f'{{{contains}"{keyword}":{count}}}'


for _count in ("2147483647", "2147483648", "9007199254740991", "1e9", "1e300", "1e999999999", "1e100000000000000000000", "9" * 5000):
    _label = _count if len(_count) < 30 else f"of {len(_count)} digits"
    for _keyword, _text in SMALLEST.items():
        case(
            f"{_keyword} {_label}",
            lambda keyword=_keyword, count=_count: with_count(keyword, count),
            lambda text=_text: {text: False, "null": True},
        )
    for _keyword, _text in LARGEST.items():
        case(
            f"{_keyword} {_label}",
            lambda keyword=_keyword, count=_count: with_count(keyword, count),
            lambda text=_text: {text: True, "null": True},
        )
case(
    "maxLength 10^9 with a pattern",
    lambda: {"type": "string", "maxLength": 10**9, "pattern": "a.*b"},
    lambda: {'"x"': False, '"aab"': True},
)
case("minLength 10^9 with a pattern", lambda: {"type": "string", "minLength": 10**9, "pattern": "a.*b"}, lambda: {'"aab"': False})
case(
    "minLength 10^5 with a pattern",
    lambda: {"type": "string", "minLength": 10**5, "pattern": "^a.*b$"},
    lambda: {'"aab"': False, '"a' + "c" * 10**5 + 'b"': True},
    late=True,
)
case(
    "maxLength 10^5 with a format",
    lambda: {"type": "string", "maxLength": 10**5, "format": "uri"},
    lambda: {'"http://x/' + "a" * 2000 + '"': True},
)
case("minItems 10^6", lambda: {"type": "array", "minItems": 10**6}, lambda: {"[]": False, "[" + "1," * 1000 + "1]": False})
case(
    "minItems 10^6, distinct strings",
    lambda: {"type": "array", "minItems": 10**6, "uniqueItems": True, "items": {"type": "string"}},
    lambda: {"[]": False},
)
case(
    "minItems 10^6, distinct integers of too few",
    lambda: {"type": "array", "minItems": 10**6, "uniqueItems": True, "items": {"type": "integer", "minimum": 0, "maximum": 10**5}},
    made=False,
)
case("minItems 10^6 with contains", lambda: {"type": "array", "minItems": 10**6, "contains": {"type": "string"}}, lambda: {"[]": False})
case("minContains 10^6", lambda: {"type": "array", "contains": {"type": "string"}, "minContains": 10**6}, lambda: {"[]": False})
case(
    "maxContains 10^6",
    lambda: {"type": "array", "contains": {"type": "string"}, "minContains": 0, "maxContains": 10**6},
    lambda: {"[]": True, '["x"]': True},
)
case(
    "maxItems 10^6 with contains",
    lambda: {"type": "array", "maxItems": 10**6, "contains": {"type": "string"}},
    lambda: {"[]": False, '[1,"x"]': True},
)
case(
    "thirty contains",
    lambda: {"type": "array", "allOf": [{"contains": {"const": i}} for i in range(30)]},
    lambda: {"[]": False, str(list(range(30))): True},
)
case(
    "10^5 prefix items",
    lambda: {"type": "array", "prefixItems": [{"type": "integer"}] * MANY},
    lambda: {"[" + "1," * 1000 + "1]": True, "[1, null]": False},
)
case("minProperties 10^6", lambda: {"type": "object", "minProperties": 10**6}, lambda: {"{}": False})
case(
    "twenty of forty members",
    lambda: {"type": "object", "minProperties": 20, "properties": {f"p{i}": {} for i in range(40)}, "additionalProperties": False},
    lambda: {"{}": False},
)

# --- objects -------------------------------------------------------------------------------------------------------

for _order in ("schema", "any"):
    case(
        f"10^5 required, order {_order}",
        lambda: {"type": "object", "required": [f"p{i}" for i in range(MANY)]},
        lambda: {"{}": False, '{"p0":1}': False},
        options={"property_order": _order},
    )
    case(
        f"10^5 properties, order {_order}",
        lambda: {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(MANY)}},
        lambda: {"{}": True, '{"p7":1}': True, '{"p7":"x"}': False},
        options={"property_order": _order},
    )
    case(
        f"a text with 2,000 members, order {_order}",
        lambda: {"type": "object", "required": [f"p{i}" for i in range(2000)]},
        lambda: {"{" + ",".join(f'"p{i}":1' for i in range(2000)) + "}": True},
        options={"property_order": _order},
    )
case("10^5 required, few allowed", lambda: {"type": "object", "required": [f"p{i}" for i in range(MANY)], "maxProperties": 5}, made=False)
case("a name of 10^6 characters", lambda: {"type": "object", "required": ["x" * 10**6]}, lambda: {"{}": False})
case(
    "2,000 names that need each other",
    lambda: {"type": "object", "dependentRequired": {f"p{i}": [f"p{i + 1}"] for i in range(2000)}},
    lambda: {"{}": True, '{"p0":1}': False},
)
case(
    "20,000 names that need each other",
    lambda: {"type": "object", "dependentRequired": {f"p{i}": [f"p{i + 1}"] for i in range(20_000)}},
    lambda: {"{}": True, '{"p0":1}': False},
)
case(
    "5,000 required names in the order that takes longest",
    lambda: {"type": "object", "required": ["p0"], "dependentRequired": {f"p{i}": [f"p{i + 1}"] for i in reversed(range(5000))}},
    lambda: {'{"p0":1}': False},
)
case(
    "forty dependent schemas",
    lambda: {"type": "object", "dependentSchemas": {f"p{i}": {"required": [f"q{i}"]} for i in range(40)}},
    lambda: {"{}": True, '{"p0":1}': False},
)
case(
    "five overlapping name patterns",
    lambda: {"patternProperties": {chr(97 + i): {"minimum": i} for i in range(5)}},
    lambda: {'{"abc":2}': True, '{"abc":1}': False},
)
case(
    "ten overlapping name patterns",
    lambda: {"patternProperties": {chr(97 + i): {"minimum": i} for i in range(10)}},
    lambda: {'{"abc":2}': True, '{"abc":1}': False},
)
case(
    "twenty name patterns",
    lambda: {"patternProperties": {f"^p{i}_": {"minimum": i} for i in range(20)}},
    lambda: {'{"p3_":3}': True, '{"p3_":1}': False},
    made=True,
)
case(
    "a hundred name patterns",
    lambda: {"patternProperties": {f"^p{i}_": {"minimum": i} for i in range(100)}},
    lambda: {'{"p3_":3}': True, '{"p3_":1}': False},
)
case("10,000 name patterns", lambda: {"patternProperties": {f"^p{i}_": {"minimum": i} for i in range(10_000)}})
case(
    "hard name patterns",
    lambda: {"patternProperties": {"^(.*a.{20}){2}": {"minimum": 3}, ".*b.{25}c": {"maximum": 5}}},
    lambda: {'{"abc":1}': True},
)

# --- references ----------------------------------------------------------------------------------------------------

case("a reference to itself", lambda: {"$ref": "#"}, made=False)
case(
    "two references in a circle",
    lambda: {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    made=False,
)
for _keyword in ("allOf", "anyOf", "oneOf"):
    case(f"a circle through {_keyword}", lambda keyword=_keyword: {keyword: [{"$ref": "#"}, {"type": "string"}]}, made=False)
case("a schema that denies itself", lambda: {"not": {"$ref": "#"}}, made=False)
case("a circle that no text needs", lambda: {"properties": {"a": {"$ref": "#/properties/a"}}}, made=False)
case(
    "no base case",
    lambda: {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}, "required": ["b"]},
            "b": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1},
        },
    },
    made=False,
)
case("no base case through contains", lambda: {"type": "array", "contains": {"$ref": "#"}}, made=False)
case("names that are objects", lambda: {"type": "object", "propertyNames": {"$ref": "#"}}, lambda: {"{}": True, '{"a":1}': False})
for _reference in [
    "#/a/b",
    "#/%",
    "#x",
    "#//",
    "#/items/01",
    "#/items/-1",
    "#/items/²",
    "http://[",
    "//[::1",
    "\x00",
    "other.json",
    "urn:x:y#z",
    "http://x:99999999/",
    "#/\ud83d",
]:
    case(f"reference {_reference!a}", lambda reference=_reference: {"$ref": reference, "items": [{}, {}]}, made=False)
for _identifier in ["http://[", "\x00", "//[::1", "http://x:99999999/", "%zz", "\ud83d"]:
    case(
        f"identifier {_identifier!a}",
        lambda identifier=_identifier: {"$id": identifier, "$ref": "#/$defs/a", "$defs": {"a": {}}},
        lambda: {"1": True},
    )
for _uri in ["http://[", "\x00", 5, "https://example.com/unheard-of"]:
    case(f"$schema {_uri!r}", lambda uri=_uri: {"$schema": uri}, lambda: {"1": True})

# --- patterns ------------------------------------------------------------------------------------------------------

PATTERNS = [
    "(a+)+$", "(a|aa)*$", "((a{0,100}){0,100}){0,100}", "a{1000000}", ".*a.{50}", "(x{1,1000}){1,1000}", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.{1,500}a){20}",
    "(a|b|ab)*c{500}(d|e){500}", "(?=.*a)(?=.*b)(?=.*c)(?=.*d)(?=.*e)(?=.*f).{0,200}", "(?!.*(ab){50}).*", "(" * 5000 + "a" + ")" * 5000, "[\\p{L}]{1,300}[\\p{N}]{1,300}$",
    "(?=.*a.{40})(?=.*b.{40}).*", "|".join("a" * i + "b" for i in range(2000)), "^" + "(a?)" * 500 + "a" * 500 + "$", "[" + "".join(chr(0x4E00 + 2 * i) for i in range(5000)) + "]+", "(?i)" + "é" * 100,
]  # fmt: skip
for _pattern in PATTERNS:
    case(
        f"pattern {_pattern[:40]}",
        lambda pattern=_pattern: {"type": "string", "pattern": pattern},
        lambda: {"1": False, '"' + "ab" * 2000 + "": False},
    )
    case(
        f"pattern of a name {_pattern[:40]}",
        lambda pattern=_pattern: {"type": "object", "patternProperties": {pattern: {"type": "null"}}},
        lambda: {"{}": True},
    )
case("all patterns at once", lambda: {"type": "string", "allOf": [{"pattern": pattern} for pattern in PATTERNS[:14]]})
case("none of the patterns", lambda: {"type": "string", "not": {"anyOf": [{"pattern": pattern} for pattern in PATTERNS[:14]]}})
case("pattern of 10^6 characters", lambda: {"pattern": "ab" * 500_000})

# --- what is not a schema ------------------------------------------------------------------------------------------

for _name, _value in {
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "decimal NaN": Decimal("NaN"),
    "decimal Infinity": Decimal("-Infinity"),
    "bytes": b"x",
    "set": {1},
    "object": object(),
    "complex": 1j,
}.items():
    case(f"{_name} in a schema", lambda value=_value: {"items": {"const": value}}, made=False, placed=False)
for _text in ("NaN", "-Infinity", "Infinity"):
    case(f"{_text} in a schema text", lambda text=_text: f'{{"minimum":{text}}}', made=False, placed=False)
for _text in ("", "[]", "{} {}", "{", "nul", "\ufeff{}", "{'a':1}", '{"a":01}', '"\ud83d"'):
    case(f"schema text {_text!a}", lambda text=_text: text, made=False, placed=False)
for _key in (1, (1, 2), None, True, 1.5, b"x"):
    _made = None if _key is None or isinstance(_key, int | float) else False  # `json.dumps` turns these into text
    case(f"key {_key!r}", lambda key=_key: {key: 1}, made=_made, placed=False)
    case(f"property {_key!r}", lambda key=_key: {"properties": {key: {"type": "string"}}}, made=_made, placed=False)


def within_itself() -> Json:
    schema: dict[str, Json] = {}
    schema["items"] = schema
    return schema


case("a schema within itself", within_itself, made=False, placed=False)
case("a schema of 5 MB", lambda: {"title": "x" * 5_000_000}, made=False, placed=False)
case("a member with a long name and a wrong value", lambda: {"properties": {"x" * 10**6: {"minimum": "a"}}}, made=False)
case("a lone surrogate constant", lambda: {"const": "\ud83d"}, made=False)
case("a lone surrogate in an enum", lambda: {"enum": ["\ud83d", "a"]})
case("a lone surrogate name", lambda: {"properties": {"\ud83d": {}}}, lambda: {"{}": True})
case("a lone surrogate required", lambda: {"type": "object", "required": ["\ud83d"]}, made=False)
case("a lone surrogate in a pattern", lambda: {"pattern": "\ud83d"}, made=False)
case("a lone surrogate in a name pattern", lambda: {"patternProperties": {"\ud83d": {}}}, made=False)
case(
    "a lone surrogate in a text",
    lambda: True,
    lambda: {'"\ud83d"': False, '"\\ud83d"': False, '"\\ude00\\ud83d"': False, '"\\ud83d\\ude00"': True},
    made=True,
)

# Values that no keyword takes, but for those listed.
WRONG: list[Json] = [None, True, 5, -1, 1.5, "x", "(", [], [1], [None], {}, {"a": 1}, {"a": [1]}, [[]], "\x00"]
KEYWORDS: dict[str, list[Json]] = {
    "type": [], "enum": [[], [1], [None], [[]]], "nullable": [True], "$ref": [], "$dynamicRef": [],
    "multipleOf": [5, 1.5], "minimum": [5, -1, 1.5], "maximum": [5, -1, 1.5], "exclusiveMinimum": [True, 5, -1, 1.5], "exclusiveMaximum": [True, 5, -1, 1.5],
    "minLength": [5], "maxLength": [5], "pattern": ["x", "\x00"], "format": ["x", "(", "\x00"], "minItems": [5], "maxItems": [5], "uniqueItems": [True],
    "minContains": [5], "maxContains": [5], "minProperties": [5], "maxProperties": [5], "required": [True, []], "dependentRequired": [{}], "dependentSchemas": [{}],
    "dependencies": [{}], "properties": [{}], "patternProperties": [{}], "additionalProperties": [True, {}, {"a": 1}, {"a": [1]}],
    "propertyNames": [True, {}, {"a": 1}, {"a": [1]}], "items": [True, [], {}, {"a": 1}, {"a": [1]}], "prefixItems": [[]], "contains": [True, {}, {"a": 1}, {"a": [1]}],
    "unevaluatedItems": [True, {}, {"a": 1}, {"a": [1]}], "unevaluatedProperties": [True, {}, {"a": 1}, {"a": [1]}],
    "allOf": [], "anyOf": [], "oneOf": [], "not": [True, {}, {"a": 1}, {"a": [1]}], "if": [True, {}, {"a": 1}, {"a": [1]}],
}  # fmt: skip


def _same(one: Json, other: Json) -> bool:
    return type(one) is type(other) and one == other


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("whitespace 5", {"whitespace": 5}), ("whitespace None", {"whitespace": None}), ("whitespace (", {"whitespace": "("}), ("whitespace x", {"whitespace": "x"}),
    ("property_order 5", {"property_order": 5}), ("draft 7", {"draft": 7}), ("draft x", {"draft": "x"}), ("separators 5", {"separators": 5}),
    ("one separator", {"separators": (",",)}), ("separators of numbers", {"separators": (5, 6)}), ("semicolons", {"separators": (";", ":")}), ("registry 5", {"registry": 5}),
]  # fmt: skip
for _name, _options in OPTIONS:
    case(f"option {_name}", lambda: {}, options=_options, made=False, placed=False)
case("a bomb for whitespace", lambda: {}, lambda: {"1": True}, options={"whitespace": "( |\\t)*( {0,1000}){0,1000}"})
case("a megabyte of separator", lambda: {}, lambda: {"[1,1]": False}, options={"separators": ("," + " " * 10**6, ":")}, placed=False)
for _name, _document in {"wrong": {"minimum": "z"}, "a number": 5, "not JSON": float("nan"), "a circle": {"$ref": "u:x"}}.items():
    case(f"registered document that is {_name}", lambda: {"items": {"$ref": "u:x"}}, options={"registry": {"u:x": _document}}, made=False)


# --- the child -----------------------------------------------------------------------------------------------------


def run_case(case: Case) -> dict[str, Json]:
    """What became of a case: verdicts by text, or the error, and the stage it came at."""
    from formcast import Grammar

    stage = "schema"
    try:
        grammar = Grammar.json_schema(case.make(), **case.options)
        grammar.accepts("")
        stage = "text"
        return {"verdicts": [grammar.accepts(text) for text in case.texts()]}
    except BaseException as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"stage": stage, "kinds": kinds, "pointer": getattr(error, "pointer", None), "message": str(error)[:200]}


def run_wrong_values(keyword: str) -> dict[str, Json]:
    """Tries each wrong value of a keyword; answers those that were not refused as they should be."""
    from formcast import Grammar, GrammarError

    problems: list[str] = []
    for value in WRONG:
        right = any(_same(value, allowed) for allowed in KEYWORDS[keyword])
        try:
            beside = {"items": {"type": "string"}} if keyword == "uniqueItems" else {}
            Grammar.json_schema({"items": {keyword: value, **beside}}).accepts("[1]")
            if not right:
                problems.append(f"{value!r} is taken")
        except GrammarError as error:
            if right or error.pointer is None or not error.pointer.startswith(f"/items/{keyword}"):
                problems.append(f"{value!r}: {error}")
        except Exception as error:
            problems.append(f"{value!r}: {error!r}")
    return {"problems": problems}


def serve() -> None:
    """Reads names of cases, one a line, and answers each with a line of JSON."""
    from formcast import Grammar

    Grammar.json_schema({"type": "object", "patternProperties": {"a": {"minimum": 2}}}).accepts('{"a":[1,"x"]}')
    for line in sys.stdin:
        print(json.dumps(in_child(line.rstrip("\n"))), flush=True)


def in_child(name: str) -> dict[str, Json]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY_BYTES,) * 2)  # pyright: ignore[reportArgumentType]
        answer = run_wrong_values(name.removeprefix("wrong ")) if name.startswith("wrong ") else run_case(CASES[name])
        with os.fdopen(write, "w") as out:
            json.dump(answer, out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        text = answers.read()
    _, status, usage = os.wait4(child, 0)
    answer = json.loads(text) if text else {"killed": signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "no answer"}
    return {**answer, "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2)}


# --- the tests -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answer_of() -> Iterator[Callable[[str], dict[str, Json]]]:
    command = [sys.executable, "-W", "ignore", __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        asked, answers = server.stdin, server.stdout

        def ask(name: str) -> dict[str, Json]:
            asked.write(name.replace("\n", " ") + "\n")
            asked.flush()
            return json.loads(answers.readline())

        yield ask
        asked.close()


# Cases that take a second or so each, by parts of their names.
SLOW = (
    "chain of", "deep const", "deep dependentSchemas", "deep closed", "nested 900", "100,000", "20,000", "10,000", "3,000", "2,000", "5,000", "2^10", "thirty contains", "10^5 properties", "10^5 required",
    "10^5 prefix", "distinct integers", "10^5 with a pattern", "megabyte", "hundred name", "all patterns",
    "deep items, deep", "deep contains", "deep propertyNames", "deep not", "deep anyOf", "deep oneOf", "deep allOf as text", "deep properties as text", "deep and ambiguous",
    "2^20", "200 conditions", "900 digits", "10^5 with a format", "of 10^5 places",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if any(part in name for part in SLOW) else []) for name in CASES]
)
def test_a_hostile_schema_is_dealt_with_or_refused(name: str, answer_of: Callable[[str], dict[str, Json]]) -> None:
    case, answer = CASES[name], answer_of(name)
    assert "killed" not in answer, answer
    if "verdicts" in answer:
        assert case.made is not False, "it was not refused"
        assert answer["verdicts"] == list(case.texts().values())
        return
    assert "GrammarError" in answer["kinds"], answer
    assert case.made is not True or (case.late and answer["stage"] == "text"), answer
    assert case.late or answer["stage"] == "schema", f"refused in the middle of a text: {answer}"
    assert not case.placed or case.late or answer["pointer"] is not None, f"the place is not named: {answer}"


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_wrong_values_of_a_keyword_are_refused_where_they_stand(keyword: str, answer_of: Callable[[str], dict[str, Json]]) -> None:
    assert answer_of(f"wrong {keyword}").get("problems") == []


if __name__ == "__main__":
    serve()
