"""The hook through which transformers' modules reach the paged KV cache.

A module calls its attention function with queries, keys and values of one flattened row of tokens; where each token
belongs is what `attending` says meanwhile, since not every model passes unknown keywords down. transformers builds a dense mask only
for implementations it has a mask function for. There is none for this one: what a row may see is decided by its position
alone, by the layer's sliding window and by nothing else, and whatever a model asks beyond that is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import torch
from transformers import AttentionInterface

from .errors import UnsupportedModel
from .kernels.paged_attention import NO_WINDOW, AttentionBatch, AttentionScale, LayerCache, paged_attention

IMPLEMENTATION = "formcast_paged"
"""Name of this attention implementation for `transformers`."""

_UNSUPPORTED = ("s_aux", "position_bias", "head_mask", "alibi")
_WINDOWED = "sliding_attention"
_SUPPORTED_LAYERS = frozenset({"full_attention", _WINDOWED})


class AttentionStep(Protocol):
    """What a forward pass hands to each layer's attention."""

    @property
    def sample_rows(self) -> torch.Tensor | None:
        """The rows [R] whose last hidden states are needed; None for all."""
        ...

    def attend(self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: AttentionScale) -> torch.Tensor:
        """queries [T, H, D], keys [T, Hkv, D], values [T, Hkv, Dv] -> [T, H, Dv]"""
        ...


_STEP: ContextVar[AttentionStep] = ContextVar("formcast_step")


@contextmanager
def attending(step: AttentionStep) -> Iterator[None]:
    """Within the context, modules attend by this step."""
    token = _STEP.set(step)
    try:
        yield
    finally:
        _STEP.reset(token)


def current_step() -> AttentionStep:
    """How modules attend now; only within `attending`."""
    return _STEP.get()


@dataclass(frozen=True, kw_only=True)
class PagedStep:
    """A step over the real cache."""

    caches: tuple[LayerCache, ...]
    batch: AttentionBatch
    sample_rows: torch.Tensor | None = None

    def attend(self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: AttentionScale) -> torch.Tensor:
        return paged_attention(queries, keys, values, self.caches[layer], self.batch, scale)


@dataclass(frozen=True, kw_only=True)
class LayerShape:
    """Sizes of one layer's keys and values."""

    num_kv_heads: int
    key_dim: int
    value_dim: int

    def elements(self, num_tokens: int) -> int:
        return self.num_kv_heads * (self.key_dim + self.value_dim) * num_tokens


class ShapeProbe:
    """A step that attends to nothing and notes the shape of each layer, and which ones have a sliding window."""

    sample_rows = None

    def __init__(self) -> None:
        self.shapes: dict[int, LayerShape] = {}
        self.windowed: set[int] = set()

    def attend(self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: AttentionScale) -> torch.Tensor:
        if layer in self.shapes:
            raise UnsupportedModel(f"layer {layer} attends more than once in a forward pass")
        if scale.window != NO_WINDOW:
            self.windowed.add(layer)
        self.shapes[layer] = LayerShape(num_kv_heads=keys.shape[1], key_dim=keys.shape[2], value_dim=values.shape[2])
        return values.repeat_interleave(queries.shape[1] // keys.shape[1], dim=1)


def paged_attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    is_causal: bool | None = None,
    **extras: object,
) -> tuple[torch.Tensor, None]:
    """An attention function in the sense of `transformers.AttentionInterface`.

    Args:
        query: [1, H, T, D]
        key: [1, Hkv, T, D]
        value: [1, Hkv, T, Dv]

    Returns:
        [1, T, H, Dv], and no attention weights.

    Raises:
        UnsupportedModel: the layer wants a mask, a bias or a direction that paged attention does not have.
    """
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    unsupported = [name for name in _UNSUPPORTED if extras.get(name) is not None]
    if attention_mask is not None or not causal or unsupported:
        raise UnsupportedModel(f"{type(module).__name__} needs {', '.join(unsupported) or 'a mask that is not causal'}")
    scale = AttentionScale(
        scaling=query.shape[3] ** -0.5 if scaling is None else scaling,
        window=NO_WINDOW if sliding_window is None else sliding_window,
        softcap=softcap,
    )
    layer = module.layer_idx
    assert isinstance(layer, int)
    out = current_step().attend(layer, query[0].transpose(0, 1), key[0].transpose(0, 1), value[0].transpose(0, 1), scale)
    return out.unsqueeze(0), None


def check_layers(config: object) -> None:
    """Refuses layer kinds whose masks or states paged attention does not reproduce.

    Args:
        config: a transformers text configuration.

    Raises:
        UnsupportedModel: the model has chunked, linear or recurrent layers.
    """
    kinds = set(getattr(config, "layer_types", None) or ()) - _SUPPORTED_LAYERS
    if getattr(config, "attention_chunk_size", None) and not kinds:
        kinds = {"chunked_attention"}
    if kinds:
        raise UnsupportedModel(f"{getattr(config, 'model_type', 'the model')} has layers of kind {', '.join(sorted(kinds))}")


def windowed_layers(config: object) -> set[int]:
    """The layers that must pass a sliding window to their attention, by a transformers text configuration."""
    kinds = getattr(config, "layer_types", None) or ()
    return set() if getattr(config, "sliding_window", None) is None else {i for i, kind in enumerate(kinds) if kind == _WINDOWED}


AttentionInterface.register(IMPLEMENTATION, paged_attention_forward)
