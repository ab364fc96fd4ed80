# ruff: noqa: RUF001 (other scripts are what is tested)
"""Small models as GGUF files, written with the format's own library: its writer, tensor names and quantiser."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter, get_tensor_name_map
from gguf.constants import MODEL_ARCH
from gguf.quants import quantize
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers.models import BPE
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
CHAT_TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
TRAINING_TEXT = [
    "The quick brown fox jumps over the lazy dog, 1234567890 times; it's we'll they're.",
    "def f(x):\n    return x + 1  # a comment\n\n\nclass A:\n\tpass",
    "Съешь же ещё этих мягких французских булок. 你好，世界。 日本語 مرحبا 🎉👍",
]


def byte_level_tokenizer(size: int = 400) -> Tokenizer:
    """A trained byte-level BPE tokenizer with three special tokens in front."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TRAINING_TEXT, trainer)
    return tokenizer


def tiny_model(model_type: str, *, vocab_size: int = 400, **overrides: Any) -> PreTrainedModel:
    """A seeded transformers model of two or more small layers, whose norms are not all ones."""
    sizes: dict[str, Any] = {
        "vocab_size": vocab_size,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_position_embeddings": 256,
        "pad_token_id": None,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "initializer_range": 0.2,
        "tie_word_embeddings": True,
    }
    config = AutoConfig.for_model(model_type, **{**sizes, **overrides})
    torch.manual_seed(7)
    module = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return module


def byte_level_metadata(tokenizer: Tokenizer) -> dict[str, Any]:
    """The tokenizer of a file, as GGUF metadata."""
    vocab = tokenizer.get_vocab()
    tokens = sorted(vocab, key=lambda token: vocab[token])
    merges = [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [CONTROL if token.startswith("<|") else NORMAL for token in tokens],
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def hyperparameters(architecture: str, config: Any) -> dict[str, Any]:
    """The shape of a model, as GGUF metadata."""
    values = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
    }
    if architecture == "gemma3":
        values["attention.sliding_window"] = config.sliding_window
        values["rope.freq_base"] = config.rope_parameters["full_attention"]["rope_theta"]
    else:
        values["rope.freq_base"] = config.rope_parameters["rope_theta"]
    return {f"{architecture}.{key}": value for key, value in values.items()}


_MODEL_ARCHS = {"llama": MODEL_ARCH.LLAMA, "gemma3": MODEL_ARCH.GEMMA3}


def gguf_tensors(architecture: str, module: PreTrainedModel) -> dict[str, np.ndarray]:
    """The weights of a module under their GGUF names and in GGUF's conventions."""
    config = module.config
    names = get_tensor_name_map(_MODEL_ARCHS[architecture], config.num_hidden_layers)
    tensors = {}
    for name, parameter in module.named_parameters():
        values = parameter.detach().float().numpy()
        if architecture == "llama" and ".q_proj." in name:
            values = interleave_rotary_halves(values, config.num_attention_heads)
        if architecture == "llama" and ".k_proj." in name:
            values = interleave_rotary_halves(values, config.num_key_value_heads)
        if architecture == "gemma3" and "norm" in name:
            values = values + 1
        gguf_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert gguf_name is not None, name
        tensors[gguf_name] = values
    return tensors


def interleave_rotary_halves(values: np.ndarray, num_heads: int) -> np.ndarray:
    """llama.cpp's `permute`: the two halves of each head's rows are interleaved."""
    rows = values.shape[0] // num_heads // 2
    return values.reshape(num_heads, 2, rows, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def write_gguf(
    path: Path,
    architecture: str,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    *,
    type_of: Callable[[str, np.ndarray], GGMLQuantizationType] = lambda name, values: GGMLQuantizationType.F32,
) -> Path:
    """A GGUF file; `type_of` says how each tensor is stored."""
    writer = GGUFWriter(path, architecture)
    for key, value in metadata.items():
        _add_value(writer, key, value)
    for name, values in tensors.items():
        kind = type_of(name, values)
        writer.add_tensor(name, quantize(np.ascontiguousarray(values), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_value(writer: GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def write_model(path: Path, architecture: str, module: PreTrainedModel, **extra: Any) -> Path:
    """A whole model with a byte-level tokenizer; `extra` metadata overrides, with `__` for `.` in its keys."""
    metadata = {
        **hyperparameters(architecture, module.config),
        **byte_level_metadata(byte_level_tokenizer()),
        **{key.replace("__", "."): value for key, value in extra.items()},
    }
    return write_gguf(path, architecture, metadata, gguf_tensors(architecture, module))
