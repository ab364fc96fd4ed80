"""A decoder layer without the generality of transformers': two norms, two blocks, four products."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...attention import AttentionStep
from ...kernels.paged_attention import AttentionScale
from .linear import MergedLinear
from ...kernels.row_math import Activation, HeadLayout, NormWeights, add, add_and_norm, gate, norm, rotate


@dataclass(frozen=True, kw_only=True)
class LayerParts:
    """What a decoder layer consists of.

    Attributes:
        norm_input, norm_middle: before the attention and before the feed-forward block.
        norm_attention, norm_feed_forward: of what these blocks add to the rows, where the architecture has such norms.
        head_norms: of the queries and keys of each head.
        qkv: [H + 2 * Hkv] heads of D from C; gate_up: twice the inner size.
    """

    heads: HeadLayout
    activation: Activation
    norm_input: NormWeights
    norm_middle: NormWeights
    norm_attention: NormWeights | None
    norm_feed_forward: NormWeights | None
    head_norms: tuple[NormWeights, NormWeights] | None
    qkv: MergedLinear
    out: MergedLinear
    gate_up: MergedLinear
    down: MergedLinear


class FusedDecoderLayer(torch.nn.Module):
    """Stands in for a decoder layer of transformers, with the arguments that a model's loop over its layers passes.

    Args:
        parts: of the original layer.
        layer: its number in the cache.
        scale: how it attends.
    """

    def __init__(self, parts: LayerParts, layer: int, scale: AttentionScale):
        super().__init__()
        self._parts = parts
        self._layer = layer
        self._scale = scale
        self.qkv, self.out, self.gate_up, self.down = parts.qkv, parts.out, parts.gate_up, parts.down

    def forward(
        self,
        hidden_states: torch.Tensor,
        *,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        formcast_step: AttentionStep,
        **_: object,
    ) -> torch.Tensor:
        """hidden_states [1, T, C] -> [1, T, C]

        Args:
            position_embeddings: cosines and sines, each [1, T, R].
        """
        parts = self._parts
        rows = hidden_states[0].to(torch.float32, copy=True)
        heads = self.qkv(norm(rows, parts.norm_input))
        cos, sin = (table[0].float().contiguous() for table in position_embeddings)
        rotate(heads, parts.heads, cos, sin, parts.head_norms)
        attended = self.out(self._attend(heads, formcast_step))
        inner = self.gate_up(add_and_norm(rows, attended, parts.norm_attention, parts.norm_middle))
        add(rows, self.down(gate(inner, parts.activation)), parts.norm_feed_forward)
        return rows.to(hidden_states.dtype).unsqueeze(0)

    def _attend(self, rows: torch.Tensor, step: AttentionStep) -> torch.Tensor:
        """Merged heads [T, (H + 2 * Hkv) * D] -> [T, H * D]"""
        layout, num_rows = self._parts.heads, rows.shape[0]
        heads = rows.view(num_rows, -1, layout.head_dim)
        queries, keys, values = heads.split((layout.num_heads, layout.num_kv_heads, layout.num_kv_heads), dim=1)
        return step.attend(self._layer, queries, keys, values, self._scale).reshape(num_rows, -1)
