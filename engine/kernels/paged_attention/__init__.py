"""Attention over keys and values that lie in blocks: the one entry for all devices."""

from __future__ import annotations

import torch

from . import spans as dense
from .layout import NO_WINDOW, AttentionBatch, AttentionScale, LayerCache, Span, host_bits

__all__ = ["NO_WINDOW", "AttentionBatch", "AttentionScale", "LayerCache", "Span", "paged_attention"]

_SHORT = 16
"""On a CPU, chunks of fewer rows than this go through the paged kernel, longer ones through a dense one."""


def paged_attention(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, cache: LayerCache, batch: AttentionBatch, scale: AttentionScale
) -> torch.Tensor:
    """Stores the rows' keys and values, then attends over the cache.

    Args:
        queries: [T, H, D], H a multiple of Hkv.
        keys: [T, Hkv, D]
        values: [T, Hkv, Dv]
        cache: written at the rows' positions.

    Returns:
        [T, H, Dv] in the dtype of the queries, contiguous.
    """
    _check(queries, keys, values, cache, batch)
    if queries.device.type != "cpu":
        dense.write(keys, values, cache, batch)
        return torch.cat([dense.attend(queries[s.row_start : s.row_stop], cache, batch, scale, s) for s in batch.spans])
    return _on_cpu(queries, keys, values, cache, batch, scale)


def _on_cpu(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, cache: LayerCache, batch: AttentionBatch, scale: AttentionScale
) -> torch.Tensor:
    from . import cpu

    stored = cache.keys.dtype
    cpu.write(host_bits(keys.to(stored)), host_bits(values.to(stored)), *cache.on_host, *batch.on_host)
    num_short = next((span.row_start for span in batch.spans if span.num_rows >= _SHORT), queries.shape[0])
    parts = [_attend_short(queries[:num_short], cache, batch, scale)] if num_short else []
    parts += [
        dense.attend(queries[span.row_start : span.row_stop], cache, batch, scale, span)
        for span in batch.spans
        if span.row_start >= num_short
    ]
    return parts[0].contiguous() if len(parts) == 1 else torch.cat(parts)


def _attend_short(queries: torch.Tensor, cache: LayerCache, batch: AttentionBatch, scale: AttentionScale) -> torch.Tensor:
    """The first rows of a batch, from the cache -> [N, H, Dv] in the dtype of the queries."""
    from . import cpu

    num_rows = queries.shape[0]
    tables, row_sequences, positions = batch.on_host
    out = torch.empty(num_rows, queries.shape[1], cache.values.shape[3], dtype=torch.float32)
    rows = queries.float().contiguous().numpy()
    cpu.attend(rows, *cache.on_host, tables, row_sequences[:num_rows], positions[:num_rows], scale, out.numpy())
    return out.to(queries.dtype)


def _check(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, cache: LayerCache, batch: AttentionBatch) -> None:
    num_rows, num_heads, head_dim = queries.shape
    _, num_kv_heads, block_size, key_dim = cache.keys.shape
    assert keys.shape == (num_rows, num_kv_heads, key_dim) and key_dim == head_dim, (queries.shape, keys.shape, cache.keys.shape)
    assert values.shape == (num_rows, num_kv_heads, cache.values.shape[3]) and cache.values.shape[2] == block_size
    assert num_heads % num_kv_heads == 0 and cache.keys.is_contiguous() and cache.values.is_contiguous()
    assert batch.row_sequences.shape == batch.positions.shape == (num_rows,) and batch.spans[-1].row_stop == num_rows
