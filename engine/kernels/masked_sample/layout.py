"""What goes into a sampling kernel and what comes out, the same for every version."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch

FREE_ROW = -1
"""In place of a mask: every token is allowed."""
MISSING_ROW = -2
"""In place of a mask: it is not known yet, so the row is held."""


class RowStatus(IntEnum):
    """Whether a row got a token."""

    SAMPLED = 0
    NO_TOKEN = 1
    """Every token is masked or impossible."""
    NOT_A_NUMBER = 2
    """A logit that the mask allows is NaN or +inf."""
    HELD = 3
    """The mask is not there: nothing was sampled, and nothing was edited."""


@dataclass(frozen=True, kw_only=True)
class LogitEdits:
    """Penalties and biases as sparse changes, N in all. Row r owns the entries `offsets[r] .. offsets[r + 1] - 1`.

    A logit x of an entry becomes, in this order: `x / repetition` if x > 0 else `x * repetition`; minus
    `frequency * count`; minus `presence` if count > 0; plus `bias`. Entries without a count and a `seen` flag take the
    bias only. A token occurs at most once in a row.

    Attributes:
        offsets: [R + 1] int32
        token_ids: [N] int32
        counts: [N] int32, how often the answer has the token.
        seen: [N] bool, whether prompt or answer has it.
        biases: [N] float32, -inf forbids.
        repetition, frequency, presence: [R] float32
    """

    offsets: torch.Tensor
    token_ids: torch.Tensor
    counts: torch.Tensor
    seen: torch.Tensor
    biases: torch.Tensor
    repetition: torch.Tensor
    frequency: torch.Tensor
    presence: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class SampleSettings:
    """How R rows of V logits are sampled.

    Attributes:
        masks: [M, ceil(V / 32)] int32; bit `t & 31` of word `t >> 5` allows token t.
        mask_rows: [R] int32: for each row the one of `masks`, FREE_ROW or MISSING_ROW.
        temperatures: [R] float32; 0 takes the likeliest token, of several the one with the lowest id.
        min_ps: [R] float32; 0 keeps all.
        top_ks: [R] int32; 0 keeps all.
        top_ps: [R] float32; 1 keeps all.
        typical_ps: [R] float32; 1 keeps all. Of the tokens left by then, those whose log-probability is nearest to its mean are kept, as
            many as it takes to hold this share of the mass (C. Meister et al., "Locally typical sampling", 2023).
        uniforms: [R] float32 in [0, 1): the token is the first at which the cumulative probability, in order of ids,
            exceeds it.
        edits: None when no row has any.
    """

    masks: torch.Tensor
    mask_rows: torch.Tensor
    temperatures: torch.Tensor
    min_ps: torch.Tensor
    top_ks: torch.Tensor
    top_ps: torch.Tensor
    typical_ps: torch.Tensor
    uniforms: torch.Tensor
    edits: LogitEdits | None = None


@dataclass(frozen=True, kw_only=True)
class SampleResult:
    """One token per row.

    Attributes:
        token_ids: [R] int32, meaningful where the status is SAMPLED.
        logprobs: [R] float32, log-probability of the token after edits and mask, before temperature and truncation.
        statuses: [R] int32, a `RowStatus`.
    """

    token_ids: torch.Tensor
    logprobs: torch.Tensor
    statuses: torch.Tensor
