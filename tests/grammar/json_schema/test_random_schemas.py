"""Random schemas against `jsonschema`: the same verdicts on values, and only valid texts from random walks."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st
from schemas_strategy import SCHEMAS, VALUES, is_valid
from toy_vocabulary import vocabulary, walk

from formcast import Grammar, GrammarError, LimitError

VOCAB = vocabulary()
_SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def grammar_of(schema: Any, **options: Any) -> Grammar | None:
    """None when the schema admits nothing. Schemas beyond the budgets, and with what is documented as refused, are not tried."""
    try:
        grammar = Grammar.json_schema(schema, **options)
        grammar.accepts("")
    except LimitError:
        reject()
    except GrammarError as error:
        if "'contains'" in error.reason:
            reject()
        assert "no finite value" in error.reason, error
        return None
    return grammar


@_SETTINGS
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=6))
def test_verdicts_equal_jsonschema(schema: Any, values: list[Any]) -> None:
    grammar = grammar_of(schema, property_order="any")
    if "uniqueItems" in json.dumps(schema):
        values = json.loads(json.dumps(values), parse_float=_exact_float)  # distinct integers are written without point
    for value in values:
        expected = is_valid(schema, value)
        if grammar is None:
            assert not expected, "a value satisfies the schema, yet it was refused"
        else:
            assert grammar.accepts(json.dumps(value)) == expected
            assert grammar.accepts(json.dumps(value, ensure_ascii=False, indent=1)) == expected


@_SETTINGS
@given(SCHEMAS, st.sampled_from(["schema", "any"]), st.integers(0, 1000))
def test_random_walks_end_valid_and_never_get_stuck(schema: Any, order: str, seed: int) -> None:
    grammar = grammar_of(schema, property_order=order)
    assume(grammar is not None)
    assert grammar is not None
    rng = random.Random(seed)
    for _ in range(2):
        text = walk(grammar, VOCAB, rng)
        if text is not None:
            value = json.loads(text, parse_float=_exact, object_pairs_hook=_distinct_keys)
            assert is_valid(schema, value), text


_PARTS = st.sampled_from(["^a", "b\\Z", "[^ab]", "^[a-z]*\\Z", "1", "(?:a|bé)+", "^(?!.*ab)", "(?=.*1).b", "^(?:[^ ]+ )*[^ ]+\\Z", "a{2,4}", "^(?:ab)*\\Z"])
_STRINGS = st.recursive(
    st.fixed_dictionaries({}, optional={"pattern": _PARTS, "minLength": st.integers(0, 5), "maxLength": st.integers(0, 9)}),
    lambda inner: st.one_of(
        st.builds(lambda key, parts: {key: parts}, st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda schema, part: {**schema, "not": part}, inner, inner),
    ),
    max_leaves=5,
)


@_SETTINGS
@given(_STRINGS, st.lists(st.text("ab1 é", max_size=10), max_size=8), st.sampled_from(["schema", "any"]), st.integers(0, 1000))
def test_strings_with_patterns_and_lengths_are_those_of_jsonschema(schema: Any, texts: list[str], order: str, seed: int) -> None:
    schema = {"type": "string", **schema}
    grammar = grammar_of(json.loads(json.dumps(schema).replace("\\\\Z", "$")), property_order=order)
    for text in texts:
        verdict = grammar is not None and grammar.accepts(json.dumps(text, ensure_ascii=False))
        assert verdict == is_valid(schema, text)
    if grammar is not None:
        for end in range(2):
            found = walk(grammar, VOCAB, random.Random(seed + end))
            assert found is None or is_valid(schema, json.loads(found)), found


def _exact_float(text: str) -> int | float:
    return int(float(text)) if float(text).is_integer() else float(text)


def _exact(text: str) -> int | Decimal:
    """Without the rounding of binary floating point, in which 12900123450052881234564100300.5 is an integer."""
    value = Decimal(text)
    if abs(value.adjusted()) > 1000:
        reject()  # the judge cannot divide it
    return int(value) if value == value.to_integral_value() else value


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), f"a key occurs twice: {pairs}"
    return dict(pairs)
