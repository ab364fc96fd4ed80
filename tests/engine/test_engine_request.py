from __future__ import annotations

import math

import pytest

from formcast.engine.request import InvalidRequest, Request, RequestOutput, SamplingParams, expand


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("n", 0),
        ("n", 1.0),
        ("n", True),
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("temperature", "1"),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("typical_p", 0.0),
        ("typical_p", 1.1),
        ("top_k", -1),
        ("top_k", 1.5),
        ("min_p", -0.1),
        ("min_p", 1.1),
        ("seed", 1 << 64),
        ("seed", "1"),
        ("max_tokens", 0),
        ("max_tokens", True),
        ("min_tokens", -1),
        ("stop", ""),
        ("stop", ["a", ""]),
        ("stop", [1]),
        ("stop", "x" * 5000),
        ("stop", ["x"] * 65),
        ("stop_token_ids", ["1"]),
        ("stop_token_ids", 1),
        ("presence_penalty", 2.1),
        ("frequency_penalty", -2.1),
        ("repetition_penalty", 0.0),
        ("logit_bias", {"1": 1.0}),
        ("logit_bias", {-1: 1.0}),
        ("logit_bias", {1: 101.0}),
        ("logit_bias", [1]),
        ("logprobs", -1),
        ("logprobs", 21),
        ("ignore_eos", 1),
        ("skip_special_tokens", None),
    ],
)
def test_a_bad_parameter_is_named(param, value):
    with pytest.raises(InvalidRequest) as caught:
        SamplingParams(**{param: value})
    assert caught.value.param == param
    assert param in str(caught.value)


def test_min_tokens_must_not_exceed_max_tokens():
    with pytest.raises(InvalidRequest, match="min_tokens"):
        SamplingParams(max_tokens=2, min_tokens=3)


def test_lists_and_single_strings_are_taken_as_tuples():
    assert SamplingParams(stop="x").stop == ("x",)  # type: ignore[arg-type]
    assert SamplingParams(stop=["x", "y"], stop_token_ids=[1, 2]).stop_token_ids == (1, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(("temperature", "greedy"), [(0.0, True), (1e-6, True), (0.01, False), (1.0, False)])
def test_a_temperature_of_almost_zero_is_greedy(temperature, greedy):
    assert SamplingParams(temperature=temperature).greedy is greedy


def test_expand_gives_each_answer_its_own_id_and_seed():
    whole = Request(request_id="r", prompt_token_ids=[1], params=SamplingParams(n=3, seed=(1 << 64) - 1))
    parts = expand(whole)
    assert [part.request_id for part in parts] == ["r#0", "r#1", "r#2"]
    assert [part.params.seed for part in parts] == [(1 << 64) - 1, 0, 1]
    assert all(part.params.n == 1 for part in parts)


def test_expand_leaves_a_single_answer_alone():
    request = Request(request_id="r", prompt_token_ids=[1])
    assert expand(request) == [request]


def test_only_an_output_with_a_reason_is_the_last():
    assert not RequestOutput(request_id="r").finished
    assert RequestOutput(request_id="r", finish_reason="abort").finished
