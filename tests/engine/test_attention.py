"""The hook against transformers' own attention: full logits of mixed, chunked batches."""

from __future__ import annotations

import pytest
import torch
from engine_fakes import FakeModel, random_module
from transformers import Gemma2Config, Gemma3TextConfig, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from formcast.engine.attention import check_layers, paged_attention_forward
from formcast.engine.batch import build
from formcast.engine.errors import UnsupportedModel
from formcast.engine.runner import Runner
from formcast.engine.step_plan import Chunk, StepPlan

COMMON = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3, "initializer_range": 0.3}
CONFIGS = {
    "llama grouped": LlamaConfig(**COMMON, num_attention_heads=6, num_key_value_heads=2, head_dim=8),
    "llama tied": LlamaConfig(**COMMON, num_attention_heads=4, num_key_value_heads=4, tie_word_embeddings=True),
    "mistral window": MistralConfig(**COMMON, num_attention_heads=4, num_key_value_heads=2, head_dim=16, sliding_window=20),
    "qwen2 partly windowed": Qwen2Config(
        **COMMON, num_attention_heads=4, num_key_value_heads=4, use_sliding_window=True, sliding_window=20, max_window_layers=1
    ),
    "qwen3 normed": Qwen3Config(**COMMON, num_attention_heads=4, num_key_value_heads=2, head_dim=20),
    "gemma2 softcap": Gemma2Config(
        **COMMON,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=12,
        sliding_window=20,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=5.0,
        query_pre_attn_scalar=10,
    ),
    "gemma3": Gemma3TextConfig(
        **COMMON,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=24,
        sliding_window=20,
        query_pre_attn_scalar=10,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
}
LENGTHS = (45, 7, 70, 33)
STEPS = ((20, 1, 40, 0), (1, 3, 17, 33), (16, 1, 1, 0), (8, 2, 12, 0))
"""Tokens of each sequence computed by each step: prefill, extension and decoding side by side."""


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-4), (torch.bfloat16, None)])
def test_logits_equal_those_of_transformers(config, dtype, tolerance):
    expected_module = random_module(config, dtype=dtype, attention="eager")
    runner = Runner(FakeModel(module=random_module(config, dtype=dtype)))
    runner.allocate(32, 16)
    generator = torch.Generator().manual_seed(1)
    sequences = [torch.randint(0, 97, (length,), generator=generator).tolist() for length in LENGTHS]
    expected = [expected_module(torch.tensor([tokens])).logits[0].float() for tokens in sequences]
    if tolerance is None:
        exact = [random_module(config, attention="eager")(torch.tensor([tokens])).logits[0] for tokens in sequences]
        tolerance = 4 * max(float((a - b).abs().max()) for a, b in zip(expected, exact, strict=True)) + 0.05
    for step in steps(sequences):
        batch = build(step, torch.device("cpu"))
        logits = runner.forward(batch)
        stops = {chunk.request_id: chunk.start + len(chunk.token_ids) for chunk in step.chunks}
        for row, chunk in enumerate(batch.sampling):
            torch.testing.assert_close(logits[row], expected[int(chunk.request_id)][stops[chunk.request_id] - 1], atol=tolerance, rtol=1e-4)


def steps(sequences):
    tables, first = [], 0
    for tokens in sequences:
        count = -(-len(tokens) // 16)
        tables.append(tuple(reversed(range(first, first + count))))
        first += count
    done = [0] * len(sequences)
    for sizes in STEPS:
        chunks = []
        for index, size in enumerate(sizes):
            if size:
                tokens = tuple(sequences[index][done[index] : done[index] + size])
                chunks.append(Chunk(request_id=str(index), token_ids=tokens, start=done[index], block_ids=tables[index], samples=True))
                done[index] += size
        yield StepPlan(chunks=tuple(chunks))


@pytest.mark.parametrize(
    "extras",
    [{"attention_mask": torch.zeros(1)}, {"s_aux": torch.zeros(2)}, {"position_bias": torch.zeros(2)}, {"is_causal": False}],
    ids=lambda extras: next(iter(extras)),
)
def test_what_paged_attention_lacks_is_refused(extras):
    module = torch.nn.Module()
    module.layer_idx = 0  # type: ignore[assignment]
    tensor = torch.zeros(1, 2, 3, 4)
    arguments = {"attention_mask": None, **extras}
    with pytest.raises(UnsupportedModel):
        paged_attention_forward(module, tensor, tensor, tensor, **arguments)  # type: ignore[arg-type]


def test_models_with_other_kinds_of_layers_are_refused():
    config = LlamaConfig()
    config.layer_types = ["full_attention", "linear_attention"]
    with pytest.raises(UnsupportedModel, match="linear_attention"):
        check_layers(config)


def test_a_model_whose_layers_bypass_the_hook_is_refused():
    module = random_module(CONFIGS["llama tied"], attention="eager")
    with pytest.raises(UnsupportedModel, match="attention interface"):
        Runner(FakeModel(module=module))


def test_the_cache_is_sized_from_the_layers_own_shapes():
    runner = Runner(FakeModel(module=random_module(CONFIGS["gemma3"])))
    assert runner.block_bytes(16) == 3 * 16 * 1 * (24 + 24) * 4


def test_a_windowed_layer_that_passes_no_window_is_refused():
    module = random_module(CONFIGS["llama tied"])
    module.config.layer_types = ["full_attention", "sliding_attention", "full_attention"]  # type: ignore[union-attr]
    module.config.sliding_window = 20  # type: ignore[union-attr]
    with pytest.raises(UnsupportedModel, match="sliding window"):
        Runner(FakeModel(module=module))
