from __future__ import annotations

import torch

from formcast.engine.batch import build
from formcast.engine.kernels.paged_attention import Span
from formcast.engine.step_plan import Chunk, StepPlan


def test_a_plan_becomes_one_flat_row_ordered_by_chunk_length():
    plan = StepPlan(
        chunks=(
            Chunk(request_id="prompt", token_ids=(10, 11, 12), start=0, block_ids=(5,), samples=False),
            Chunk(request_id="decode", token_ids=(20,), start=17, block_ids=(2, 9), samples=True),
        )
    )
    batch = build(plan, torch.device("cpu"))
    assert batch.token_ids.tolist() == [[20, 10, 11, 12]]
    assert batch.positions.tolist() == [[17, 0, 1, 2]]
    assert batch.sample_rows.tolist() == [0] and [chunk.request_id for chunk in batch.sampling] == ["decode"]
    assert batch.attention.block_tables.tolist() == [[2, 9], [5, 0]]
    assert batch.attention.row_sequences.tolist() == [0, 1, 1, 1]
    assert batch.attention.positions.tolist() == [17, 0, 1, 2]
    assert batch.attention.spans == (
        Span(sequence=0, row_start=0, row_stop=1, context_len=17),
        Span(sequence=1, row_start=1, row_stop=4, context_len=0),
    )


def test_a_plan_may_sample_nothing():
    plan = StepPlan(chunks=(Chunk(request_id="a", token_ids=(1, 2), start=0, block_ids=(0,), samples=False),))
    batch = build(plan, torch.device("cpu"))
    assert batch.sample_rows.shape == (0,) and batch.sample_rows.dtype == torch.int64
