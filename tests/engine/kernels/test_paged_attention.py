from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from attention_cases import BATCHES, SCALES, SHAPES, case

from formcast.engine.kernels.paged_attention import NO_WINDOW, AttentionBatch, AttentionScale, paged_attention, reference, spans


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


@pytest.mark.parametrize("num_rows", [33, 47, 48])
def test_the_rows_behind_a_cached_prefix_are_the_same_as_without_it(num_rows):
    queries, keys, values, cache, batch = case([(0, num_rows)])
    whole = paged_attention(queries, keys, values, cache, batch, SCALES[0])
    cached = (num_rows - 1) // cache.block_size * cache.block_size
    rest = AttentionBatch(
        block_tables=batch.block_tables,
        row_sequences=batch.row_sequences[cached:],
        positions=batch.positions[cached:],
        spans=(replace(batch.spans[0], row_stop=num_rows - cached, context_len=cached),),
    )
    again = paged_attention(queries[cached:], keys[cached:], values[cached:], cache, rest, SCALES[0])
    assert torch.equal(again, whole[cached:])


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
