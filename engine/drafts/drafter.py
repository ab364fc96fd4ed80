"""Drafts: guesses of the next tokens of one request, which the model then verifies in one pass.

A draft costs a row of the pass and never changes an answer, so what matters is how often it is right: text that the grammar forces always
is (up to how it is cut into tokens), habits nearly always, n-grams now and then.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from .habits import Habits
from .ngrams import NgramIndex

MAX_GRAMMAR_DRAFTS = 12
"""Tokens of forced text and habits in one step: fewer than the rows from which on attention and products treat a chunk as a prompt,
so that an answer does not depend on them to the last bit."""
_MAX_FORCED_BYTES = 128
"""More than so many tokens spell."""


class DraftCursor(Protocol):
    """A place in a token automaton that can go ahead and come back."""

    @property
    def finished(self) -> bool: ...
    @property
    def place(self) -> Hashable: ...
    def advance(self, token_id: int) -> bool: ...
    def rollback(self, n: int) -> None: ...
    def forced_tokens(self, max_bytes: int) -> list[int]: ...


@dataclass(frozen=True, kw_only=True)
class Drafts:
    """Guesses in order.

    Attributes:
        forced: for each of them, whether it is forced text.
    """

    token_ids: tuple[int, ...] = ()
    forced: tuple[bool, ...] = ()


class Drafter:
    """Makes the drafts of one request.

    Args:
        habits: of the request's grammar, if it has one and its text may be drafted.
        ngrams: of its tokens so far, if they may be looked up.
        num_ngram_drafts: most tokens of one lookup.
    """

    def __init__(self, *, habits: Habits | None, ngrams: NgramIndex | None, num_ngram_drafts: int):
        self._habits = habits
        self._ngrams = ngrams
        self._num_ngram_drafts = num_ngram_drafts

    def learn(self, token_id: int, place: Hashable | None) -> None:
        """The answer grew by a token, which came at this place of its grammar."""
        if self._ngrams is not None:
            self._ngrams.extend((token_id,))
        if self._habits is not None and place is not None:
            self._habits.learn(place, token_id)

    def propose(self, cursor: DraftCursor | None, limit: int) -> Drafts:
        """At most `limit` tokens, each allowed by the grammar after those before it. The cursor is where it was afterwards."""
        if cursor is None:
            token_ids = self._look_up((), limit)
            return Drafts(token_ids=tuple(token_ids), forced=(False,) * len(token_ids))
        walk = _Walk(cursor, limit)
        try:
            while self._go_on(cursor, walk):
                pass
        finally:
            cursor.rollback(len(walk.token_ids))
        return Drafts(token_ids=tuple(walk.token_ids), forced=tuple(walk.forced))

    def _go_on(self, cursor: DraftCursor, walk: _Walk) -> bool:
        """Takes what may come next; false where there is no idea, or no room."""
        room = MAX_GRAMMAR_DRAFTS - len(walk.token_ids)
        if self._habits is not None and room > 0:
            forced = cursor.forced_tokens(_MAX_FORCED_BYTES)[:room]
            if forced:
                return walk.take(forced, forced=True)
            habit = self._habits.expect(cursor.place)
            if habit is not None:
                return walk.take((habit,), forced=False)
        return walk.take(self._look_up(walk.token_ids, walk.num_left), forced=False)

    def _look_up(self, ahead: Sequence[int], limit: int) -> list[int]:
        if self._ngrams is None:
            return []
        return self._ngrams.follow(ahead, max(0, min(limit, self._num_ngram_drafts - len(ahead))))


class _Walk:
    """Tokens ahead of a cursor, which moves along."""

    def __init__(self, cursor: DraftCursor, limit: int):
        self._cursor = cursor
        self._limit = limit
        self.token_ids: list[int] = []
        self.forced: list[bool] = []

    @property
    def num_left(self) -> int:
        return self._limit - len(self.token_ids)

    def take(self, token_ids: Sequence[int], *, forced: bool) -> bool:
        """Goes along tokens; whether there were any, all were allowed, and more may follow. End tokens are not worth a draft."""
        for token_id in token_ids:
            if not self.num_left or not self._cursor.advance(token_id):
                return False
            if self._cursor.finished:
                self._cursor.rollback(1)
                return False
            self.token_ids.append(token_id)
            self.forced.append(forced)
        return bool(token_ids)
