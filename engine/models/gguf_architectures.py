"""What each GGUF architecture is in transformers' terms: its configuration, tensor names and value transforms.

A new architecture is one entry in `ARCHITECTURES`. Conventions undone here, with their source (llama.cpp's
`convert_hf_to_gguf.py`): Llama's query and key rows are interleaved for rotary pairs (`permute`), Gemma's norm weights
are stored with one added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import UnsupportedModel
from .gguf_file import GgufFile

Transform = Callable[[np.ndarray, Any], np.ndarray]  # (values float32, transformers config) -> values float32

_NUMBER = (int, float)
_MAX_DIMENSION = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One row of the table.

    Attributes:
        model_type: transformers' name of the architecture.
        config: reads the transformers configuration, as keyword arguments, from a file.
        layer_modules: GGUF name of each tensor group of a layer -> transformers' module path in the layer.
        transforms: GGUF name of a tensor group, with `blk.N.` removed -> what to do with its values.
    """

    model_type: str
    config: Callable[[GgufFile], dict[str, Any]]
    layer_modules: Mapping[str, str]
    transforms: Mapping[str, Transform] = field(default_factory=dict)

    def parameter_name(self, tensor_name: str) -> str | None:
        """transformers' name of a GGUF tensor (`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`)."""
        group, _, leaf = tensor_name.rpartition(".")
        if group in _TOP_MODULES:
            return f"{_TOP_MODULES[group]}.{leaf}"
        prefix, _, rest = group.partition(".")
        layer, _, module = rest.partition(".")
        if prefix != "blk" or not layer.isdecimal() or module not in self.layer_modules:
            return None
        return f"model.layers.{int(layer)}.{self.layer_modules[module]}.{leaf}"

    def transform(self, tensor_name: str) -> Transform | None:
        """What to do with the values of a GGUF tensor, or None."""
        group = tensor_name.rpartition(".")[0]
        return self.transforms.get(group.split(".", 2)[-1] if group.startswith("blk.") else group)


_TOP_MODULES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}

_ATTENTION_AND_MLP = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
}
_LLAMA_MODULES = {**_ATTENTION_AND_MLP, "ffn_norm": "post_attention_layernorm"}
_GEMMA3_MODULES = {
    **_ATTENTION_AND_MLP,
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def _split_rotary_pairs(values: np.ndarray, num_heads: int) -> np.ndarray:
    """Rows of each head from (0, h/2, 1, h/2 + 1, ...) back to (0, 1, ..., h - 1)."""
    pairs = values.reshape(num_heads, -1, 2, *values.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(values.shape)


def _subtract_one(values: np.ndarray, config: Any) -> np.ndarray:
    return values - np.float32(1)


class _Fields:
    """The metadata below an architecture's prefix."""

    def __init__(self, file: GgufFile):
        self.file = file
        self.prefix = file.architecture

    def size(self, key: str, default: int | None = None) -> int:
        """A positive integer."""
        value = self._read(key, int, default)
        if not 0 < value < _MAX_DIMENSION:
            raise UnsupportedModel(f"{self.file.path}: {self.prefix}.{key} is {value}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        return float(self._read(key, _NUMBER, default))

    def optional(self, key: str, kind: type | tuple[type, ...]) -> Any:
        return self.file.get(f"{self.prefix}.{key}", kind)

    def _read(self, key: str, kind: type | tuple[type, ...], default: Any) -> Any:
        name = f"{self.prefix}.{key}"
        return self.file.require(name, kind) if default is None else self.file.get(name, kind, default)


def _decoder_config(fields: _Fields) -> dict[str, Any]:
    """What all dense decoders share. Sizes of the vocabulary come from the tensors: they are the logits' width."""
    file = fields.file
    if fields.optional("expert_count", int):
        raise UnsupportedModel(f"{file.path}: mixture-of-experts models of architecture {file.architecture} are not supported")
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise UnsupportedModel(f"{file.path} has no token embedding")
    num_heads = fields.size("attention.head_count")
    num_layers = fields.size("block_count")
    if num_layers > len(file.tensors):
        raise UnsupportedModel(f"{file.path} declares {num_layers} layers but holds {len(file.tensors)} tensors")
    hidden_size = fields.size("embedding_length")
    head_dim = fields.size("attention.key_length", max(1, hidden_size // num_heads))
    if fields.size("attention.value_length", head_dim) != head_dim:
        raise UnsupportedModel(f"{file.path}: keys and values of different length are not supported")
    if fields.size("rope.dimension_count", head_dim) != head_dim:
        raise UnsupportedModel(f"{file.path}: rotary embeddings over a part of the head are not supported")
    return {
        "vocab_size": embedding.shape[0],
        "hidden_size": hidden_size,
        "intermediate_size": fields.size("feed_forward_length"),
        "num_hidden_layers": num_layers,
        "num_attention_heads": num_heads,
        "num_key_value_heads": fields.size("attention.head_count_kv", num_heads),
        "head_dim": head_dim,
        "max_position_embeddings": fields.size("context_length"),
        "rms_norm_eps": fields.number("attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "bos_token_id": file.get("tokenizer.ggml.bos_token_id", int),
        "eos_token_id": file.get("tokenizer.ggml.eos_token_id", int),
        "pad_token_id": file.get("tokenizer.ggml.padding_token_id", int),
    }


def _rope_parameters(fields: _Fields, default_theta: float) -> dict[str, Any]:
    parameters = {"rope_type": "default", "rope_theta": fields.number("rope.freq_base", default_theta)}
    scaling = fields.optional("rope.scaling.type", str) or "none"
    if scaling == "linear":
        return {**parameters, "rope_type": "linear", "factor": fields.number("rope.scaling.factor")}
    if scaling != "none":
        raise UnsupportedModel(f"{fields.file.path}: rotary scaling of type {scaling!r} is not supported")
    return parameters


def _llama_config(file: GgufFile) -> dict[str, Any]:
    fields = _Fields(file)
    return {
        **_decoder_config(fields),
        "rope_parameters": _rope_parameters(fields, default_theta=10_000.0),
        "attention_bias": "blk.0.attn_q.bias" in file.tensors,
        "mlp_bias": "blk.0.ffn_gate.bias" in file.tensors,
    }


_GEMMA3_LAYERS_OF_27B = 62


def _gemma3_config(file: GgufFile) -> dict[str, Any]:
    fields = _Fields(file)
    config = _decoder_config(fields)
    # The file does not state the attention scale: it is the head's size but in the 27B model (llama.cpp, gemma3.cpp).
    is_27b = config["num_hidden_layers"] == _GEMMA3_LAYERS_OF_27B
    scale_dim = config["hidden_size"] // config["num_attention_heads"] if is_27b else config["head_dim"]
    return {
        **config,
        "sliding_window": fields.size("attention.sliding_window"),
        "layer_types": _gemma3_layer_types(fields, config["num_hidden_layers"]),
        "rope_parameters": {
            "full_attention": _rope_parameters(fields, default_theta=1_000_000.0),
            "sliding_attention": {"rope_type": "default", "rope_theta": fields.number("rope.freq_base_swa", 10_000.0)},
        },
        "query_pre_attn_scalar": scale_dim,
        "final_logit_softcapping": fields.optional("final_logit_softcapping", _NUMBER),
        "attn_logit_softcapping": None,
    }


def _gemma3_layer_types(fields: _Fields, num_layers: int) -> list[str]:
    """Every sixth layer attends to everything, unless the file states another period or a flag per layer."""
    pattern = fields.optional("attention.sliding_window_pattern", (int, list))
    if not isinstance(pattern, list):
        period = fields.size("attention.sliding_window_pattern", 6)
        pattern = [(layer + 1) % period != 0 for layer in range(num_layers)]
    if len(pattern) != num_layers:
        raise UnsupportedModel(f"{fields.file.path}: the sliding window pattern does not have one entry per layer")
    return ["sliding_attention" if is_sliding else "full_attention" for is_sliding in pattern]


ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture(
        model_type="llama",
        config=_llama_config,
        layer_modules=_LLAMA_MODULES,
        transforms={
            "attn_q": lambda values, config: _split_rotary_pairs(values, config.num_attention_heads),
            "attn_k": lambda values, config: _split_rotary_pairs(values, config.num_key_value_heads),
        },
    ),
    "gemma3": Architecture(
        model_type="gemma3_text",
        config=_gemma3_config,
        layer_modules=_GEMMA3_MODULES,
        transforms=dict.fromkeys(
            ("output_norm", "attn_norm", "ffn_norm", "attn_q_norm", "attn_k_norm", "post_attention_norm", "post_ffw_norm"), _subtract_one
        ),
    ),
}


def architecture_of(file: GgufFile) -> Architecture:
    """The table's entry for a file.

    Raises:
        UnsupportedModel: the architecture has no entry.
    """
    try:
        return ARCHITECTURES[file.architecture]
    except KeyError as error:
        known = ", ".join(sorted(ARCHITECTURES))
        raise UnsupportedModel(f"{file.path}: GGUF architecture {file.architecture!r} is not supported (supported: {known})") from error
