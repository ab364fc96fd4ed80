"""Replaces the decoder layers and the head of a loaded model by lean ones.

The first fused layer of each kind is compared with the layer it replaces on a few tokens, so that a change in transformers can make
a model slower but never wrong. Layers are of one kind when they run the same code on weights of the same shapes.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch

from ...attention import attending
from ...config import Quantization
from ...errors import UnsupportedModel
from ...kernels.paged_attention import AttentionScale
from .int8 import Int8Linear
from .layer import FusedDecoderLayer
from .linear import Head, LinearWeights, RowLinear
from .patterns import PATTERNS, LayerParts, kind_of, match

_log = logging.getLogger(__name__)

_TOKENS = (0, 1, 2, 1)
_POSITIONS = (0, 1, 2, 7)
_TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 5e-2}
"""Largest difference of a fused layer, as a share of the largest value, by the type of the weights. Others are not fused."""


def fuse(module: torch.nn.Module, *, quantization: Quantization = "none", must_quantise: bool = True) -> int:
    """Fuses the layers of a causal language model that match a pattern, and then its head; returns the number of layers.

    Layers are fused one after the other, and at most one of them is held twice.

    Args:
        module: of transformers, loaded with our attention, in eval mode, without gradients. Off the CPU it stays as it is.
        quantization: of the weights of all fused layers and of the head.
        must_quantise: whether layers that can't be fused may stay as they are, though the others are quantised.

    Raises:
        UnsupportedModel: quantisation must be, but not every layer can be fused.
    """
    places = _decoder_layers(module)
    traces = _trace(module, places) if places else []
    verdicts: dict[Hashable, bool] = {}
    num_fused = sum(_fuse_layer(place, trace, quantization, verdicts) for place, trace in zip(places, traces, strict=True))
    if quantization != "none" and must_quantise and (num_fused == 0 or num_fused < len(places)):
        raise UnsupportedModel(f"{quantization}: the layers of {type(module).__name__} cannot be quantised on this device")
    if num_fused:
        last = places[-1].layer
        if isinstance(last, FusedDecoderLayer) and all(place.layers is places[-1].layers for place in places):
            last.is_last = True
        _fuse_head(module, quantization)
    return num_fused


@dataclass(frozen=True)
class _Place:
    """A decoder layer in the list that holds it."""

    layers: torch.nn.ModuleList
    index: int

    @property
    def layer(self) -> torch.nn.Module:
        return self.layers[self.index]


@dataclass(frozen=True)
class _Trace:
    """One call of a layer.

    Attributes:
        hidden_states, keywords: what it was called with.
        result: what it returned.
        attention: how it attended meanwhile: its number in the cache, and the scale.
    """

    hidden_states: torch.Tensor
    keywords: dict[str, Any]
    result: torch.Tensor
    attention: tuple[tuple[int, AttentionScale], ...]


class _TracedStep:
    """Attention among a few tokens, without a cache, that notes who attends how."""

    sample_rows = None

    def __init__(self) -> None:
        self.calls: list[tuple[int, AttentionScale]] = []

    def attend(self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: AttentionScale) -> torch.Tensor:
        self.calls.append((layer, scale))
        query, key, value = (tensor.float().transpose(0, 1).unsqueeze(0) for tensor in (queries, keys, values))
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale.scaling, enable_gqa=True)
        return out[0].transpose(0, 1).to(queries.dtype)


def _decoder_layers(module: torch.nn.Module) -> list[_Place]:
    weight = next(module.parameters())
    if weight.device.type != "cpu" or weight.dtype not in _TOLERANCES:
        return []
    lists = [part for part in module.modules() if isinstance(part, torch.nn.ModuleList)]
    return [_Place(layers, index) for layers in lists for index, layer in enumerate(layers) if type(layer).__name__ in PATTERNS]


@torch.inference_mode()
def _trace(module: torch.nn.Module, places: list[_Place]) -> list[_Trace | None]:
    """The call of each layer in a pass over a few tokens. A layer that is not called as fused ones are has none."""
    traces: dict[torch.nn.Module, _Trace] = {}
    step = _TracedStep()

    def note(layer: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> None:
        if len(arguments) == 1 and isinstance(result, torch.Tensor):
            traces[layer] = _Trace(arguments[0], keywords, result, tuple(step.calls))
        step.calls.clear()

    handles = [place.layer.register_forward_hook(note, with_kwargs=True) for place in places]
    tokens, positions = torch.tensor([_TOKENS]), torch.tensor([_POSITIONS])
    try:
        with attending(step):
            module(input_ids=tokens, position_ids=positions, use_cache=False, logits_to_keep=1)
    finally:
        for handle in handles:
            handle.remove()
    return [traces.get(place.layer) for place in places]


@torch.inference_mode()
def _fuse_layer(place: _Place, trace: _Trace | None, quantization: Quantization, verdicts: dict[Hashable, bool]) -> bool:
    """Replaces a layer if it can be; the verdicts are those of the kinds met so far."""
    if trace is None or len(trace.attention) != 1:
        return False
    parts = match(place.layer)
    if parts is None:
        return False
    kind = (kind_of(place.layer, parts), trace.attention[0][1])
    if kind not in verdicts:
        verdicts[kind] = _verify(place.layer, parts, trace)
    if verdicts[kind]:
        place.layers[place.index] = _layer(parts, trace, quantization)
    return verdicts[kind]


def _verify(layer: torch.nn.Module, parts: LayerParts, trace: _Trace) -> bool:
    with attending(_TracedStep()):
        actual = _layer(parts, trace, "none")(trace.hidden_states, **trace.keywords)
    if _close(actual, trace.result):
        return True
    _log.warning("a %s is not fused: it computes something else than is known of its class", type(layer).__name__)
    return False


def _layer(parts: LayerParts, trace: _Trace, quantization: Quantization) -> FusedDecoderLayer:
    layer, scale = trace.attention[0]
    linear = RowLinear if quantization == "none" else Int8Linear
    return FusedDecoderLayer(parts.design, parts.weights, layer=layer, scale=scale, linear=linear)


def _close(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    largest = float(expected.abs().max())
    return float((actual.float() - expected.float()).abs().max()) <= _TOLERANCES[expected.dtype] * largest


@torch.inference_mode()
def _fuse_head(module: Any, quantization: Quantization) -> None:
    head = module.get_output_embeddings()
    if type(head) is not torch.nn.Linear or head.bias is not None:
        return
    weights = LinearWeights(head.weight.data, None)
    linear = RowLinear(weights) if quantization == "none" else Int8Linear(weights)
    module.set_output_embeddings(Head(linear, head.weight.dtype))
