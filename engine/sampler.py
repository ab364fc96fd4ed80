"""From logits and what each request asks to one token per request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..fsm_cache.mask import Mask, write_masks
from .kernels.masked_sample import LogitEdits, RowStatus, SampleResult, SampleSettings, masked_sample
from .kernels.masked_sample.philox import uniforms
from .kernels.masked_sample.reference import unpack
from .request import SamplingParams
from .row_edits import EditArrays


@dataclass(frozen=True, kw_only=True)
class SampleRow:
    """What one row of logits is sampled with.

    Attributes:
        seed: of the request, 64 bits.
        position: index of the token in the answer. Seed and position alone decide the draw.
        mask: the allowed tokens, or None for a free row.
        edits: penalties and biases, or None.
    """

    params: SamplingParams
    seed: int
    position: int
    mask: Mask | None = None
    edits: EditArrays | None = None


@dataclass(frozen=True, kw_only=True)
class SampledToken:
    """The outcome of one row; token and log-probabilities mean something only when the status is SAMPLED."""

    token_id: int
    logprob: float
    status: RowStatus
    top: tuple[tuple[int, float], ...] = ()


class Sampler:
    """Samples the rows of a step on the device of their logits."""

    def __init__(self, num_tokens: int):
        self._num_tokens = num_tokens
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
        top = {index: _top(logits[index], settings, index, row.params.logprobs) for index, row in enumerate(rows) if row.params.logprobs}
        return _tokens(result, top)

    def settings(self, rows: Sequence[SampleRow], device: torch.device) -> SampleSettings:
        """What rows are sampled with, on the device of their logits. Masks are valid until the next call."""

        def column(values: list, dtype: torch.dtype) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype).to(device, non_blocking=True)

        seeds = np.array([row.seed for row in rows], np.uint64)
        positions = np.array([row.position for row in rows], np.uint32)
        return SampleSettings(
            masks=torch.from_numpy(self._masks(rows)).to(device, non_blocking=True),
            constrained=column([row.mask is not None for row in rows], torch.bool),
            temperatures=column([0.0 if row.params.greedy else row.params.temperature for row in rows], torch.float32),
            min_ps=column([row.params.min_p for row in rows], torch.float32),
            top_ks=column([min(row.params.top_k, self._num_tokens) for row in rows], torch.int32),
            top_ps=column([row.params.top_p for row in rows], torch.float32),
            typical_ps=column([row.params.typical_p for row in rows], torch.float32),
            uniforms=torch.from_numpy(uniforms(seeds, positions)).to(device, non_blocking=True),
            edits=_edits(rows, device),
        )

    def _masks(self, rows: Sequence[SampleRow]) -> np.ndarray:
        """Masks [R, W], those of the constrained rows written all at once; the others hold anything. Valid until the next call."""
        if len(self._masks_memory) < len(rows):
            self._masks_memory = np.zeros((len(rows), self._masks_memory.shape[1]), np.int32)
        masks = self._masks_memory[: len(rows)]
        write_masks([row.mask for row in rows], masks)
        return masks


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
    if settings.constrained[row]:
        logits = logits.masked_fill(~unpack(settings.masks[row], logits.shape[0]), -torch.inf)
    logprobs, token_ids = logits.log_softmax(-1).topk(min(count, logits.shape[0]))
    pairs = zip(token_ids.tolist(), logprobs.tolist(), strict=True)
    return tuple((token_id, logprob) for token_id, logprob in pairs if logprob > -np.inf)


def _tokens(result: SampleResult, top: Mapping[int, tuple[tuple[int, float], ...]]) -> list[SampledToken]:
    columns = zip(result.token_ids.tolist(), result.logprobs.tolist(), result.statuses.tolist(), strict=True)
    return [
        SampledToken(token_id=token_id, logprob=logprob, status=RowStatus(status), top=top.get(index, ()))
        for index, (token_id, logprob, status) in enumerate(columns)
    ]
