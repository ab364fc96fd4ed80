"""Falcon, which has a table of attention classes of its own instead of transformers' attention interface."""

from __future__ import annotations

from typing import Any

import torch
from transformers.models.falcon import modeling_falcon

from ..attention import IMPLEMENTATION, paged_attention_forward
from ..errors import UnsupportedModel


class FalconPagedAttention(modeling_falcon.FalconAttention):
    """Falcon's attention through our hook. Rotary models only: those with alibi are refused."""

    def forward(
        self,
        hidden_states: torch.Tensor,
        alibi: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
        *arguments: Any,
        position_embeddings: tuple[torch.Tensor, torch.Tensor] | None = None,
        **keywords: Any,
    ) -> tuple[torch.Tensor, None]:
        """hidden_states [1, T, C] -> [1, T, C]"""
        if alibi is not None or position_embeddings is None:
            raise UnsupportedModel("Falcon models with alibi are not supported")
        query, key, value = self._split_heads(self.query_key_value(hidden_states))
        if self.new_decoder_architecture:
            # Each key head comes once for each query head that shares it.
            groups = self.num_heads // (self.num_kv_heads or self.num_heads)
            key, value = key[:, :, ::groups], value[:, :, ::groups]
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        query, key = modeling_falcon.apply_rotary_pos_emb(query, key, *position_embeddings)
        out, _ = paged_attention_forward(self, query, key, value, attention_mask, scaling=self.inv_norm_factor)
        return self.dense(out.flatten(2)), None


def register() -> None:
    """Makes Falcon models loadable with our attention."""
    modeling_falcon.FALCON_ATTENTION_CLASSES[IMPLEMENTATION] = FalconPagedAttention
