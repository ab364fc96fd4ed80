"""Habits: which token came last time at the same place of the same grammar.

Answers to one schema share their punctuation, their keys and often their values, whatever they are about. Grammars leave some freedom
even there (whitespace, optional keys), so that none of this is forced; but a model is consistent, and what it did at a place is
what it will do there again. As in a branch predictor (J. Smith, "A study of branch prediction strategies", 1981) a small counter for each
place says how far that holds.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable

_SURE = 3
_SUREST = 8
_MAX_PLACES = 1 << 16
_MAX_SALTS = 64


class Habits:
    """Tokens by place, for the answers to one grammar. O(1) a token; forgets everything when it has seen too many places."""

    def __init__(self) -> None:
        self._habits: dict[Hashable, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._habits)

    def learn(self, place: Hashable, token_id: int) -> None:
        """A token came at a place."""
        habit, trust = self._habits.get(place, (token_id, 0))
        if habit == token_id:
            trust = min(trust + 1, _SUREST)
        else:
            trust //= 4  # only a firm habit survives an exception: a wrong draft costs more than a missed one
        if trust == 0:
            habit, trust = token_id, 1
        if len(self._habits) >= _MAX_PLACES:
            self._habits.clear()
        self._habits[place] = (habit, trust)

    def expect(self, place: Hashable) -> int | None:
        """The token that probably comes at a place; None where that is not known, or differs from time to time."""
        habit, trust = self._habits.get(place, (0, 0))
        return habit if trust >= _SURE else None


class HabitBook:
    """The habits of each compiled grammar, kept as long as that is.

    Each cache salt has its own: how fast an answer comes tells what was answered before. Of many salts, the oldest are forgotten.
    """

    def __init__(self) -> None:
        self._by_grammar: weakref.WeakKeyDictionary[object, dict[str | None, Habits]] = weakref.WeakKeyDictionary()

    def of(self, automaton: object, salt: str | None) -> Habits:
        by_salt = self._by_grammar.setdefault(automaton, {})
        if salt not in by_salt and len(by_salt) >= _MAX_SALTS:
            del by_salt[next(iter(by_salt))]
        return by_salt.setdefault(salt, Habits())
