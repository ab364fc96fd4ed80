"""From a plan of plain ints to tensors. The only place where ints become tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .kernels.paged_attention import AttentionBatch, Span
from .step_plan import Chunk, StepPlan


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The inputs of one forward pass: T tokens in one flattened row, of which R sample.

    Attributes:
        token_ids: [1, T] int64
        positions: [1, T] int64
        sample_rows: [R] int64, the rows whose logits are needed.
        sampling: the chunks they belong to, in the same order; each owns its `num_sampled` rows.
        attention: where the keys of each row are.
        copies: [2, C] int64, blocks and the blocks that get their contents first; None where there are none.
    """

    token_ids: torch.Tensor
    positions: torch.Tensor
    sample_rows: torch.Tensor
    sampling: tuple[Chunk, ...]
    attention: AttentionBatch
    copies: torch.Tensor | None = None


def build(plan: StepPlan, device: torch.device) -> Batch:
    """The tensors of a plan with at least one chunk. Chunks are ordered by length, as paged attention wants them.

    Nothing here waits for the device: memory that is not pinned is read before an asynchronous copy of it returns.
    """
    chunks = sorted(plan.chunks, key=lambda chunk: len(chunk.token_ids))
    tokens: list[int] = []
    positions: list[int] = []
    row_sequences: list[int] = []
    sample_rows: list[int] = []
    spans: list[Span] = []
    tables = np.zeros((len(chunks), max(len(chunk.block_ids) for chunk in chunks)), np.int32)
    for index, chunk in enumerate(chunks):
        size = len(chunk.token_ids)
        spans.append(Span(sequence=index, row_start=len(tokens), row_stop=len(tokens) + size, context_len=chunk.start))
        tokens.extend(chunk.token_ids)
        positions.extend(range(chunk.start, chunk.start + size))
        row_sequences.extend([index] * size)
        tables[index, : len(chunk.block_ids)] = chunk.block_ids
        sample_rows.extend(range(len(tokens) - chunk.num_sampled, len(tokens)))
    flat_positions = torch.tensor(positions, dtype=torch.int64)
    return Batch(
        token_ids=torch.tensor(tokens, dtype=torch.int64).unsqueeze(0).to(device, non_blocking=True),
        positions=flat_positions.unsqueeze(0).to(device, non_blocking=True),
        sample_rows=torch.tensor(sample_rows, dtype=torch.int64).to(device, non_blocking=True),
        sampling=tuple(chunk for chunk in chunks if chunk.samples),
        attention=AttentionBatch(
            block_tables=torch.from_numpy(tables).to(device, non_blocking=True),
            row_sequences=torch.tensor(row_sequences, dtype=torch.int32).to(device, non_blocking=True),
            positions=flat_positions.to(device=device, dtype=torch.int32, non_blocking=True),
            spans=tuple(spans),
        ),
        copies=torch.tensor(plan.copies, dtype=torch.int64).t().to(device, non_blocking=True) if plan.copies else None,
    )
