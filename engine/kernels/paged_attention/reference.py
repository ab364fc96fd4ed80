"""Paged attention as it is defined, one row at a time."""

from __future__ import annotations

import torch

from .layout import AttentionBatch, AttentionScale, LayerCache


def write(keys: torch.Tensor, values: torch.Tensor, cache: LayerCache, batch: AttentionBatch) -> None:
    """Stores keys [T, Hkv, D] and values [T, Hkv, Dv] at the rows' positions."""
    for row, (sequence, position) in enumerate(zip(batch.row_sequences.tolist(), batch.positions.tolist(), strict=True)):
        block = int(batch.block_tables[sequence, position // cache.block_size])
        cache.keys[block, :, position % cache.block_size] = keys[row].to(cache.keys.dtype)
        cache.values[block, :, position % cache.block_size] = values[row].to(cache.values.dtype)


def attend(queries: torch.Tensor, cache: LayerCache, batch: AttentionBatch, scale: AttentionScale) -> torch.Tensor:
    """Attention of queries [T, H, D] over the cache -> [T, H, Dv] float32."""
    rows = []
    for query, sequence, position in zip(queries.float(), batch.row_sequences.tolist(), batch.positions.tolist(), strict=True):
        first = max(0, position + 1 - scale.window)
        slots = torch.arange(first, position + 1)
        blocks = batch.block_tables[sequence].long()[slots // cache.block_size]
        groups = query.shape[0] // cache.keys.shape[1]
        keys = cache.keys[blocks, :, slots % cache.block_size].float().repeat_interleave(groups, dim=1)  # [n, H, D]
        values = cache.values[blocks, :, slots % cache.block_size].float().repeat_interleave(groups, dim=1)
        scores = torch.einsum("hd,nhd->hn", query, keys) * scale.scaling
        if scale.softcap is not None:
            scores = scale.softcap * torch.tanh(scores / scale.softcap)
        rows.append(torch.einsum("hn,nhd->hd", scores.softmax(dim=-1), values))
    return torch.stack(rows)
