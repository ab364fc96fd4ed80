"""The mask pool of an engine beside its logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from ..fsm_cache.mask_pool import MASK, NONE, MaskPool
from .kernels.fsm_step import FREE, FsmTables, fsm_step
from .kernels.masked_sample import MISSING_ROW, RowStatus, SampleResult, SampleSettings, masked_sample


class Residency:
    """Tensors with what a pool holds.

    Args:
        shared: the tensors are the arrays of the pool themselves. Otherwise they are copies on the device, and what has changed is
            written there before they are used.
    """

    def __init__(self, pool: MaskPool, device: torch.device, *, shared: bool):
        self.pool = pool
        self._shared = shared
        arrays = (torch.from_numpy(array) for array in (pool.rows, pool.states, pool.steps))
        masks, states, steps = (array if shared else array.clone().to(device) for array in arrays)
        self._tables = FsmTables(masks=masks, states=states, steps=steps)

    def tables(self) -> FsmTables:
        """What the pool holds now."""
        if not self._shared:
            self._copy_changes()
        return self._tables

    def mask_rows(self, states: torch.Tensor, otherwise: torch.Tensor) -> torch.Tensor:
        """The mask row of each resident state [N] int32, MISSING_ROW if it was evicted; where there is no state, that of `otherwise`."""
        rows = self.tables().states[states.clamp(min=0), MASK]
        rows = torch.where(rows == NONE, MISSING_ROW, rows)
        return torch.where(states < 0, otherwise, rows)

    def _copy_changes(self) -> None:
        sources = (self.pool.rows, self.pool.states, self.pool.steps)
        targets = (self._tables.masks, self._tables.states, self._tables.steps)
        for indices, source, target in zip(self.pool.changes(), sources, targets, strict=True):
            if len(indices):
                where = torch.from_numpy(indices).to(target.device)
                target.index_copy_(0, where, torch.from_numpy(source[indices]).to(target.device))


class ResidentRows:
    """The rows of one step that have a resident state.

    Args:
        states: [R]: of each row, None for those that have none.
    """

    def __init__(self, residency: Residency, states: Sequence[int | None], device: torch.device):
        self._residency = residency
        self._slots = states
        self._states = torch.tensor([FREE if state is None else state for state in states], dtype=torch.int32).to(device)

    def retry_held(self, logits: torch.Tensor, settings: SampleSettings, result: SampleResult) -> tuple[SampleSettings, SampleResult]:
        """Fills in the masks that were missing and samples the rows that were held for them. Raises LimitError."""
        held = [index for index, status in enumerate(result.statuses.tolist()) if status == RowStatus.HELD]
        if not held:
            return settings, result
        for index in held:
            slot = self._slots[index]
            assert slot is not None, "only rows of states are held"
            self._residency.pool.fill(slot)
        is_held = result.statuses == RowStatus.HELD
        mask_rows = self._residency.mask_rows(self._states, settings.mask_rows)
        masks = self._residency.tables().masks
        # What was sampled before is held now, so that nothing is edited twice.
        again = masked_sample(logits, replace(settings, masks=masks, mask_rows=torch.where(is_held, mask_rows, MISSING_ROW)))
        merged = SampleResult(
            token_ids=torch.where(is_held, again.token_ids, result.token_ids),
            logprobs=torch.where(is_held, again.logprobs, result.logprobs),
            statuses=torch.where(is_held, again.statuses, result.statuses),
        )
        return replace(settings, masks=masks, mask_rows=mask_rows), merged

    def targets(self, result: SampleResult) -> list[int | None]:
        """The resident state behind the token of each row, None where it is not known. Good until the next step."""
        step = fsm_step(self._states, result.token_ids, self._residency.tables())
        targets = [state if state >= 0 else None for state in step.states.tolist()]
        self._residency.pool.use_all([target for target in targets if target is not None])
        return targets
