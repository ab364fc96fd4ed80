"""A request that is answered by beam search: its beams, each at its own place in the grammar, and what becomes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..constraint import Allowed, Constraint
from ..detokenizer import Detokenizer, TokenTable
from ..executor import Outcome
from ..failures import failure, no_token
from ..generation import EndTokens, Progress, Verdict
from ..kernels.masked_sample import RowStatus
from ..request import Beam, BeamSearchParams, FormcastError, Request
from ..sampler import SampleRow
from .search import BeamSearch, Candidate, Finished


@dataclass(frozen=True, kw_only=True)
class Moves:
    """What becomes of the sequences of beams, in this order.

    Attributes:
        dropped: end without an answer.
        forks: (sequence, name of a new one that is like it).
        tokens: (sequence, what follows).
    """

    dropped: Sequence[str]
    forks: Sequence[tuple[str, str]]
    tokens: Sequence[tuple[str, int]]


class BeamRow:
    """One beam, as the executor sees it.

    Attributes:
        group: the request that it belongs to.
        sequence_id: its name in the scheduler.
        candidates: what may follow; None while that is not computed.
    """

    def __init__(self, group: BeamGroup, sequence_id: str, constraint: Constraint | None):
        self.group = group
        self.sequence_id = sequence_id
        self.constraint = constraint
        self.candidates: list[Candidate] | None = None

    def propose(self, limit: int) -> tuple[int, ...]:
        """No drafts: beams look at all that may follow."""
        return ()

    def note_scheduled(self, now: float) -> None:
        """It takes part in a step that begins now."""
        if self.group.scheduled_time is None:
            self.group.scheduled_time = now

    def rows(self, drafts: Sequence[int]) -> list[SampleRow]:
        """How its candidates are found."""
        group = self.group
        allowed = Allowed() if self.constraint is None else self.constraint.allowed(0)
        return [
            SampleRow(
                params=group.request.params, seed=0, position=0, mask=allowed.mask, state=allowed.state, num_candidates=group.num_candidates
            )
        ]

    def take(self, outcome: Outcome) -> None:
        """Its candidates are there, or the search has failed."""
        try:
            if outcome.error is not None:
                raise outcome.error
            (token,) = outcome.tokens
            if token.status is not RowStatus.SAMPLED:
                raise no_token(self.group.num_steps, token.status)
            if not token.top or any(math.isnan(logprob) for _, logprob in token.top):  # of a token that the mask keeps out
                raise no_token(self.group.num_steps, RowStatus.NOT_A_NUMBER)
            self.candidates = [Candidate(*pair) for pair in token.top]
        except Exception as error:
            self.group.error = failure(error)

    def fork(self, sequence_id: str) -> BeamRow:
        """A beam at the same place."""
        return BeamRow(self.group, sequence_id, None if self.constraint is None else self.constraint.fork())

    def follow(self, token_id: int) -> None:
        """The beam grew. Raises GrammarError where the grammar's budget is used up."""
        self.candidates = None
        if self.constraint is not None and self.constraint.take(token_id, None) is None:
            self.constraint.settle()


class BeamGroup:
    """The state of one open request that is answered by beam search. It looks like a `Generation` from outside.

    Each beam is a sequence of its own to the scheduler. A step of the search is taken once the candidates of all beams are known, in
    whatever order and however many steps of the engine these took.

    Attributes:
        scheduled_time: when it first took part in a step, in seconds on the monotonic clock; None before.
        num_cached: prompt tokens that came from the prefix cache.
        num_steps: tokens that each beam has.
        num_generated: tokens of all answers, once there are some.
        error: why the search failed, if it did.
    """

    num_drafts = num_accepted = num_forced = 0

    def __init__(self, request: Request, beams: BeamSearchParams, *, max_tokens: int, ends: EndTokens, table: TokenTable):
        end_ids = ends.token_ids if request.grammar is not None or not beams.ignore_eos else frozenset()
        self.request = request
        self.scheduled_time: float | None = None
        self.num_cached = self.num_steps = self.num_generated = 0
        self.error: FormcastError | None = None
        self._table = table
        self._search = BeamSearch(beams.beam_width, max_tokens=max_tokens, length_penalty=beams.length_penalty, end_ids=end_ids)
        self._rows = [BeamRow(self, request.request_id, None)]
        self._num_named = 0

    @property
    def request_id(self) -> str:
        return self.request.request_id

    @property
    def rows(self) -> list[BeamRow]:
        """The live beams."""
        return self._rows

    @property
    def sequence_ids(self) -> list[str]:
        """Their names in the scheduler."""
        return [row.sequence_id for row in self._rows]

    @property
    def num_candidates(self) -> int:
        return self._search.num_candidates

    @property
    def is_ready(self) -> bool:
        """Whether the candidates of all beams are known."""
        return all(row.candidates is not None for row in self._rows)

    @property
    def is_over(self) -> bool:
        """Whether the search has its answers, or failed."""
        return self.error is not None or not self._search.beams

    def constrain(self, constraint: Constraint) -> None:
        """Binds all answers to a grammar, before the first token."""
        self._rows[0].constraint = constraint

    def advance(self) -> Moves:
        """A step of the search, where it is ready. Then `follow` is to be called."""
        parents, rows, forks = self._rows, [], []
        survivors = self._search.advance([row.candidates or () for row in parents])
        taken: set[int] = set()
        for parent, _ in survivors:
            row = parents[parent]
            if parent in taken:
                row = row.fork(self._new_name())
                forks.append((parents[parent].sequence_id, row.sequence_id))
            taken.add(parent)
            rows.append(row)
        self.num_steps += 1
        self._rows = rows
        return Moves(
            dropped=[row.sequence_id for index, row in enumerate(parents) if index not in taken],
            forks=forks,
            tokens=[(row.sequence_id, beam.token_id) for row, beam in zip(rows, self._search.beams, strict=True)],
        )

    def follow(self) -> None:
        """Moves the beams on in the grammar. The search fails where its budget is used up."""
        try:
            for row, beam in zip(self._rows, self._search.beams, strict=True):
                row.follow(beam.token_id)
        except Exception as error:
            self.error = failure(error)

    def read(self) -> Progress:
        """The end of the search: that of its best answer."""
        answers = self.answers()
        self.num_generated = sum(len(answer.token_ids) for answer in answers)
        verdict = Verdict(reason=answers[0].finish_reason, beams=answers) if self.error is None and answers else Verdict()
        return Progress(text="", verdict=verdict, num_tokens=0)

    def answers(self) -> tuple[Beam, ...]:
        """What was found, best first."""
        return tuple(self._answer(answer) for answer in self._search.answers)

    def _answer(self, answer: Finished) -> Beam:
        token_ids = answer.hypothesis.token_ids()
        detokenizer = Detokenizer(self._table, skip_special_tokens=self.request.params.skip_special_tokens)
        shown = token_ids[:-1] if answer.ended else token_ids
        return Beam(
            token_ids=tuple(token_ids),
            text="".join(map(detokenizer.push, shown)) + detokenizer.flush(),
            logprob=answer.hypothesis.logprob,
            score=answer.score,
            finish_reason="stop" if answer.ended else "length",
        )

    def _new_name(self) -> str:
        self._num_named += 1
        return f"{self.request_id}\0{self._num_named}"
