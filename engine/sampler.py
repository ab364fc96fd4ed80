"""From logits and what each request asks to one token per request."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..fsm_cache.mask import Mask, write_masks
from .kernels.fsm_step import FREE
from .kernels.masked_sample import FREE_ROW, LogitEdits, RowStatus, SampleResult, SampleSettings, masked_sample
from .kernels.masked_sample.philox import uniforms
from .kernels.masked_sample.reference import unpack
from .request import SamplingParams
from .residency import Residency, ResidentRows
from .row_edits import EditArrays


@dataclass(frozen=True, kw_only=True)
class SampleRow:
    """What one row of logits is sampled with.

    Attributes:
        seed: of the request, 64 bits.
        position: index of the token in the answer. Seed and position alone decide the draw.
        mask: the allowed tokens, or None where `state` says or the row is free.
        state: a resident state that says.
        edits: penalties and biases, or None.
        num_candidates: of a beam: so many of the likeliest tokens are asked for, see `candidates`; 0 for other rows.
    """

    params: SamplingParams
    seed: int
    position: int
    mask: Mask | None = None
    state: int | None = None
    edits: EditArrays | None = None
    num_candidates: int = 0


@dataclass(frozen=True, kw_only=True)
class SampledToken:
    """The outcome of one row; token and log-probabilities mean something only when the status is SAMPLED.

    Attributes:
        top: the likeliest tokens and their log-probabilities, likeliest first, as many as were asked for.
        target: the resident state behind the token, where the row had one and that is known.
    """

    token_id: int
    logprob: float
    status: RowStatus
    top: tuple[tuple[int, float], ...] = ()
    target: int | None = None


class Sampler:
    """Samples the rows of a step on the device of their logits.

    Args:
        num_tokens: V
        residency: what the states of rows are in, if any have one.
    """

    def __init__(self, num_tokens: int, residency: Residency | None = None):
        self._num_tokens = num_tokens
        self._residency = residency
        self._masks_memory = np.zeros((0, -(-num_tokens // 32)), np.int32)

    def sample(self, logits: torch.Tensor, rows: Sequence[SampleRow]) -> list[SampledToken]:
        """One token per row; see `draw`."""
        return self.draw(logits, self.settings(rows, logits.device), rows)

    def draw(self, logits: torch.Tensor, settings: SampleSettings, rows: Sequence[SampleRow]) -> list[SampledToken]:
        """One token per row.

        Args:
            logits: [R, V] float32, contiguous; may be changed.
            settings: those of `rows`.
            rows: R rows.
        """
        result = masked_sample(logits, settings)
        targets = [None] * len(rows)
        if self._residency is not None and any(row.state is not None for row in rows):
            stepper = ResidentRows(self._residency, [row.state for row in rows], logits.device)
            settings, result = stepper.retry_held(logits, settings, result)
            targets = stepper.targets(result)
        top = {index: _top(logits[index], settings, index, row.params.logprobs) for index, row in enumerate(rows) if row.params.logprobs}
        top |= _candidates(logits, settings, rows)
        return _tokens(result, top, targets)

    def settings(self, rows: Sequence[SampleRow], device: torch.device) -> SampleSettings:
        """What rows are sampled with, on the device of their logits. Masks are valid until the next call."""

        def column(values: list, dtype: torch.dtype) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype).to(device, non_blocking=True)

        seeds = np.array([row.seed for row in rows], np.uint64)
        positions = np.array([row.position for row in rows], np.uint32)
        masks, mask_rows = self._masks(rows, device)
        return SampleSettings(
            masks=masks,
            mask_rows=mask_rows,
            temperatures=column([0.0 if row.params.greedy else row.params.temperature for row in rows], torch.float32),
            min_ps=column([row.params.min_p for row in rows], torch.float32),
            top_ks=column([min(row.params.top_k, self._num_tokens) for row in rows], torch.int32),
            top_ps=column([row.params.top_p for row in rows], torch.float32),
            typical_ps=column([row.params.typical_p for row in rows], torch.float32),
            uniforms=torch.from_numpy(uniforms(seeds, positions)).to(device, non_blocking=True),
            edits=_edits(rows, device),
        )

    def _masks(self, rows: Sequence[SampleRow], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Masks [M, W], and the one of each row. Valid until the next call."""
        if self._residency is not None:
            pool = self._residency.pool
            direct = torch.tensor([FREE_ROW if row.mask is None else pool.row(row.mask) for row in rows], dtype=torch.int32)
            states = torch.tensor([FREE if row.state is None else row.state for row in rows], dtype=torch.int32)
            mask_rows = self._residency.mask_rows(states.to(device), direct.to(device))
            return self._residency.tables().masks, mask_rows
        masks = [row.mask for row in rows if row.mask is not None]
        if len(self._masks_memory) < len(masks):
            self._masks_memory = np.zeros((len(rows), self._masks_memory.shape[1]), np.int32)
        memory = self._masks_memory[: len(masks)]
        write_masks(masks, memory)
        numbers = itertools.count()
        mask_rows = torch.tensor([FREE_ROW if row.mask is None else next(numbers) for row in rows], dtype=torch.int32)
        return torch.from_numpy(memory).to(device, non_blocking=True), mask_rows.to(device, non_blocking=True)


def _edits(rows: Sequence[SampleRow], device: torch.device) -> LogitEdits | None:
    arrays = [row.edits for row in rows if row.edits is not None]
    sizes = [0 if row.edits is None else len(row.edits.token_ids) for row in rows]
    if not any(sizes):
        return None
    joined = (np.concatenate(parts) for parts in zip(*arrays, strict=True))
    token_ids, counts, seen, biases = (torch.from_numpy(part).to(device, non_blocking=True) for part in joined)
    params = [row.params for row in rows]
    return LogitEdits(
        offsets=torch.from_numpy(np.cumsum([0, *sizes], dtype=np.int32)).to(device, non_blocking=True),
        token_ids=token_ids,
        counts=counts,
        seen=seen,
        biases=biases,
        repetition=torch.tensor([p.repetition_penalty for p in params], dtype=torch.float32).to(device, non_blocking=True),
        frequency=torch.tensor([p.frequency_penalty for p in params], dtype=torch.float32).to(device, non_blocking=True),
        presence=torch.tensor([p.presence_penalty for p in params], dtype=torch.float32).to(device, non_blocking=True),
    )


def _top(logits: torch.Tensor, settings: SampleSettings, row: int, count: int) -> tuple[tuple[int, float], ...]:
    """The likeliest tokens of a row [V] after edits and mask, with their log-probabilities."""
    mask_row = int(settings.mask_rows[row])
    if mask_row != FREE_ROW:
        logits = logits.masked_fill(~unpack(settings.masks[mask_row], logits.shape[0]), -torch.inf)
    logprobs, token_ids = logits.log_softmax(-1).topk(min(count, logits.shape[0]))
    pairs = zip(token_ids.tolist(), logprobs.tolist(), strict=True)
    return tuple((token_id, logprob) for token_id, logprob in pairs if logprob > -np.inf)


def _candidates(logits: torch.Tensor, settings: SampleSettings, rows: Sequence[SampleRow]) -> dict[int, tuple[tuple[int, float], ...]]:
    """The likeliest allowed tokens of the rows [R] of beams, with the log-probabilities that they have among all tokens."""
    beams = [index for index, row in enumerate(rows) if row.num_candidates]
    if not beams:
        return {}
    where = torch.tensor(beams, device=logits.device)
    temperatures = torch.where(settings.temperatures[where] > 0, settings.temperatures[where], 1.0)
    logprobs = (logits[where] / temperatures.unsqueeze(1)).log_softmax(-1)  # [B, V]
    mask_rows = settings.mask_rows[where]
    masked = (mask_rows >= 0).nonzero().squeeze(1)
    if len(masked):
        allowed = unpack(settings.masks[mask_rows[masked]], logits.shape[1])
        logprobs[masked] = logprobs[masked].masked_fill(~allowed, -torch.inf)
    count = min(logits.shape[1], max(rows[index].num_candidates for index in beams))
    values, token_ids = (tensor.tolist() for tensor in logprobs.topk(count))
    return {
        index: tuple(pair for pair in zip(ids[: rows[index].num_candidates], own, strict=False) if pair[1] != -np.inf)
        for index, ids, own in zip(beams, token_ids, values, strict=True)
    }


def _tokens(result: SampleResult, top: Mapping[int, tuple[tuple[int, float], ...]], targets: Sequence[int | None]) -> list[SampledToken]:
    columns = zip(result.token_ids.tolist(), result.logprobs.tolist(), result.statuses.tolist(), targets, strict=True)
    return [
        SampledToken(token_id=token_id, logprob=logprob, status=RowStatus(status), top=top.get(index, ()), target=target)
        for index, (token_id, logprob, status, target) in enumerate(columns)
    ]
