"""Fused models against the modules they replace, and 8-bit models against themselves in other company."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest
import torch
from engine_fakes import FakeModel, drain, greedy, random_module, tiny_core
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    Olmo2Config,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
)

from formcast.engine.batch import build
from formcast.engine.errors import UnsupportedModel
from formcast.engine.models.fusion import passes
from formcast.engine.models.fusion.int8 import Int8Linear
from formcast.engine.models.fusion.linear import LinearWeights
from formcast.engine.models.fusion.passes import fuse
from formcast.engine.runner import Runner
from formcast.engine.step_plan import Chunk, StepPlan

COMMON: dict[str, Any] = {"vocab_size": 96, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3, "initializer_range": 0.3}
HEADS: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2}
WINDOW: dict[str, Any] = {"sliding_window": 20}
HALF_ROTARY = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
CONFIGS = {
    "llama grouped": LlamaConfig(**COMMON, num_attention_heads=6, num_key_value_heads=2, head_dim=8),
    "llama tied, biased": LlamaConfig(**COMMON, **HEADS, tie_word_embeddings=True, attention_bias=True),
    "mistral": MistralConfig(**COMMON, **HEADS, **WINDOW, head_dim=16),
    "qwen2": Qwen2Config(**COMMON, **HEADS, **WINDOW, use_sliding_window=True, max_window_layers=1),
    "qwen3": Qwen3Config(**COMMON, **HEADS, head_dim=20),
    "phi3": Phi3Config(**COMMON, **HEADS, pad_token_id=0, rope_parameters=HALF_ROTARY),
    "gemma": GemmaConfig(**COMMON, **HEADS, head_dim=12),
    "gemma2": Gemma2Config(
        **COMMON,
        **HEADS,
        **WINDOW,
        head_dim=12,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=5.0,
        query_pre_attn_scalar=10,
    ),
    "gemma3": Gemma3TextConfig(
        **COMMON,
        **HEADS,
        **WINDOW,
        head_dim=24,
        query_pre_attn_scalar=10,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
}
LENGTHS = (45, 7, 70, 33)
STEPS = ((20, 1, 40, 0), (1, 3, 17, 33), (16, 1, 1, 0), (1, 1, 1, 0), (7, 1, 11, 0))
"""Tokens of each sequence computed by each step: prefill, extension and decoding side by side."""


def plans():
    tables, first = [], 0
    for length in LENGTHS:
        count = -(-length // 16)
        tables.append(tuple(reversed(range(first, first + count))))
        first += count
    sequences = [torch.randint(0, 96, (n,), generator=torch.Generator().manual_seed(n)).tolist() for n in LENGTHS]
    done = [0] * len(LENGTHS)
    for sizes in STEPS:
        chunks = []
        for index, size in enumerate(sizes):
            if size:
                tokens = tuple(sequences[index][done[index] : done[index] + size])
                chunks.append(Chunk(request_id=str(index), token_ids=tokens, start=done[index], block_ids=tables[index], samples=True))
                done[index] += size
        yield StepPlan(chunks=tuple(chunks))


def logits_of(module):
    runner = Runner(FakeModel(module=module))
    runner.allocate(32, 16)
    return [runner.forward(build(plan, torch.device("cpu"))) for plan in plans()]


def deviate(module):
    """Trained norms are not all ones, and biases not all zeros."""
    generator = torch.Generator().manual_seed(7)
    for parameter in module.parameters():
        if parameter.dim() == 1:
            parameter.add_(torch.rand(parameter.shape, generator=generator).to(parameter.dtype) - 0.5)
    return module


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_logits_equal_those_of_the_unfused_module(config):
    expected = logits_of(deviate(random_module(config)))
    module = deviate(random_module(config))
    assert fuse(module) == 3
    for step, (actual, wanted) in enumerate(zip(logits_of(module), expected, strict=True)):
        torch.testing.assert_close(actual, wanted, atol=1e-4, rtol=1e-4, msg=lambda text, step=step: f"step {step}: {text}")


@pytest.mark.parametrize("num_sampling", [0, 1, 2])
def test_rows_that_do_not_sample_leave_their_keys_and_values_behind(num_sampling):
    """Two prompts, of which none, one or both sample, and a token of each after them."""
    plans = [
        StepPlan(
            chunks=tuple(
                Chunk(request_id=str(index), token_ids=tuple(range(start, stop)), start=start, block_ids=(index,), samples=index < sampling)
                for index in range(2)
            )
        )
        for start, stop, sampling in ((0, 9, num_sampling), (9, 10, 2))
    ]
    expected, actual = Runner(FakeModel(module=random_module(CONFIGS["llama grouped"]))), random_module(CONFIGS["llama grouped"])
    assert fuse(actual) == 3
    runners = expected, Runner(FakeModel(module=actual))
    for runner in runners:
        runner.allocate(2, 16)
    for plan in plans:
        wanted, given = (runner.forward(build(plan, torch.device("cpu"))) for runner in runners)
        torch.testing.assert_close(given, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_bfloat16_is_no_farther_from_exact_than_the_unfused_module(config):
    exact = logits_of(deviate(random_module(config, dtype=torch.bfloat16)).float())
    unfused = logits_of(deviate(random_module(config, dtype=torch.bfloat16)))
    module = deviate(random_module(config, dtype=torch.bfloat16))
    assert fuse(module) == 3
    for actual, plain, wanted in zip(logits_of(module), unfused, exact, strict=True):
        assert (actual - wanted).abs().mean() <= 1.5 * (plain - wanted).abs().mean() + 0.01


@pytest.mark.parametrize(
    "config",
    [
        Olmo2Config(**COMMON, **HEADS, pad_token_id=0),
        GPT2Config(vocab_size=96, n_embd=48, n_layer=2, n_head=4),
        LlamaConfig(**COMMON, **HEADS, hidden_act="relu"),
    ],
    ids=["norms after the blocks", "another family", "another activation"],
)
def test_what_matches_no_pattern_stays_as_it_is(config):
    module = random_module(config)
    before = [type(part) for part in module.modules()]
    assert fuse(module) == 0
    assert [type(part) for part in module.modules()] == before
    with pytest.raises(UnsupportedModel, match="int8"):
        fuse(module, quantization="int8")
    assert fuse(module, quantization="int8", must_quantise=False) == 0


def test_a_layer_with_another_kind_of_linear_stays_as_it_is():
    class Scaled(torch.nn.Linear):
        def forward(self, input):
            return 2 * super().forward(input)

    module = random_module(CONFIGS["llama grouped"])
    module.model.layers[1].mlp.down_proj = Scaled(64, 48, bias=False).requires_grad_(False)  # type: ignore[union-attr, index]
    expected = logits_of(module)
    assert fuse(module) == 2
    for actual, wanted in zip(logits_of(module), expected, strict=True):
        torch.testing.assert_close(actual, wanted, atol=1e-4, rtol=1e-4)


def test_an_instance_that_was_altered_stays_as_it_is():
    module = random_module(CONFIGS["llama grouped"])
    layers: Any = module.model.layers  # type: ignore[union-attr]
    original = layers[2].forward
    layers[2].forward = lambda *arguments, **keywords: 1.01 * original(*arguments, **keywords)
    layers[1].mlp.register_forward_hook(lambda _module, _arguments, result: 2 * result)
    expected = logits_of(module)
    assert fuse(module) == 1
    for actual, wanted in zip(logits_of(module), expected, strict=True):
        torch.testing.assert_close(actual, wanted, atol=1e-4, rtol=1e-4)


def test_a_class_that_computes_something_else_is_not_fused(caplog, monkeypatch):
    module = random_module(CONFIGS["llama grouped"])
    kind: Any = type(module.model.layers[0])  # type: ignore[union-attr, index]
    original = kind.forward
    monkeypatch.setattr(kind, "forward", lambda *arguments, **keywords: 1.01 * original(*arguments, **keywords))
    with caplog.at_level(logging.WARNING):
        assert fuse(module) == 0
    assert len(caplog.messages) == 1 and "LlamaDecoderLayer is not fused" in caplog.text


@pytest.mark.parametrize("name", ["llama grouped", "gemma3"])
def test_one_layer_of_each_kind_is_compared(name, monkeypatch):
    compared = []
    monkeypatch.setattr(passes, "_verify", lambda layer, parts, trace: compared.append(layer) or True)
    assert fuse(random_module(CONFIGS[name])) == 3
    assert len(compared) == {"llama grouped": 1, "gemma3": 2}[name]


def test_float16_is_left_alone():
    assert fuse(random_module(CONFIGS["llama grouped"], dtype=torch.float16)) == 0


def num_weights(module):
    return sum({parameter.data_ptr(): parameter.numel() for parameter in module.parameters()}.values())


def test_weights_are_held_once():
    module = random_module(CONFIGS["llama tied, biased"])
    before = num_weights(module)
    fuse(module)
    assert num_weights(module) <= before
    assert module.get_output_embeddings().linear.weight.data_ptr() == module.get_input_embeddings().weight.data_ptr()  # type: ignore[operator]


# --- 8 bits ---


def linear(num_outputs, width, *, bias=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(num_outputs, width, generator=generator)
    weight[0] = 0
    weight[1, 0] = 40
    return LinearWeights(weight, torch.randn(num_outputs, generator=generator) if bias else None)


@pytest.mark.parametrize(("num_outputs", "width"), [(16, 64), (7, 33), (48, 1536), (130, 5)])
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("num_rows", [1, 3, 40])
def test_int8_products_are_those_of_the_rounded_weights(num_outputs, width, bias, num_rows):
    weights = linear(num_outputs, width, bias=bias)
    rows = torch.randn(num_rows, width, generator=torch.Generator().manual_seed(1)) * torch.logspace(-3, 3, num_rows).unsqueeze(1)
    rows[0, 0] = 100
    scales = weights.weight.abs().amax(1, keepdim=True).clamp_min(1e-30) / 127
    rounded = (weights.weight / scales).round() * scales
    expected = rows.double() @ rounded.double().t()
    actual = Int8Linear(weights)(rows) - (0 if weights.bias is None else weights.bias)
    bound = rows.abs().amax(1, keepdim=True) / 64516 * rounded.abs().sum(1) + 1e-4 * expected.abs().amax(1, keepdim=True) + 1e-5
    assert bool(((actual - expected).abs() <= bound).all())


def test_int8_products_are_exact_sums_at_the_extremes():
    weight = torch.full((32, 4096), 1.0)
    weight[1::2] = -1
    rows = torch.full((3, 4096), 0.5)
    rows[1] = -0.5
    torch.testing.assert_close(Int8Linear(LinearWeights(weight, None))(rows), rows @ weight.t(), rtol=1e-6, atol=0)


@settings(max_examples=30, deadline=None)
@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_an_int8_row_does_not_depend_on_its_neighbours(counts, seed):
    module = Int8Linear(linear(24, 70, seed=seed))
    rows = torch.randn(sum(counts), 70, generator=torch.Generator().manual_seed(seed)) * 10
    together = module(rows)
    assert torch.equal(together, torch.cat([module(part.clone()) for part in rows.split(counts)]))


def test_int8_rows_that_are_zero_tiny_or_not_finite():
    module = Int8Linear(linear(16, 64))
    rows = torch.zeros(5, 64)
    rows[1] = 1e-38
    rows[2, 3] = torch.nan
    rows[3, 3] = -torch.inf
    rows[4] = 1
    out = module(rows)
    assert bool((out[:2] == 0).all()) and bool(out[2:4].isnan().all()) and bool(out[4].isfinite().all())
    assert module(rows[:0]).shape == (0, 16)


def rounded(module):
    """The module with the weights that 8 bits can hold."""
    module.set_output_embeddings(copy.deepcopy(module.get_output_embeddings()))
    for part in module.modules():
        if isinstance(part, torch.nn.Linear):
            scales = part.weight.abs().amax(1, keepdim=True).clamp_min(1e-30) / 127
            part.weight = torch.nn.Parameter((part.weight / scales).round() * scales, requires_grad=False)
    return module


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_int8_logits_are_those_of_the_rounded_weights(config):
    expected = torch.cat(logits_of(rounded(deviate(random_module(config)))))
    module = deviate(random_module(config))
    assert fuse(module, quantization="int8") == 3
    actual = torch.cat(logits_of(module))
    assert float((actual - expected).norm() / expected.norm()) < 2e-3


def test_int8_answers_are_the_same_alone_and_in_company():
    module = deviate(random_module(LlamaConfig(**{**COMMON, "vocab_size": 261}, **HEADS, max_position_embeddings=256)))
    fuse(module, quantization="int8")
    prompts = {f"{n}": bytes(range(n, n + 5 * n)) for n in (1, 4, 9, 16)}
    together = drain(tiny_core(model=FakeModel(module=module)), [greedy(name, prompt) for name, prompt in prompts.items()])
    for name, prompt in prompts.items():
        alone = drain(tiny_core(model=FakeModel(module=module)), [greedy(name, prompt)])
        assert alone[name].token_ids == together[name].token_ids
