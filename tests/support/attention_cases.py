"""Random batches for the versions of paged attention."""

from __future__ import annotations

import torch

from formcast.engine.kernels.paged_attention import AttentionBatch, AttentionScale, LayerCache, Span

BLOCK = 16


def case(chunks, *, heads=6, kv_heads=2, dim=8, value_dim=8, dtype=torch.float32, seed=0):
    """Queries, keys, values, a filled cache and the batch for chunks of (context length, rows)."""
    g = torch.Generator().manual_seed(seed)
    chunks = sorted(chunks, key=lambda chunk: chunk[1])
    needed = [-(-(context + rows) // BLOCK) for context, rows in chunks]
    order = torch.randperm(sum(needed) + 3, generator=g).tolist()
    tables = torch.zeros(len(chunks), max(needed), dtype=torch.int32)
    batch_spans, sequences, positions, start = [], [], [], 0
    for index, ((context, rows), count) in enumerate(zip(chunks, needed, strict=True)):
        tables[index, :count] = torch.tensor([order.pop() for _ in range(count)])
        batch_spans.append(Span(sequence=index, row_start=start, row_stop=start + rows, context_len=context))
        sequences += [index] * rows
        positions += range(context, context + rows)
        start += rows
    cache = LayerCache(
        keys=torch.full((sum(needed) + 3, kv_heads, BLOCK, dim), float("nan"), dtype=dtype),
        values=torch.full((sum(needed) + 3, kv_heads, BLOCK, value_dim), float("nan"), dtype=dtype),
    )
    for span, table in zip(batch_spans, tables.tolist(), strict=True):
        for position in range(span.context_len):
            cache.keys[table[position // BLOCK], :, position % BLOCK] = torch.randn(kv_heads, dim, generator=g).to(dtype)
            cache.values[table[position // BLOCK], :, position % BLOCK] = torch.randn(kv_heads, value_dim, generator=g).to(dtype)
    queries, keys = (torch.randn(start, n, dim, generator=g).to(dtype) for n in (heads, kv_heads))
    values = torch.randn(start, kv_heads, value_dim, generator=g).to(dtype)
    batch = AttentionBatch(
        block_tables=tables,
        row_sequences=torch.tensor(sequences, dtype=torch.int32),
        positions=torch.tensor(positions, dtype=torch.int32),
        spans=tuple(batch_spans),
    )
    return queries, keys, values, cache, batch


SCALES = [
    AttentionScale(scaling=0.3),
    AttentionScale(scaling=0.5, window=1),
    AttentionScale(scaling=0.5, window=20),
    AttentionScale(scaling=1.0, softcap=2.0),
    AttentionScale(scaling=0.3, window=17, softcap=5.0),
]
BATCHES = {
    "one token": [(0, 1)],
    "decode": [(0, 1), (15, 1), (16, 1), (100, 1)],
    "short chunks": [(0, 15), (3, 2), (31, 5)],
    "fresh prompts": [(0, 16), (0, 40)],
    "mixed": [(50, 1), (7, 3), (0, 33), (20, 30)],
    "long and short": [(5, 1), (63, 1), (64, 2), (190, 3), (10, 20)],
}
SHAPES = [
    {"heads": 6, "kv_heads": 2, "dim": 8},
    {"heads": 1, "kv_heads": 1, "dim": 3},
    {"heads": 4, "kv_heads": 4, "dim": 24},
    {"heads": 9, "kv_heads": 3, "dim": 64, "value_dim": 40},
]
