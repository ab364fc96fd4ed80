"""Paged attention of long chunks: gather the keys of one sequence, then a dense kernel. Runs on any device."""

from __future__ import annotations

import torch

from .layout import AttentionBatch, AttentionScale, LayerCache, Span


def write(keys: torch.Tensor, values: torch.Tensor, cache: LayerCache, batch: AttentionBatch) -> None:
    """Stores keys [T, Hkv, D] and values [T, Hkv, Dv] at the rows' positions."""
    positions = batch.positions.long()
    blocks = batch.block_tables[batch.row_sequences.long(), positions // cache.block_size].long()
    offsets = positions % cache.block_size
    cache.keys[blocks, :, offsets] = keys.to(cache.keys.dtype)
    cache.values[blocks, :, offsets] = values.to(cache.values.dtype)


def attend(queries: torch.Tensor, cache: LayerCache, batch: AttentionBatch, scale: AttentionScale, span: Span) -> torch.Tensor:
    """Attention of one span's queries [L, H, D] over its cached keys -> [L, H, Dv], dtype of the queries.

    Keys before the first query's window are not gathered.
    """
    first_block = max(0, span.context_len + 1 - scale.window) // cache.block_size
    first_key = first_block * cache.block_size
    blocks = batch.block_tables[span.sequence, first_block : -(-span.num_keys // cache.block_size)].long()
    num_keys = span.num_keys - first_key
    query = queries.transpose(0, 1).unsqueeze(0)  # [1, H, L, D]
    key = _gather(cache.keys, blocks, num_keys).to(query.dtype)
    value = _gather(cache.values, blocks, num_keys).to(query.dtype)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    if span.context_len == 0 and span.num_rows <= scale.window and scale.softcap is None:
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale.scaling)
    else:
        mask = _mask(batch, span, scale.window, first_key, query.dtype)
        out = _masked(query, key, value, mask, scale)
    return out[0].transpose(0, 1)


def _gather(cache: torch.Tensor, blocks: torch.Tensor, num_keys: int) -> torch.Tensor:
    """[num_blocks, Hkv, block_size, D] -> [1, Hkv, num_keys, D]"""
    taken = cache[blocks].transpose(0, 1)
    return taken.reshape(1, taken.shape[0], -1, taken.shape[3])[:, :, :num_keys]


def _mask(batch: AttentionBatch, span: Span, window: int, first_key: int, dtype: torch.dtype) -> torch.Tensor:
    """Additive mask [L, num_keys - first_key]: 0 where a query may look, -inf elsewhere."""
    mask = batch.masks.get((span, window))
    if mask is None:
        device = batch.block_tables.device
        queries = torch.arange(span.context_len, span.num_keys, device=device).unsqueeze(1)
        keys = torch.arange(first_key, span.num_keys, device=device).unsqueeze(0)
        hidden = (keys > queries) | (keys <= queries - window)
        mask = batch.masks[span, window] = torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, -torch.inf)
    return mask


def _masked(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, scale: AttentionScale) -> torch.Tensor:
    if scale.softcap is None:
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale.scaling)
    scores = (query @ key.transpose(2, 3)).float() * scale.scaling
    scores = scale.softcap * torch.tanh(scores / scale.softcap) + mask
    return scores.softmax(dim=-1).to(query.dtype) @ value
