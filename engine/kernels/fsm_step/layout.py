"""Arguments and results of the step of token automata, shared by every version."""

from __future__ import annotations

from dataclasses import dataclass

import torch

FREE = -1
"""In place of a state: no grammar. In place of a mask row: nothing is masked."""
UNKNOWN = -2
"""In place of a state or a mask row: a fault. The host has to look it up."""


@dataclass(frozen=True, kw_only=True)
class FsmTables:
    """States of all grammars that are resident on a device; what they hold is that of `fsm_cache.mask_pool.MaskPool`.

    Attributes:
        masks: [M, ceil(V / 32)] int32: rows of bits.
        states: [S, 2] int32: for each state the row of its mask and the row of the tokens that lead back to it, -1 for none.
        steps: [B, 3, WAYS] int32: buckets of known transitions: states, tokens and target states. B is a power of two.
    """

    masks: torch.Tensor
    states: torch.Tensor
    steps: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class FsmStep:
    """Attributes:
    states: [N] int32: the state behind the token, FREE where there is no grammar, UNKNOWN where the host has to look it up.
    mask_rows: [N] int32: the row of that state's mask, FREE or UNKNOWN.
    """

    states: torch.Tensor
    mask_rows: torch.Tensor
