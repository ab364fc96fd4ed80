"""What an engine counts."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from .kv.manager import KVUsage

STEP_SIZES = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
"""Upper bounds of the sizes by which steps are counted; what is larger is counted too."""


@dataclass(frozen=True, kw_only=True)
class EngineStats:
    """What is open now, and counts since the start.

    Attributes:
        num_step_tokens: tokens computed in all steps, guesses among them.
        step_sizes: number of steps of at most so many tokens, and more than the bound before, for each bound of `STEP_SIZES`; then the
            number of larger ones.
        num_masks: masks made for constrained requests, and `mask_seconds` the time that they took.
        num_draft_tokens, num_accepted_tokens, num_forced_tokens: tokens that were guessed and verified, those of them that became
            tokens of answers, and those of these that the grammar forced.
        num_held_slots, num_unused_slots: places for a token's keys and values in blocks that requests held, and those of them without
            a token, both added up over all steps. Their quotient is the share of the KV cache that is wasted.
        model_seconds, host_seconds: time of the step loop in the model and the sampling kernel, and beside them.
    """

    num_running: int
    num_waiting: int
    num_waiting_for_grammar: int
    kv: KVUsage
    num_steps: int
    num_step_tokens: int
    step_sizes: tuple[int, ...]
    num_prompt_tokens: int
    num_cached_tokens: int
    num_generated_tokens: int
    num_draft_tokens: int
    num_accepted_tokens: int
    num_forced_tokens: int
    num_finished: int
    num_failed: int
    num_aborted: int
    num_preemptions: int
    num_held_slots: int
    num_unused_slots: int
    num_masks: int
    mask_seconds: float
    model_seconds: float
    host_seconds: float


@dataclass(kw_only=True)
class Counters:
    """Counts of `EngineStats`."""

    num_steps: int = 0
    num_step_tokens: int = 0
    step_sizes: tuple[int, ...] = (0,) * (len(STEP_SIZES) + 1)
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_generated_tokens: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    num_forced_tokens: int = 0
    num_finished: int = 0
    num_failed: int = 0
    num_aborted: int = 0
    num_preemptions: int = 0
    num_held_slots: int = 0
    num_unused_slots: int = 0

    def count_step(self, num_tokens: int) -> None:
        """A step of so many tokens is computed."""
        self.num_steps += 1
        self.num_step_tokens += num_tokens
        bucket = bisect_left(STEP_SIZES, num_tokens)
        self.step_sizes = (*self.step_sizes[:bucket], self.step_sizes[bucket] + 1, *self.step_sizes[bucket + 1 :])

    def count_end(self, reason: str | None, *, num_drafts: int, num_accepted: int, num_forced: int) -> None:
        """A request ended for a reason, after so many drafts."""
        self.num_finished += 1
        self.num_failed += reason == "error"
        self.num_aborted += reason == "abort"
        self.num_draft_tokens += num_drafts
        self.num_accepted_tokens += num_accepted
        self.num_forced_tokens += num_forced
