"""One answer in the making: what its next token may be, what its text is so far, and whether it has ended."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..fsm_cache.mask import NO_ROW, Mask
from .constraint import Allowed, Constraint
from .detokenizer import Detokenizer, StopStrings, TokenTable
from .drafts.drafter import Drafter, Drafts
from .request import Beam, FinishReason, FormcastError, Request
from .row_edits import EditArrays, RowEdits
from .sampler import SampleRow

_WORD_BITS = 32
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class EndTokens:
    """The tokens with which a model ends an answer.

    Attributes:
        num_tokens: V, the width of the logits.
    """

    token_ids: frozenset[int]
    num_tokens: int


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether and why an answer ends: `reason` is None while it goes on. A beam search ends with all its answers."""

    reason: FinishReason | None = None
    stop_reason: str | int | None = None
    error: FormcastError | None = None
    beams: tuple[Beam, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What some tokens came to.

    Attributes:
        num_tokens: how many of them belong to the answer; fewer than were taken where it ended before.
    """

    text: str
    verdict: Verdict
    num_tokens: int


@dataclass(frozen=True, kw_only=True)
class _Taken:
    """A token that was taken and not read yet.

    Attributes:
        held: whether it could not end the answer.
        at_length: whether it is the last one that may be.
        ends_grammar: whether its grammar leaves nothing but the end after it; None where the mask that tells is still to be made.
    """

    token_id: int
    held: bool
    at_length: bool
    ends_grammar: bool | None


class Generation:
    """The state of one open request, apart from its blocks.

    Tokens are taken first, which is what the next batch waits for, and read later, while that one computes: their text, stop strings, and
    the next mask.

    Attributes:
        request: what was asked.
        num_generated: tokens of the answer so far.
        scheduled_time: when it first took part in a step, in seconds on the monotonic clock; None before.
        num_cached: prompt tokens that came from the prefix cache.
        num_drafts, num_accepted, num_forced: drafts that were verified, those that became tokens of the answer, and how many of
            these were forced text.
    """

    def __init__(self, request: Request, *, seed: int, max_tokens: int, ends: EndTokens, table: TokenTable):
        params = request.params
        self.request = request
        self.num_generated = 0
        self.scheduled_time: float | None = None
        self.num_cached = 0
        self.num_drafts = self.num_accepted = self.num_forced = 0
        self._seed = seed
        self._max_tokens = max_tokens
        self._ends = ends
        self._own_end_ids = frozenset() if params.ignore_eos else ends.token_ids
        self._stop_ids = self._own_end_ids | frozenset(params.stop_token_ids)
        self._held_ids = self._stop_ids | ends.token_ids if params.min_tokens else frozenset()
        self._held_mask = _mask_of(self._held_ids, ends.num_tokens)
        self._detokenizer = Detokenizer(table, skip_special_tokens=params.skip_special_tokens)
        self._stop_strings = StopStrings(params.stop, include=params.include_stop_str_in_output)
        self._edits = self._row_edits()
        self._constraint: Constraint | None = None
        self._drafter: Drafter | None = None
        self._drafts = Drafts()
        self._unread: deque[_Taken] = deque()

    @property
    def request_id(self) -> str:
        return self.request.request_id

    @property
    def sequence_id(self) -> str:
        """Its name in the scheduler."""
        return self.request.request_id

    @property
    def sequence_ids(self) -> tuple[str]:
        """Its names in the scheduler."""
        return (self.sequence_id,)

    def note_scheduled(self, now: float) -> None:
        """It takes part in a step that begins now."""
        if self.scheduled_time is None:
            self.scheduled_time = now

    def constrain(self, constraint: Constraint) -> None:
        """Binds the answer to a grammar, before its first token."""
        self._constraint = constraint

    def draft_with(self, drafter: Drafter) -> None:
        """Lets `propose` guess, before the first token."""
        self._drafter = drafter

    def propose(self, limit: int) -> tuple[int, ...]:
        """At most `limit` guesses of the next tokens, for `rows`."""
        self._drafts = Drafts()
        constraint = self._constraint
        if constraint is not None:
            constraint.forget_ahead()
        limit = min(limit, self._max_tokens - self.num_generated - 1)
        if self._drafter is not None and limit > 0 and not self._is_held:
            try:
                drafts = self._drafter.propose(None if constraint is None else constraint.cursor, limit)
                if constraint is not None:
                    constraint.go_ahead(drafts.token_ids)
                self._drafts = drafts
            except Exception:
                # Something is wrong ahead, such as a budget that will be used up. If the answer gets there, it will end there.
                _log.debug("no drafts for %s", self.request_id, exc_info=True)
        return self._drafts.token_ids

    def rows(self, drafts: Sequence[int]) -> list[SampleRow]:
        """How the next token is sampled, and the one after each draft, in case that the drafts up to there are right.

        Args:
            drafts: nothing, or what `propose` gave for this step.
        """
        edits = [None] * (1 + len(drafts)) if self._edits is None else self._edits.along(drafts)
        return [self._row(index, edits[index]) for index in range(1 + len(drafts))]

    def count_drafts(self, num_drafts: int, num_accepted: int) -> None:
        """So many drafts were verified, and so many of these, from the first on, became tokens of the answer."""
        self.num_drafts += num_drafts
        self.num_accepted += num_accepted
        self.num_forced += sum(self._drafts.forced[:num_accepted])

    def _row(self, index: int, edits: EditArrays | None) -> SampleRow:
        if self._constraint is None:
            allowed = Allowed()
        elif self._is_held:
            allowed = Allowed(mask=_without(self._constraint.mask(), self._held_mask))
        else:
            allowed = self._constraint.allowed(index)
        position = self.num_generated + index
        return SampleRow(
            params=self.request.params, seed=self._seed, position=position, mask=allowed.mask, state=allowed.state, edits=edits
        )

    def take(self, token_id: int, target: int | None = None) -> bool:
        """Adds a token to the answer; whether it is known already to be the last one.

        Args:
            target: see `Constraint.take`.

        Raises:
            GrammarError: the grammar's budget is used up.
            GenerationError: the grammar refused the token.
        """
        held = self._is_held
        ends_grammar = self._advance(token_id, target)
        self.num_generated += 1
        if self._edits is not None:
            self._edits.append(token_id)
            if held and not self._is_held:
                self._edits.allow(self._held_ids)
        at_length = self.num_generated >= self._max_tokens
        self._unread.append(_Taken(token_id=token_id, held=held, at_length=at_length, ends_grammar=ends_grammar))
        return bool(ends_grammar) or at_length or (token_id in self._stop_ids and not held)

    def read(self) -> Progress:
        """What the tokens came to that were taken since the last call, up to the one that ends the answer.

        The end of a grammar comes first, then end tokens and stop ids, stop strings, and the length.

        Raises:
            GrammarError: the grammar's budget is used up.
        """
        texts: list[str] = []
        verdict = Verdict()
        num_tokens = 0
        while self._unread and verdict.reason is None:
            text, verdict = self._read(self._unread.popleft())
            texts.append(text)
            num_tokens += 1
        self.num_generated -= len(self._unread)
        self._unread.clear()
        return Progress(text="".join(texts), verdict=verdict, num_tokens=num_tokens)

    @property
    def _is_held(self) -> bool:
        """Whether the next token may not end the answer yet."""
        return self.num_generated < self.request.params.min_tokens

    def _read(self, taken: _Taken) -> tuple[str, Verdict]:
        token_id = taken.token_id
        if self._ends_grammar(taken):
            text = "" if token_id in self._ends.token_ids else self._detokenizer.push(token_id)
            return self._stop_strings.flush() + text + self._detokenizer.flush(), Verdict(reason="stop")
        if token_id in self._stop_ids and not taken.held:
            stop_reason = None if token_id in self._own_end_ids else token_id
            text = self._stop_strings.push(self._detokenizer.flush()).text + self._stop_strings.flush()
            return text, Verdict(reason="stop", stop_reason=stop_reason)
        text = self._detokenizer.push(token_id)
        if taken.at_length:
            text += self._detokenizer.flush()
        verdict = Verdict(reason="length") if taken.at_length else Verdict()
        if taken.held:
            return text, verdict
        scan = self._stop_strings.push(text)
        if scan.stop is not None:
            return scan.text, Verdict(reason="stop", stop_reason=scan.stop)
        return scan.text + self._stop_strings.flush() if taken.at_length else scan.text, verdict

    def _ends_grammar(self, taken: _Taken) -> bool:
        """Whether the grammar leaves nothing but the end after a token. Makes the next mask, where it was not known ahead."""
        if taken.ends_grammar is not None or self._constraint is None:
            return bool(taken.ends_grammar)
        return self._constraint.settle()

    def _advance(self, token_id: int, target: int | None) -> bool | None:
        """Moves on in the grammar; see `_Taken.ends_grammar`."""
        constraint = self._constraint
        if constraint is None:
            if self._drafter is not None:
                self._drafter.learn(token_id, None)
            return False
        if self._drafter is None:
            return constraint.take(token_id, target)
        place = constraint.cursor.place
        ends_grammar = constraint.take(token_id, target)
        self._drafter.learn(token_id, place)
        return ends_grammar

    def _row_edits(self) -> RowEdits | None:
        params = self.request.params
        forbidden = self._held_ids if self.request.grammar is None else frozenset()
        if not (params.has_penalties or params.logit_bias or forbidden):
            return None
        edits = RowEdits(params, self.request.prompt_token_ids)
        edits.forbid(forbidden)
        return edits


def _mask_of(token_ids: Iterable[int], num_tokens: int) -> np.ndarray:
    """[ceil(V / 32)] int32 with the bits of these tokens."""
    mask = np.zeros(-(-num_tokens // _WORD_BITS), np.uint32)
    for token_id in token_ids:
        mask[token_id // _WORD_BITS] |= np.uint32(1 << (token_id % _WORD_BITS))
    return mask.view(np.int32)


def _without(mask: Mask, removed: np.ndarray) -> Mask:
    """The mask without some tokens, or unchanged if nothing would be left."""
    rest = mask.row(len(removed)) & ~removed
    return Mask.of(rest, NO_ROW, rest.nbytes) if rest.any() else mask
