"""Which decoder layers of transformers can be fused, and where their parts are.

A class is listed here when its forward pass is that of Llama (Touvron et al. 2023) with the variations below. Anything
else - another class, another kind of module in the place of a part - does not match.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ...kernels.row_math import Activation, HeadLayout, NormWeights
from .layer import LayerDesign, LayerWeights
from .linear import LinearWeights, merge

_ACTIVATIONS = {"SiLUActivation": Activation.SILU, "SiLU": Activation.SILU, "GELUTanh": Activation.GELU_TANH}


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """The names of a layer's parts.

    Attributes:
        qkv: modules of its attention that make queries, keys and values, in this order, or one that makes all.
        gate_up: modules of its feed-forward block that make gates and factors, in this order, or one that makes both.
        norm_offset: what is added to the weights of its norms.
        norm_middle: the norm before the feed-forward block.
        norm_attention, norm_feed_forward: the norms of what the blocks add.
        head_norms: modules of its attention that norm queries and keys.
    """

    qkv: tuple[str, ...] = ("q_proj", "k_proj", "v_proj")
    gate_up: tuple[str, ...] = ("gate_proj", "up_proj")
    activation: str = "act_fn"
    norm_offset: float = 0.0
    norm_middle: str = "post_attention_layernorm"
    norm_attention: str | None = None
    norm_feed_forward: str | None = None
    head_norms: tuple[str, str] | None = None


_LLAMA = Pattern()
_GEMMA = {
    "norm_offset": 1.0,
    "norm_middle": "pre_feedforward_layernorm",
    "norm_attention": "post_attention_layernorm",
    "norm_feed_forward": "post_feedforward_layernorm",
}
_HEAD_NORMS = ("q_norm", "k_norm")

PATTERNS: dict[str, Pattern] = {
    "LlamaDecoderLayer": _LLAMA,
    "MistralDecoderLayer": _LLAMA,
    "Qwen2DecoderLayer": _LLAMA,
    "Qwen3DecoderLayer": Pattern(head_norms=_HEAD_NORMS),
    "Phi3DecoderLayer": Pattern(qkv=("qkv_proj",), gate_up=("gate_up_proj",), activation="activation_fn"),
    "GemmaDecoderLayer": Pattern(norm_offset=1.0),
    "Gemma2DecoderLayer": Pattern(**_GEMMA),
    "Gemma3DecoderLayer": Pattern(**_GEMMA, head_norms=_HEAD_NORMS),
}
"""By class of transformers' decoder layers."""


class LayerParts(NamedTuple):
    """A decoder layer taken apart."""

    design: LayerDesign
    weights: LayerWeights


def match(layer: torch.nn.Module) -> LayerParts | None:
    """The parts of a decoder layer, or None when it does not match."""
    pattern = PATTERNS.get(type(layer).__name__)
    if pattern is None or _is_altered(layer):
        return None
    try:
        return _parts(layer, pattern)
    except _Mismatch:
        return None


def kind_of(layer: torch.nn.Module, parts: LayerParts) -> Hashable:
    """Equal for layers that run the same code on weights of the same shapes."""
    design = parts.design
    norms = (design.norm_input, design.norm_middle, design.norm_attention, design.norm_feed_forward, *(design.head_norms or ()))
    return (
        type(layer),
        design.heads,
        design.activation,
        tuple(None if norm is None else (norm.epsilon, norm.scale.shape) for norm in norms),
        tuple((weight.shape, weight.dtype, bias is None) for weight, bias in parts.weights),
    )


def _is_altered(layer: torch.nn.Module) -> bool:
    """Whether somebody changed what an instance computes, beside its class."""
    return any("forward" in vars(part) or part._forward_hooks or part._forward_pre_hooks for part in layer.modules())


class _Mismatch(Exception):
    """A part is not what the pattern expects."""


def _parts(layer: Any, pattern: Pattern) -> LayerParts:
    attention, feed_forward = layer.self_attn, layer.mlp
    activation = _ACTIVATIONS.get(type(getattr(feed_forward, pattern.activation)).__name__)
    if activation is None:
        raise _Mismatch
    qkv = _merged(attention, pattern.qkv)
    head_dim = attention.head_dim
    num_heads, odd = divmod(attention.o_proj.in_features, head_dim)
    num_kv_heads, odd_kv = divmod(qkv.weight.shape[0] - num_heads * head_dim, 2 * head_dim)
    if odd or odd_kv:
        raise _Mismatch
    design = LayerDesign(
        heads=HeadLayout(num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_dim),
        activation=activation,
        norm_input=_norm(layer, "input_layernorm", pattern),
        norm_middle=_norm(layer, pattern.norm_middle, pattern),
        norm_attention=None if pattern.norm_attention is None else _norm(layer, pattern.norm_attention, pattern),
        norm_feed_forward=None if pattern.norm_feed_forward is None else _norm(layer, pattern.norm_feed_forward, pattern),
        head_norms=None if pattern.head_norms is None else _head_norms(attention, pattern.head_norms, pattern),
    )
    weights = LayerWeights(
        qkv=qkv,
        out=_merged(attention, ("o_proj",)),
        gate_up=_merged(feed_forward, pattern.gate_up),
        down=_merged(feed_forward, ("down_proj",)),
    )
    return LayerParts(design, weights)


def _merged(block: torch.nn.Module, names: tuple[str, ...]) -> LinearWeights:
    modules = [getattr(block, name, None) for name in names]
    linears = [module for module in modules if type(module) is torch.nn.Linear]
    if len(linears) != len(names):
        raise _Mismatch
    return merge(linears)


def _norm(owner: torch.nn.Module, name: str, pattern: Pattern) -> NormWeights:
    module: Any = getattr(owner, name, None)
    epsilon = getattr(module, "variance_epsilon", None) or getattr(module, "eps", None)
    if epsilon is None or not type(module).__name__.endswith("RMSNorm"):
        raise _Mismatch
    return NormWeights(scale=(module.weight.data.float() + pattern.norm_offset).contiguous(), epsilon=epsilon)


def _head_norms(attention: torch.nn.Module, names: tuple[str, str], pattern: Pattern) -> tuple[NormWeights, NormWeights]:
    queries, keys = (_norm(attention, name, pattern) for name in names)
    if queries.epsilon != keys.epsilon:
        raise _Mismatch
    return queries, keys
