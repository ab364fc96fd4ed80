from __future__ import annotations

import numpy as np
import pytest
import torch

from formcast.engine.kernels.paged_attention import (
    NO_WINDOW,
    AttentionBatch,
    AttentionScale,
    LayerCache,
    Span,
    paged_attention,
    reference,
    spans,
)

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
}
SHAPES = [
    {"heads": 6, "kv_heads": 2, "dim": 8},
    {"heads": 1, "kv_heads": 1, "dim": 3},
    {"heads": 4, "kv_heads": 4, "dim": 24},
    {"heads": 9, "kv_heads": 3, "dim": 64, "value_dim": 40},
]


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("chunks", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_float32_agrees_with_the_reference(scale, chunks, shape):
    queries, keys, values, cache, batch = case(chunks, **shape)
    actual = paged_attention(queries, keys, values, cache, batch, scale)
    expected = reference.attend(queries, cache, batch, scale)
    torch.testing.assert_close(actual, expected, atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize("scale", SCALES[::2], ids=str)
@pytest.mark.parametrize("chunks", BATCHES.values(), ids=BATCHES)
def test_bfloat16_agrees_with_the_reference(scale, chunks):
    queries, keys, values, cache, batch = case(chunks, dtype=torch.bfloat16)
    actual = paged_attention(queries, keys, values, cache, batch, scale)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual.float(), reference.attend(queries, cache, batch, scale), atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_version_stores_the_same(dtype):
    results = []
    for write in (reference.write, spans.write, None):
        queries, keys, values, cache, batch = case(BATCHES["mixed"], dtype=dtype)
        if write is None:
            paged_attention(queries, keys, values, cache, batch, SCALES[0])
        else:
            write(keys, values, cache, batch)
        results.append((cache.keys.nan_to_num(99), cache.values.nan_to_num(99)))
    for keys, values in results[1:]:
        assert torch.equal(keys, results[0][0]) and torch.equal(values, results[0][1])


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_dense_version_agrees_with_the_reference(scale):
    queries, keys, values, cache, batch = case(BATCHES["mixed"])
    spans.write(keys, values, cache, batch)
    out = torch.cat([spans.attend(queries[s.row_start : s.row_stop], cache, batch, scale, s) for s in batch.spans])
    torch.testing.assert_close(out, reference.attend(queries, cache, batch, scale), atol=2e-6, rtol=2e-5)


def test_strided_inputs_as_models_give_them():
    queries, keys, values, cache, batch = case(BATCHES["decode"])
    expected = paged_attention(queries, keys, values, cache, batch, SCALES[0])
    q, k, v = (tensor.transpose(0, 1).contiguous().transpose(0, 1) for tensor in (queries, keys, values))
    assert torch.equal(paged_attention(q, k, v, cache, batch, SCALES[0]), expected)


def test_a_decoding_row_is_the_same_alone_and_in_a_batch():
    queries, keys, values, cache, batch = case(BATCHES["mixed"], heads=9, kv_heads=3, dim=64, value_dim=64)
    together = paged_attention(queries, keys, values, cache, batch, SCALES[0])
    alone = AttentionBatch(
        block_tables=batch.block_tables[:1],
        row_sequences=batch.row_sequences[:1],
        positions=batch.positions[:1],
        spans=batch.spans[:1],
    )
    assert torch.equal(paged_attention(queries[:1], keys[:1], values[:1], cache, alone, SCALES[0])[0], together[0])


def test_extreme_scores_do_not_overflow():
    queries, keys, values, cache, batch = case(BATCHES["decode"])
    scale = AttentionScale(scaling=1e4)
    actual = paged_attention(queries, keys, values, cache, batch, scale)
    torch.testing.assert_close(actual, reference.attend(queries, cache, batch, scale), atol=1e-4, rtol=1e-3)


def test_the_fast_exponential_is_accurate():
    from formcast.engine.kernels.cpu_math import exp_negative

    points = np.concatenate([-np.geomspace(1e-6, 86.9, 500), [0.0]]).astype(np.float32)
    actual = np.array([exp_negative(point) for point in points])
    np.testing.assert_allclose(actual, np.exp(points.astype(np.float64)), rtol=3e-7)
    assert exp_negative(np.float32(-100)) == 0 and exp_negative(np.float32(-np.inf)) == 0


def test_no_window_is_longer_than_any_context():
    assert np.iinfo(np.int32).max == NO_WINDOW
