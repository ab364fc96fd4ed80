"""Beam search itself: which beginnings are continued and which ones are answers. Plain Python: no tensors, no model.

B. Lowerre, "The HARPY speech recognition system" (1976); scores by length as in Y. Wu et al., "Google's neural machine translation
system" (2016), with the plain power of the length instead of their formula, as transformers has it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Candidate(NamedTuple):
    """A token that may follow a beam.

    Attributes:
        logprob: its own, given all before it.
    """

    token_id: int
    logprob: float


class Hypothesis:
    """A beginning of an answer, or a whole one: a token behind another hypothesis.

    Attributes:
        logprob: of all its tokens together.
        num_tokens: how many these are.
    """

    __slots__ = ("logprob", "num_tokens", "parent", "token_id")

    def __init__(self, parent: Hypothesis | None = None, token_id: int = -1, logprob: float = 0.0):
        self.parent = parent
        self.token_id = token_id
        self.logprob = logprob
        self.num_tokens = 0 if parent is None else parent.num_tokens + 1

    def token_ids(self) -> list[int]:
        """Its tokens in order."""
        tokens: list[int] = []
        node = self
        while node.parent is not None:
            tokens.append(node.token_id)
            node = node.parent
        return tokens[::-1]


@dataclass(frozen=True, kw_only=True)
class Finished:
    """An answer.

    Attributes:
        score: its log-probability divided by the power of its length.
        ended: whether an end token is its last one; else it is as long as may be.
    """

    hypothesis: Hypothesis
    score: float
    ended: bool


class Survivor(NamedTuple):
    """A beam of the next step: that of index `parent`, continued."""

    parent: int
    hypothesis: Hypothesis


class BeamSearch:
    """The beams of one prompt, all of the same length.

    Args:
        width: most beams at a time, and most answers.
        max_tokens: most tokens of an answer.
        length_penalty: exponent of the length by which the log-probability of an answer is divided. Above 0 longer answers gain.
        end_ids: tokens that end an answer.

    Attributes:
        beams: the live ones, likeliest first; none once the search is over.
    """

    def __init__(self, width: int, *, max_tokens: int, length_penalty: float, end_ids: frozenset[int]):
        self._width = width
        self._max_tokens = max_tokens
        self._length_penalty = length_penalty
        self._end_ids = end_ids
        self._answers: list[Finished] = []
        self.beams: list[Hypothesis] = [Hypothesis()]

    @property
    def num_candidates(self) -> int:
        """So many of the likeliest tokens of each beam are enough: if all end tokens come first everywhere, `width` others are left."""
        return self._width * max(2, 1 + len(self._end_ids))

    @property
    def answers(self) -> list[Finished]:
        """The best so far, best first."""
        return sorted(self._answers, key=lambda answer: -answer.score)

    def advance(self, candidates: Sequence[Iterable[Candidate]]) -> list[Survivor]:
        """One token more.

        Only what is among the `width` likeliest may become an answer: the end of a beam that others have left behind is none.

        Args:
            candidates: for each beam the tokens that may follow, or the `num_candidates` likeliest of them.

        Returns:
            The beams of the next step; none if the search is over.
        """
        pool = heapq.nsmallest(self.num_candidates, self._continued(candidates))
        survivors: list[Survivor] = []
        for rank, (_, parent, token_id, logprob) in enumerate(pool):
            hypothesis = Hypothesis(self.beams[parent], token_id, logprob)
            ended = token_id in self._end_ids
            if ended or hypothesis.num_tokens >= self._max_tokens:
                if rank < self._width:
                    self._answers.append(Finished(hypothesis=hypothesis, score=self._score(hypothesis), ended=ended))
            elif len(survivors) < self._width:
                survivors.append(Survivor(parent, hypothesis))
        self._answers = self.answers[: self._width]
        if survivors and self._is_settled(survivors[0].hypothesis):
            survivors = []
        self.beams = [survivor.hypothesis for survivor in survivors]
        return survivors

    def _continued(self, candidates: Sequence[Iterable[Candidate]]) -> Iterable[tuple[float, int, int, float]]:
        """(order, beam, token, log-probability of the whole) of everything that may come next."""
        for index, (beam, following) in enumerate(zip(self.beams, candidates, strict=True)):
            for token_id, logprob in following:
                whole = beam.logprob + logprob
                yield -whole, index, token_id, whole

    def _is_settled(self, best: Hypothesis) -> bool:
        """Whether no beam is likely to become better than the answers there are: none would, if it ended now."""
        return len(self._answers) == self._width and self._score(best) <= self._answers[-1].score

    def _score(self, hypothesis: Hypothesis) -> float:
        return hypothesis.logprob / hypothesis.num_tokens**self._length_penalty
