from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formcast.api.openai.errors import ApiError
from formcast.api.openai.json_body import parse_json_object

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values))
def test_reads_what_json_writes(value: dict):
    assert parse_json_object(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b"", "invalid_json", "empty"),
        (b"{", "invalid_json", "line 1"),
        (b'{"a": 1,}', "invalid_json", "column"),
        (b"[]", "invalid_json", "not an array"),
        (b"null", "invalid_json", "not null"),
        (b"1", "invalid_json", "not a number"),
        (b'{"a": NaN}', "invalid_json", "NaN"),
        (b'{"a": -Infinity}', "invalid_json", "Infinity"),
        (b'{"a": "\xff"}', "invalid_utf8", "byte 7"),
        (b'{"a": "\\ud800"}', "invalid_utf8", "surrogate"),
        (b'{"\\uDFFF": [1]}', "invalid_utf8", "surrogate"),
        (b'{"a": ' + b"9" * 5000 + b"}", "invalid_json", "digits"),
        (b'{"a": ' + b"[" * 600 + b"]" * 600 + b"}", "json_too_deep", "512"),
        (b'{"a": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", "json_too_deep", "512"),
        (b'{"a": ' * 20_000 + b"1" + b"}" * 20_000, "json_too_deep", "512"),
        (b"[" * 200_000, "json_too_deep", "512"),
    ],
)
def test_refuses_with_a_clear_400(body: bytes, code: str, says: str):
    with pytest.raises(ApiError) as caught:
        parse_json_object(body)
    assert (caught.value.status, caught.value.code) == (400, code)
    assert says in caught.value.message


def test_whole_surrogate_pairs_are_fine():
    assert parse_json_object(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_many_shallow_brackets_are_fine():
    value = {"list": [[] for _ in range(2000)], "text": "[{" * 2000}
    assert parse_json_object(json.dumps(value).encode()) == value


@pytest.mark.parametrize("depth", [511, 512])
def test_the_depth_is_exact(depth: int):
    body = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
    if depth + 1 <= 512:
        assert parse_json_object(body)
    else:
        with pytest.raises(ApiError):
            parse_json_object(body)
