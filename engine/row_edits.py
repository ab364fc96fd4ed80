"""Changes to the logits of one request: penalties, biases, and tokens that are held back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .request import SamplingParams

_MIN_CAPACITY = 16


class EditArrays(NamedTuple):
    """The tokens [N] whose logits are changed.

    Attributes:
        token_ids: int32, each once.
        counts: int32, how often each is in the answer.
        seen: whether it is in the answer, or in the prompt where that counts.
        biases: float32.
    """

    token_ids: np.ndarray
    counts: np.ndarray
    seen: np.ndarray
    biases: np.ndarray

    def copy(self) -> EditArrays:
        return EditArrays(*(array.copy() for array in self))


class RowEdits:
    """The tokens of one request whose logits are changed, kept up to date as the answer grows.

    Amortised O(1) per generated token.
    """

    def __init__(self, params: SamplingParams, prompt_token_ids: Sequence[int]):
        self._penalised = params.has_penalties
        self._entries: dict[int, int] = {}
        self._memory = EditArrays(
            np.zeros(_MIN_CAPACITY, np.int32),
            np.zeros(_MIN_CAPACITY, np.int32),
            np.zeros(_MIN_CAPACITY, np.bool_),
            np.zeros(_MIN_CAPACITY, np.float32),
        )
        self._own_biases: Mapping[int, float] = params.logit_bias
        for token_id, bias in params.logit_bias.items():
            self._set_bias(token_id, bias)
        if params.repetition_penalty != 1:
            for token_id in prompt_token_ids:
                entry = self._entry(token_id)
                self._memory.seen[entry] = True

    def append(self, token_id: int) -> None:
        """The answer grew by a token."""
        if self._penalised:
            entry = self._entry(token_id)
            self._memory.counts[entry] += 1
            self._memory.seen[entry] = True

    def forbid(self, token_ids: frozenset[int]) -> None:
        """These tokens cannot be sampled until `allow`."""
        for token_id in token_ids:
            self._set_bias(token_id, -np.inf)

    def allow(self, token_ids: frozenset[int]) -> None:
        """Takes `forbid` back."""
        for token_id in token_ids:
            self._set_bias(token_id, self._own_biases.get(token_id, 0.0))

    def arrays(self) -> EditArrays:
        """As the answer is now. Valid until it grows."""
        size = len(self._entries)
        return EditArrays(*(array[:size] for array in self._memory))

    def along(self, token_ids: Sequence[int]) -> list[EditArrays]:
        """As the answer is now, and as it would be after each of some tokens."""
        if not token_ids or not self._penalised:
            return [self.arrays()] * (1 + len(token_ids))
        states = [self.arrays().copy()]
        were_seen: list[bool | None] = []
        for token_id in token_ids:
            entry = self._entries.get(token_id)
            were_seen.append(None if entry is None else bool(self._memory.seen[entry]))
            self.append(token_id)
            states.append(self.arrays().copy())
        for token_id, was_seen in zip(reversed(token_ids), reversed(were_seen), strict=True):
            self._take_back(token_id, was_seen)
        return states

    def _take_back(self, token_id: int, was_seen: bool | None) -> None:
        """Undoes the last `append`, before which the token was seen, or was not, or had no entry (None)."""
        entry = self._entries[token_id]
        self._memory.counts[entry] -= 1
        self._memory.seen[entry] = bool(was_seen)
        if was_seen is None:
            del self._entries[token_id]

    def _set_bias(self, token_id: int, bias: float) -> None:
        entry = self._entry(token_id)
        self._memory.biases[entry] = bias

    def _entry(self, token_id: int) -> int:
        """The token's index in the arrays. They may be other arrays afterwards."""
        entry = self._entries.setdefault(token_id, len(self._entries))
        if entry == len(self._memory.token_ids):
            self._memory = EditArrays(*(np.concatenate((array, np.zeros_like(array))) for array in self._memory))
        self._memory.token_ids[entry] = token_id
        return entry
