"""Attention over keys and values that lie in blocks: the one entry for all devices."""

from __future__ import annotations

from dataclasses import replace

import torch

from . import spans as dense
from .layout import NO_WINDOW, AttentionBatch, AttentionScale, LayerCache, Span

__all__ = ["NO_WINDOW", "AttentionBatch", "AttentionScale", "LayerCache", "Span", "paged_attention"]


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
    block_size = cache.block_size
    long = [span for span in batch.spans if span.num_rows > block_size]  # the last ones: spans are ordered by length
    num_short = long[0].row_start if long else queries.shape[0]
    parts = [cpu.attend(queries[:num_short], cache, batch, scale)] if num_short else []
    for span in long:
        head, cut = _without_tail(span, block_size)
        parts.append(dense.attend(queries[head.row_start : cut], cache, batch, scale, head))
        parts.append(cpu.attend(queries[cut : span.row_stop], cache, batch, scale, first_row=cut))
    return parts[0].contiguous() if len(parts) == 1 else torch.cat(parts)


def _without_tail(span: Span, block_size: int) -> tuple[Span, int]:
    """A long span up to its last block, and the row where that begins.

    The rows in the last block, which the prefix cache never holds, take the way of short chunks: so they come out the same, to the last
    bit, whether the rows before them were computed just now or found in the cache.
    """
    last_block = (span.num_keys - 1) // block_size * block_size
    cut = span.row_start + last_block - span.context_len
    return replace(span, row_stop=cut), cut


def _check(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, cache: LayerCache, batch: AttentionBatch) -> None:
    num_rows, num_heads, head_dim = queries.shape
    _, num_kv_heads, block_size, key_dim = cache.keys.shape
    assert keys.shape == (num_rows, num_kv_heads, key_dim) and key_dim == head_dim, (queries.shape, keys.shape, cache.keys.shape)
    assert values.shape == (num_rows, num_kv_heads, cache.values.shape[3]) and cache.values.shape[2] == block_size
    assert num_heads % num_kv_heads == 0 and cache.keys.is_contiguous() and cache.values.is_contiguous()
    assert batch.row_sequences.shape == batch.positions.shape == (num_rows,) and batch.spans[-1].row_stop == num_rows
