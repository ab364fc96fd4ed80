"""Combinators that would multiply to more alternatives than anyone can afford, if they were multiplied out blindly."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formcast import Grammar, GrammarError, LimitError
from formcast.grammar.json_schema.pointers import ROOT, Pointer

Json = Any


def agrees(schema: Json, values: list[Json]) -> None:
    grammar = Grammar.json_schema(schema, property_order="any")
    validator = jsonschema.Draft202012Validator(schema)
    for value in values:
        assert grammar.accepts(json.dumps(value)) == validator.is_valid(value), value


def kinds(count: int, *, required: bool) -> list[Json]:
    """Objects told apart by the constant in `kind`."""
    more = {"required": ["kind"]} if required else {}
    return [{"properties": {"kind": {"const": f"k{i}"}, f"v{i}": {"type": "integer"}}, **more} for i in range(count)]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_two_hundred_branches_told_apart_by_a_constant(keyword: str) -> None:
    schema = {"type": "object", keyword: kinds(200, required=True)}
    agrees(schema, [{"kind": "k7", "v7": 1}, {"kind": "k7", "v7": "x"}, {"kind": "k7", "v8": "x"}, {"kind": "k200"}, {"v7": 1}])


def test_the_context_tells_branches_apart() -> None:
    """No branch requires `kind`, but what stands beside them does."""
    schema = {"allOf": [{"type": "object", "required": ["kind"]}, {"oneOf": kinds(60, required=False)}]}
    agrees(schema, [{"kind": "k7", "v7": 1}, {"kind": "k7", "v7": "x"}, {"kind": "k8", "v7": "x"}, {"kind": 5}, {}])


def test_conditions_on_an_optional_member() -> None:
    conditions = [{"if": {"properties": {"kind": {"const": f"k{i}"}}}, "then": {"properties": {"v": {"const": i}}}} for i in range(20)]
    values = [{"kind": k, "v": v} for k, v in product(("k1", "k19", "x"), (1, 19, "x"))]
    agrees({"type": "object", "allOf": conditions}, [*values, {"kind": "k1"}, {"kind": "x"}])


def test_a_hundred_conditions_on_a_required_member() -> None:
    conditions = [{"if": {"properties": {"kind": {"const": f"k{i}"}}}, "then": {"required": [f"v{i}"]}} for i in range(100)]
    schema = {"type": "object", "properties": {"kind": {"enum": [f"k{i}" for i in range(100)]}}, "required": ["kind"], "allOf": conditions}
    agrees(schema, [{"kind": "k7", "v7": 1}, {"kind": "k7", "v8": 1}, {"kind": "k100"}])


def test_closed_objects_of_one_optional_member_each() -> None:
    """The empty object is in all of them, so that it is in none of `oneOf`."""
    branches = [{"type": "object", "properties": {f"m{i}": {"type": "boolean"}}, "additionalProperties": False} for i in range(15)]
    agrees({"oneOf": branches}, [{}, {"m3": True}, {"m3": 1}, {"m3": True, "m4": True}, {"x": 1}])


def test_scalars_of_many_branches() -> None:
    schema = {"oneOf": [{"const": i % 300} for i in range(500)]}
    agrees(schema, [0, 199, 200, 299, 300, "0"])


@pytest.mark.parametrize("make", [lambda i: {"a": i, "b": "same"}, lambda i: [i, "same"], lambda i: {"a": {"b": [i]}}])
def test_two_thousand_values_that_differ_in_one_place(make: Any) -> None:
    schema = {"enum": [make(i) for i in range(2000)]}
    agrees(schema, [make(0), make(1999), make(2000), make("x")])


def test_lengths_inside_each_other_are_one() -> None:
    schema = {"anyOf": [{"type": "array", "items": {"type": "integer"}, "maxItems": i} for i in range(2000)]}
    agrees(schema, [[], [1], ["x"]])


def test_alternatives_that_stay_apart_are_refused_with_their_place() -> None:
    branches = [{"required": [f"a{i}", f"b{i}"], "properties": {f"c{i}": {"type": "integer"}}} for i in range(1_001)]
    with pytest.raises(LimitError, match="alternatives") as caught:
        Grammar.json_schema({"properties": {"x": {"type": "object", "anyOf": branches}}})
    assert caught.value.pointer is not None
    assert caught.value.pointer.startswith("/properties/x")


SCALARS = st.sampled_from([0, 1, "a", "b", None, True])
ONE_MEMBER = st.dictionaries(
    st.sampled_from(["k", "m"]),
    st.one_of(
        SCALARS.map(lambda v: {"const": v}),
        st.lists(SCALARS, min_size=1, max_size=3).map(lambda v: {"enum": v}),
        st.just({"type": "string"}),
        st.just({"not": {"const": "a"}}),
    ),
    max_size=2,
)
BRANCH = st.builds(
    lambda properties, required, closed: {
        "properties": properties,
        "required": required,
        **({"additionalProperties": False} if closed else {}),
    },
    ONE_MEMBER,
    st.lists(st.sampled_from(["k", "m"]), unique=True),
    st.booleans(),
)
COMBINED = st.recursive(
    BRANCH,
    lambda inner: st.one_of(
        st.builds(lambda k, parts: {k: parts}, st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"not": part}, inner),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
    ),
    max_leaves=6,
)
OBJECTS = [
    {},
    *({"k": v} for v in (0, "a", "c")),
    {"m": "b"},
    {"x": 1},
    *({"k": k, "m": m} for k, m in product((0, 1, "a", "b"), (True, "a", "b", 5))),
    {"k": "a", "x": 0},
]


@settings(max_examples=60, deadline=None)
@given(COMBINED)
def test_combined_objects_agree_with_an_independent_validator(schema: Json) -> None:
    schema = {"type": "object", **schema} if "type" not in schema else schema
    try:
        agrees(schema, OBJECTS)
    except GrammarError as error:
        assert "no finite value" in error.reason, error
        assert not any(jsonschema.Draft202012Validator(schema).is_valid(value) for value in OBJECTS)


def test_pointers_are_written_as_rfc_6901_says() -> None:
    assert str(ROOT) == ""
    assert str(ROOT.child("a/b", "m~n", 0, "")) == "/a~1b/m~0n/0/"
    assert str(Pointer(None, "urn:x").child("items")) == "urn:x/items"


def test_refused_schemas_are_explained_too() -> None:
    findings = Grammar.explain_schema({"type": "object", "minLenght": 1, "properties": {"a": {"minimum": "3"}}})
    assert {(f.pointer, f.keyword, f.status) for f in findings} == {
        ("", "type", "enforced"),
        ("", "minLenght", "annotation"),
        ("", "properties", "enforced"),
        ("/properties/a/minimum", "minimum", "refused"),
    }


@pytest.mark.parametrize("high", [None, 2, 3])
@pytest.mark.parametrize("letters", ["abc", "abcd"])
@pytest.mark.parametrize("names", [{"pattern": "^..$"}, {"pattern": "^[a-e]{1,2}$"}, True])
def test_members_that_stand_for_several_conditions(names: Any, letters: str, high: int | None) -> None:
    """For each letter some name holds it: names are shared where there may be only so many members."""
    schema = {"type": "object", "propertyNames": names, "allOf": [{"not": {"propertyNames": {"not": {"pattern": c}}}} for c in letters]}
    if high is not None:
        schema["maxProperties"] = high
    grammar = Grammar.json_schema(schema, property_order="any")
    for members in ("ab cd", "ab c d", "a b c d", "abcd", "abc", "ad bc", "ca db ", "ab ab cd", "ae bc cd"):
        value: dict[str, Any] = dict.fromkeys(members.split(), 1)
        assert grammar.accepts(json.dumps(value)) == jsonschema.Draft202012Validator(schema).is_valid(value), members
