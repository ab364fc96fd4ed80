"""From logits and what each request asks to one token per request."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..fsm_cache.mask import Mask, write_masks
from .kernels.masked_sample import FREE_ROW, LogitEdits, RowStatus, SampleResult, SampleSettings, masked_sample
from .kernels.masked_sample.philox import uniforms
from .kernels.masked_sample.reference import unpack
from .request import SamplingParams

_MIN_CAPACITY = 16


class RowEdits:
    """The tokens of one request whose logits are changed, kept up to date as the answer grows.

    Amortised O(1) per generated token.
    """

    def __init__(self, params: SamplingParams, prompt_token_ids: Sequence[int]):
        self._penalised = params.has_penalties
        self._entries: dict[int, int] = {}
        self._token_ids = np.zeros(_MIN_CAPACITY, np.int32)
        self._counts = np.zeros(_MIN_CAPACITY, np.int32)
        self._seen = np.zeros(_MIN_CAPACITY, np.bool_)
        self._biases = np.zeros(_MIN_CAPACITY, np.float32)
        self._own_biases: Mapping[int, float] = params.logit_bias
        for token_id, bias in params.logit_bias.items():
            self._set_bias(token_id, bias)
        if params.repetition_penalty != 1:
            for token_id in prompt_token_ids:
                entry = self._entry(token_id)
                self._seen[entry] = True

    def __len__(self) -> int:
        return len(self._entries)

    def followed_by(self, token_id: int) -> RowEdits:
        """What these would be if the answer grew by a token."""
        if not self._penalised:
            return self
        grown = copy.copy(self)
        grown._entries = dict(self._entries)
        for name in ("_token_ids", "_counts", "_seen", "_biases"):
            setattr(grown, name, getattr(self, name).copy())
        grown.append(token_id)
        return grown

    def append(self, token_id: int) -> None:
        """The answer grew by a token."""
        if self._penalised:
            entry = self._entry(token_id)
            self._counts[entry] += 1
            self._seen[entry] = True

    def forbid(self, token_ids: frozenset[int]) -> None:
        """These tokens cannot be sampled until `allow`."""
        for token_id in token_ids:
            self._set_bias(token_id, -np.inf)

    def allow(self, token_ids: frozenset[int]) -> None:
        """Takes `forbid` back."""
        for token_id in token_ids:
            self._set_bias(token_id, self._own_biases.get(token_id, 0.0))

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Token ids, counts, seen flags and biases, each [len(self)]."""
        size = len(self._entries)
        return self._token_ids[:size], self._counts[:size], self._seen[:size], self._biases[:size]

    def _set_bias(self, token_id: int, bias: float) -> None:
        entry = self._entry(token_id)
        self._biases[entry] = bias

    def _entry(self, token_id: int) -> int:
        """The token's index in the arrays. They may be other arrays afterwards."""
        entry = self._entries.setdefault(token_id, len(self._entries))
        if entry == len(self._token_ids):
            self._token_ids, self._counts, self._seen, self._biases = (
                np.concatenate((array, np.zeros_like(array))) for array in (self._token_ids, self._counts, self._seen, self._biases)
            )
        self._token_ids[entry] = token_id
        return entry


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
    edits: RowEdits | None = None


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
        """One token per row.

        Args:
            logits: [R, V] float32, contiguous; may be changed.
            rows: R rows.
        """
        settings = self._settings(rows, logits.device)
        result = masked_sample(logits, settings)
        top = {index: _top(logits[index], settings, index, row.params.logprobs) for index, row in enumerate(rows) if row.params.logprobs}
        return _tokens(result, top)

    def _settings(self, rows: Sequence[SampleRow], device: torch.device) -> SampleSettings:
        def column(values: list, dtype: torch.dtype) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype).to(device)

        seeds = np.array([row.seed for row in rows], np.uint64)
        positions = np.array([row.position for row in rows], np.uint32)
        return SampleSettings(
            masks=torch.from_numpy(self._masks(rows)).to(device),
            mask_rows=column([FREE_ROW if row.mask is None else index for index, row in enumerate(rows)], torch.int32),
            temperatures=column([0.0 if row.params.greedy else row.params.temperature for row in rows], torch.float32),
            min_ps=column([row.params.min_p for row in rows], torch.float32),
            top_ks=column([min(row.params.top_k, self._num_tokens) for row in rows], torch.int32),
            top_ps=column([row.params.top_p for row in rows], torch.float32),
            typical_ps=column([row.params.typical_p for row in rows], torch.float32),
            uniforms=torch.from_numpy(uniforms(seeds, positions)).to(device),
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
    sizes = [0 if row.edits is None else len(row.edits) for row in rows]
    if not any(sizes):
        return None
    arrays = [row.edits.arrays() for row in rows if row.edits is not None]
    token_ids, counts, seen, biases = (torch.from_numpy(np.concatenate(parts)).to(device) for parts in zip(*arrays, strict=True))
    params = [row.params for row in rows]
    return LogitEdits(
        offsets=torch.from_numpy(np.cumsum([0, *sizes], dtype=np.int32)).to(device),
        token_ids=token_ids,
        counts=counts,
        seen=seen,
        biases=biases,
        repetition=torch.tensor([p.repetition_penalty for p in params], dtype=torch.float32).to(device),
        frequency=torch.tensor([p.frequency_penalty for p in params], dtype=torch.float32).to(device),
        presence=torch.tensor([p.presence_penalty for p in params], dtype=torch.float32).to(device),
    )


def _top(logits: torch.Tensor, settings: SampleSettings, row: int, count: int) -> tuple[tuple[int, float], ...]:
    """The likeliest tokens of a row [V] after edits and mask, with their log-probabilities."""
    mask_row = int(settings.mask_rows[row])
    if mask_row != FREE_ROW:
        logits = logits.masked_fill(~unpack(settings.masks[mask_row], logits.shape[0]), -torch.inf)
    logprobs, token_ids = logits.log_softmax(-1).topk(min(count, logits.shape[0]))
    pairs = zip(token_ids.tolist(), logprobs.tolist(), strict=True)
    return tuple((token_id, logprob) for token_id, logprob in pairs if logprob > -np.inf)


def _tokens(result: SampleResult, top: Mapping[int, tuple[tuple[int, float], ...]]) -> list[SampledToken]:
    columns = zip(result.token_ids.tolist(), result.logprobs.tolist(), result.statuses.tolist(), strict=True)
    return [
        SampledToken(token_id=token_id, logprob=logprob, status=RowStatus(status), top=top.get(index, ()))
        for index, (token_id, logprob, status) in enumerate(columns)
    ]
