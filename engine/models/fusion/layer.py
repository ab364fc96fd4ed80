"""A decoder layer without the generality of transformers': two norms, two blocks, four products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ...attention import current_step
from ...kernels.paged_attention import AttentionScale
from ...kernels.row_math import Activation, HeadLayout, NormWeights, add, add_and_norm, gate, norm, rotate
from .linear import LinearWeights


@dataclass(frozen=True, kw_only=True)
class LayerDesign:
    """How a layer computes.

    Attributes:
        norm_input, norm_middle: before the attention and before the feed-forward block.
        norm_attention, norm_feed_forward: of what these blocks add to the rows, where the architecture has such norms.
        head_norms: of the queries and of the keys of each head, where it has them.
    """

    heads: HeadLayout
    activation: Activation
    norm_input: NormWeights
    norm_middle: NormWeights
    norm_attention: NormWeights | None
    norm_feed_forward: NormWeights | None
    head_norms: tuple[NormWeights, NormWeights] | None


class LayerWeights(NamedTuple):
    """What a layer multiplies with, for rows of C, heads of D and an inner size of I.

    Attributes:
        qkv: [(H + 2 * Hkv) * D, C]
        out: [C, H * D]
        gate_up: [2 * I, C]
        down: [C, I]
    """

    qkv: LinearWeights
    out: LinearWeights
    gate_up: LinearWeights
    down: LinearWeights


class FusedDecoderLayer(torch.nn.Module):
    """Stands in for a decoder layer of transformers, with the arguments that a model's loop over its layers passes.

    Args:
        layer: its number in the cache.
        scale: how it attends.
        linear: makes a module of rows [T, K] -> [T, N], both float32, from weights.

    Attributes:
        is_last: whether nothing comes after it that looks at rows which don't sample, so that it computes no more than their keys and
            values. Their hidden states are 0 then.
    """

    def __init__(
        self,
        design: LayerDesign,
        weights: LayerWeights,
        *,
        layer: int,
        scale: AttentionScale,
        linear: Callable[[LinearWeights], torch.nn.Module],
    ):
        super().__init__()
        self._design = design
        self._layer = layer
        self._scale = scale
        self.is_last = False
        self.qkv = linear(weights.qkv)
        self.out = linear(weights.out)
        self.gate_up = linear(weights.gate_up)
        self.down = linear(weights.down)

    def forward(
        self,
        hidden_states: torch.Tensor,
        *,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        **_: object,
    ) -> torch.Tensor:
        """hidden_states [1, T, C] -> [1, T, C]

        Args:
            position_embeddings: cosines and sines, each [1, T, R].
        """
        design = self._design
        rows = hidden_states[0].to(torch.float32, copy=True)
        heads = self.qkv(norm(rows, design.norm_input))
        cos, sin = (table[0].float().contiguous() for table in position_embeddings)
        rotate(heads, design.heads, cos, sin, design.head_norms)
        attended = self._attend(heads)
        kept = current_step().sample_rows if self.is_last else None
        if kept is None or 2 * len(kept) > len(rows):
            return self._feed_forward(rows, attended).to(hidden_states.dtype).unsqueeze(0)
        out = torch.zeros_like(hidden_states)
        if len(kept):
            out[0, kept] = self._feed_forward(rows[kept], attended[kept]).to(hidden_states.dtype)
        return out

    def _feed_forward(self, rows: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """What the layer makes of rows [T, C], which are changed, and what they attended to: [T, H * D] -> [T, C]"""
        design = self._design
        inner = self.gate_up(add_and_norm(rows, self.out(attended), design.norm_attention, design.norm_middle))
        add(rows, self.down(gate(inner, design.activation)), design.norm_feed_forward)
        return rows

    def _attend(self, rows: torch.Tensor) -> torch.Tensor:
        """Merged heads [T, (H + 2 * Hkv) * D] -> [T, H * D]"""
        layout, num_rows = self._design.heads, rows.shape[0]
        heads = rows.view(num_rows, -1, layout.head_dim)
        queries, keys, values = heads.split((layout.num_heads, layout.num_kv_heads, layout.num_kv_heads), dim=1)
        return current_step().attend(self._layer, queries, keys, values, self._scale).reshape(num_rows, -1)
