"""Tiny random models of many families: logits of mixed, chunked batches equal those of transformers' own forward pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from engine_fakes import FakeModel, random_module
from transformers import (
    FalconConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GPTNeoXConfig,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Olmo2Config,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
    StableLmConfig,
)

from formcast.engine.batch import build
from formcast.engine.models import falcon
from formcast.engine.models.fusion.passes import fuse
from formcast.engine.runner import Runner
from formcast.engine.step_plan import Chunk, StepPlan

SIZES: dict[str, Any] = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2, "initializer_range": 0.3}
HEADS: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2}
WINDOW: dict[str, Any] = {"sliding_window": 20}
HALF_ROTARY = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2}
CONFIGS = {
    "llama": LlamaConfig(**SIZES, **HEADS),
    "qwen2": Qwen2Config(**SIZES, **HEADS),
    "qwen3": Qwen3Config(**SIZES, **HEADS, head_dim=20),
    "mistral": MistralConfig(**SIZES, **HEADS, **WINDOW),
    "gemma2": Gemma2Config(**SIZES, **HEADS, **WINDOW, head_dim=12, attn_logit_softcapping=2.0, final_logit_softcapping=5.0),
    "gemma3": Gemma3TextConfig(**SIZES, **HEADS, **WINDOW, head_dim=24, layer_types=["sliding_attention", "full_attention"]),
    "phi3": Phi3Config(**SIZES, **HEADS, pad_token_id=0),
    "olmo2": Olmo2Config(**SIZES, **HEADS, pad_token_id=0),
    "gpt neox": GPTNeoXConfig(**SIZES, num_attention_heads=4),
    "gpt2": GPT2Config(vocab_size=97, n_embd=48, n_layer=2, n_head=4, n_positions=128, initializer_range=0.3),
    "stablelm": StableLmConfig(**SIZES, **HEADS, use_qkv_bias=True, rope_parameters=HALF_ROTARY),
    "falcon": FalconConfig(vocab_size=97, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, initializer_range=0.3),
    "falcon, grouped": FalconConfig(
        vocab_size=97, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2, new_decoder_architecture=True
    ),
    "granite": GraniteConfig(**SIZES, **HEADS, attention_multiplier=0.3, residual_multiplier=0.7, logits_scaling=2.0),
    "mixtral": MixtralConfig(**SIZES, **HEADS, **EXPERTS, num_local_experts=4),
    "qwen3 moe": Qwen3MoeConfig(**SIZES, **HEADS, **EXPERTS, num_experts=4, moe_intermediate_size=32, norm_topk_prob=True),
}
falcon.register()
LENGTHS = (45, 7, 60, 33)
STEPS = ((20, 1, 40, 0), (1, 3, 17, 33), (16, 1, 1, 0), (8, 2, 2, 0))
"""Tokens of each sequence computed by each step: prefill, extension and decoding side by side."""


def plans(sequences):
    width = -(-max(LENGTHS) // 16)
    done = [0] * len(sequences)
    for sizes in STEPS:
        chunks = []
        for index, size in enumerate(sizes):
            if size:
                tokens, blocks = sequences[index][done[index] : done[index] + size], range(index * width, (index + 1) * width)
                chunks.append(
                    Chunk(
                        request_id=str(index), token_ids=tuple(tokens), start=done[index], block_ids=tuple(reversed(blocks)), samples=True
                    )
                )
                done[index] += size
        yield StepPlan(chunks=tuple(chunks))


@pytest.mark.parametrize("fused", [False, True], ids=["", "fused"])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_logits_equal_those_of_transformers(config, fused):
    reference = random_module(config, attention="eager")
    module = random_module(config)
    if fused:
        fuse(module)
    runner = Runner(FakeModel(module=module))
    runner.allocate(32, 16)
    generator = torch.Generator().manual_seed(1)
    sequences = [torch.randint(0, 97, (length,), generator=generator).tolist() for length in LENGTHS]
    expected = [reference(torch.tensor([tokens])).logits[0].float() for tokens in sequences]
    for plan in plans(sequences):
        batch = build(plan, torch.device("cpu"))
        for logits, chunk in zip(runner.forward(batch), batch.sampling, strict=True):
            last = chunk.start + len(chunk.token_ids) - 1
            torch.testing.assert_close(logits, expected[int(chunk.request_id)][last], atol=3e-4, rtol=1e-4)
