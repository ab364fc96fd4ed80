"""Attention over keys and values that lie in blocks: the one entry for all devices."""

from __future__ import annotations

import torch

from . import spans as dense
from .layout import NO_WINDOW, AttentionBatch, AttentionScale, LayerCache, Span

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
        from . import triton

        triton.write(keys, values, cache, batch)
        return triton.attend(queries, cache, batch, scale)
    return _on_cpu(queries, keys, values, cache, batch, scale)


def _on_cpu(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, cache: LayerCache, batch: AttentionBatch, scale: AttentionScale
) -> torch.Tensor:
    from . import cpu

    cpu.write(keys, values, cache, batch)
    num_rows = queries.shape[0]
    num_short = num_rows
    if batch.spans[-1].num_rows >= _SHORT:  # they are ordered by length
        num_short = next(span.row_start for span in batch.spans if span.num_rows >= _SHORT)
    parts = [cpu.attend(queries[:num_short], cache, batch, scale)] if num_short else []
    if num_short < num_rows:
        parts += [
            dense.attend(queries[span.row_start : span.row_stop], cache, batch, scale, span)
            for span in batch.spans
            if span.row_start >= num_short
        ]
    return parts[0].contiguous() if len(parts) == 1 else torch.cat(parts)


def _check(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, cache: LayerCache, batch: AttentionBatch) -> None:
    num_rows, num_heads, head_dim = queries.shape
    _, num_kv_heads, block_size, key_dim = cache.keys.shape
    assert keys.shape == (num_rows, num_kv_heads, key_dim) and key_dim == head_dim, (queries.shape, keys.shape, cache.keys.shape)
    assert values.shape == (num_rows, num_kv_heads, cache.values.shape[3]) and cache.values.shape[2] == block_size
    assert num_heads % num_kv_heads == 0 and cache.keys.is_contiguous() and cache.values.is_contiguous()
    assert batch.row_sequences.shape == batch.positions.shape == (num_rows,) and batch.spans[-1].row_stop == num_rows
