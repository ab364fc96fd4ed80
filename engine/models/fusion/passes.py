"""Replaces the decoder layers of a loaded model by fused ones.

Each fused layer is compared with the layer it replaces on a few tokens, so that a change in transformers can make a model
slower but never wrong.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import torch

from ...attention import IMPLEMENTATION
from ...kernels.paged_attention import AttentionScale
from .layer import FusedDecoderLayer
from .patterns import PATTERNS, match

_log = logging.getLogger(__name__)

_TOKENS = (0, 1, 2, 1)
_POSITIONS = (0, 1, 2, 7)
_TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 5e-2}
"""Largest difference of a fused layer, as a share of the largest value, by the type of the weights. Others are not fused."""


def fuse_layers(module: torch.nn.Module) -> int:
    """Fuses the layers of a causal language model on a CPU that match a pattern; returns how many.

    The weights of fused layers are shared or moved, so that at most one layer is held twice.

    Args:
        module: of transformers, loaded with our attention, without gradients.
    """
    places = _decoder_layers(module)
    if not places:
        return 0
    return sum(_fuse(place, observation) for place, observation in zip(places, _observe(module, places), strict=True))


@dataclass(frozen=True)
class _Place:
    """A decoder layer in the list that holds it."""

    layers: torch.nn.ModuleList
    index: int

    @property
    def layer(self) -> torch.nn.Module:
        return self.layers[self.index]


@dataclass
class _Observation:
    """What one layer did in a forward pass."""

    hidden: torch.Tensor | None = None
    keywords: dict[str, Any] = field(default_factory=dict)
    result: torch.Tensor | None = None


class _ObservedStep:
    """Attention among a few tokens, without a cache, that notes who attends how."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, AttentionScale]] = []

    def attend(self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: AttentionScale) -> torch.Tensor:
        self.calls.append((layer, scale))
        query, key, value = (tensor.transpose(0, 1).unsqueeze(0) for tensor in (queries, keys, values))
        out = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scale.scaling, enable_gqa=True
        )
        return out[0].transpose(0, 1)


def _decoder_layers(module: torch.nn.Module) -> list[_Place]:
    weight = next(module.parameters())
    if weight.device.type != "cpu" or weight.dtype not in _TOLERANCES:
        return []
    lists = [part for part in module.modules() if isinstance(part, torch.nn.ModuleList)]
    return [_Place(layers, index) for layers in lists for index, layer in enumerate(layers) if type(layer).__name__ in PATTERNS]


@torch.inference_mode()
def _observe(module: Any, places: list[_Place]) -> list[_Observation]:
    """What each layer receives and returns in a pass over a few tokens."""
    observations = [_Observation() for _ in places]
    handles = [place.layer.register_forward_hook(_noting(seen), with_kwargs=True) for place, seen in zip(places, observations, strict=True)]
    try:
        module(
            input_ids=torch.tensor([_TOKENS]),
            position_ids=torch.tensor([_POSITIONS]),
            use_cache=False,
            logits_to_keep=1,
            formcast_step=_ObservedStep(),
        )
    finally:
        for handle in handles:
            handle.remove()
    return observations


def _noting(seen: _Observation) -> Any:
    def hook(layer: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> None:
        if arguments and isinstance(result, torch.Tensor):
            seen.hidden, seen.keywords, seen.result = arguments[0], keywords, result

    return hook


@torch.inference_mode()
def _fuse(place: _Place, seen: _Observation) -> bool:
    parts = match(place.layer)
    if parts is None or seen.hidden is None or seen.result is None:
        return False
    step = _ObservedStep()
    expected = place.layer(seen.hidden, **{**seen.keywords, "formcast_step": step})
    if len(step.calls) != 1:
        return False
    layer, scale = step.calls[0]
    fused = FusedDecoderLayer(parts, layer, scale)
    actual = fused(seen.hidden, **{**seen.keywords, "formcast_step": _ObservedStep()})
    if not _close(actual, expected):
        _log.warning("layer %d is not fused: it computes something else than %s is known for", layer, type(place.layer).__name__)
        return False
    place.layers[place.index] = fused
    return True


def _close(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    largest = float(expected.abs().max())
    return float((actual.float() - expected.float()).abs().max()) <= _TOLERANCES[expected.dtype] * max(largest, 1e-6)


def can_fuse(module: Any) -> bool:
    """Whether the module was loaded with the attention that fused layers call."""
    return module.config._attn_implementation == IMPLEMENTATION
