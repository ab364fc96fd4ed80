"""One answer whatever the engine does to compute it: cache, chunks, company and drafts change the steps, never the tokens."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from engine_fakes import EOS, NUM_TOKENS, FakeCompiler, FakeModel, drain, greedy, tiny_core, tiny_llama

from formcast.engine.config import Quantization, SpeculativeConfig
from formcast.engine.models.fusion.passes import fuse
from formcast.fsm_cache.compiler import FsmCompiler
from formcast.fsm_cache.vocabulary import Vocabulary
from formcast.grammar import Grammar

SCHEMA = {
    "type": "array",
    "minItems": 3,
    "maxItems": 4,
    "items": {
        "type": "object",
        "properties": {"kind": {"enum": ["cat", "cow", "crow"]}, "legs": {"type": "integer", "minimum": 2, "maximum": 12}},
        "required": ["kind", "legs"],
        "additionalProperties": False,
    },
}
GRAMMARS = [None, Grammar.json_schema(SCHEMA, whitespace="compact"), Grammar.json_schema(SCHEMA), Grammar.regex("(ab){2,9}c|x{40}")]
PROMPTS = [b"x", b"abcabcabcabcabcabc", bytes(range(60, 110)), b"abcabcabcabcabcab"]
PARAMS = [
    {"temperature": 0.0},
    {"temperature": 1.3, "seed": 5, "top_p": 0.9},
    {"temperature": 0.8, "seed": 6, "repetition_penalty": 1.4, "frequency_penalty": 0.3, "logit_bias": {99: 1.0}},
    {"temperature": 0.0, "stop": ["bc", '"legs'], "min_tokens": 4, "max_tokens": 100, "ignore_eos": False, "logprobs": 2},
]


@cache
def compiler() -> FsmCompiler:
    return FsmCompiler(
        Vocabulary([bytes([byte]) for byte in range(256)], {EOS}, NUM_TOKENS, encode=lambda text: list(text.encode())), max_workers=1
    )


def requests() -> list:
    """Each kind of sampling with two of the grammars, each grammar with two prompts."""
    pairs = [(kind, (kind + shift) % 4) for shift in (0, 1) for kind in range(4)]
    return [
        greedy(f"{kind}-{grammar}", PROMPTS[kind], grammar=GRAMMARS[grammar], **{"max_tokens": 25, **PARAMS[kind]})
        for kind, grammar in pairs
    ]


def seen(answers) -> dict:
    return {
        request_id: (answer.token_ids, answer.text, answer.last.finish_reason, answer.last.stop_reason)
        for request_id, answer in answers.items()
    }


@cache
def model(quantization: Quantization | None) -> FakeModel:
    """Plain modules for None, else fused ones, with weights as they are ("none") or in 8 bits."""
    module = tiny_llama()
    if quantization is not None:
        assert fuse(module, quantization=quantization) == 2
    return FakeModel(module=module)


@cache
def plain(quantization: Quantization | None) -> dict:
    """Each request alone and whole, one token a step."""
    core = tiny_core(
        compiler(), model(quantization), enable_prefix_caching=False, max_num_batched_tokens=512, draft_from_grammar=False
    )  # fmt: skip
    answers = {}
    for request in requests():
        answers |= drain(core, [request])
    return seen(answers)


WAYS: dict[str, dict[str, Any]] = {
    "cache": {"enable_prefix_caching": True},
    "chunks": {"max_num_batched_tokens": 9},
    "lookup": {"speculative": SpeculativeConfig(prompt_lookup_min=1)},
    "grammar": {"draft_from_grammar": True},
    "batch": {"max_num_seqs": 8},
    "overlap": {"async_scheduling": True},
}
WITHOUT = {
    "enable_prefix_caching": False, "max_num_batched_tokens": 512, "draft_from_grammar": False, "max_num_seqs": 1, "async_scheduling": False,
}  # fmt: skip


def combinations() -> Iterator[Any]:
    """All of them. For every day are a quarter, in which any three ways meet in all their combinations, and for int8 each way by itself."""
    for quantization in (None, "none", "int8"):
        for chosen in itertools.product((False, True), repeat=len(WAYS)):
            a, b, c, d, e, f = chosen
            for_every_day = {None: (e, f) == (a ^ b ^ c, b ^ c ^ d), "none": False, "int8": sum(chosen) in (1, len(WAYS))}
            ways = [way for way, is_chosen in zip(WAYS, chosen, strict=True) if is_chosen]
            marks = () if for_every_day[quantization] else pytest.mark.slow
            yield pytest.param(quantization, ways, id=" ".join([quantization or "plain", *ways]), marks=marks)


@pytest.mark.parametrize(("quantization", "ways"), list(combinations()))
def test_answers_are_those_of_plain_decoding(quantization, ways):
    settings = dict(WITHOUT)
    for way in ways:
        settings |= WAYS[way]
    core = tiny_core(compiler(), model(quantization), **settings)
    assert seen(drain(core, requests())) == plain(quantization)
    stats = core.stats
    assert stats.num_generated_tokens == sum(len(tokens) for tokens, *_ in plain(quantization).values())
    assert stats.num_failed == 0 and 0 <= stats.num_forced_tokens <= stats.num_accepted_tokens <= stats.num_draft_tokens
    assert (stats.num_accepted_tokens > 0) == bool({"lookup", "grammar"} & set(ways))


def test_drafts_save_steps():
    grammar = Grammar.json_schema(SCHEMA, whitespace="compact")
    steps = {}
    for drafting in (False, True):
        core = tiny_core(compiler(), draft_from_grammar=drafting)
        (answer,) = drain(core, [greedy("r", b"x", grammar=grammar, max_tokens=200)]).values()
        steps[drafting] = core.stats.num_steps
        assert answer.last.num_forced_tokens == core.stats.num_forced_tokens
    assert steps[True] * 2 < steps[False]


def test_a_full_cache_leaves_no_room_for_drafts_and_nobody_loses_a_block_for_them():
    grammar = Grammar.json_schema(SCHEMA, whitespace="compact")
    settings: dict[str, Any] = {"block_size": 4, "kv_cache_memory_bytes": 24 * 4 * 2 * 2 * 16 * 4, "max_model_len": 90}
    preempted = {}
    for drafting in (False, True):
        core = tiny_core(compiler(), draft_from_grammar=drafting, **settings)
        answers = drain(core, [greedy(str(n), PROMPTS[n], grammar=grammar, max_tokens=35) for n in range(len(PROMPTS))])
        preempted[drafting] = (core.stats.num_preemptions, {name: answer.token_ids for name, answer in answers.items()})
    assert preempted[True][1] == preempted[False][1]
    assert preempted[True][0] <= preempted[False][0]


def test_the_vocabulary_is_that_of_the_fakes():
    assert compiler().vocabulary.vocab_size == FakeCompiler().vocabulary.vocab_size
