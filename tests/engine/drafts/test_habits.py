from __future__ import annotations

import gc

import pytest
from engine_fakes import Script

from formcast.engine.drafts import habits as module
from formcast.engine.drafts.habits import HabitBook, Habits


def taught(*tokens: int) -> Habits:
    habits = Habits()
    for token in tokens:
        habits.learn("p", token)
    return habits


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([], None),
        ([5], None),
        ([5, 5], None),
        ([5, 5, 5], 5),
        ([5, 5, 5, 6], None),
        ([5] * 20 + [6], None),
        ([5] * 20 + [6, 5], 5),  # a firm habit comes back soon
        ([5] * 20 + [6, 6, 6, 6], 6),
        ([5, 6] * 20, None),
    ],
)
def test_a_habit_is_known_once_it_was_repeated_and_doubted_after_an_exception(tokens, expected):
    assert taught(*tokens).expect("p") == expected
    assert taught(*tokens).expect("q") is None


def test_places_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "_MAX_PLACES", 10)
    habits = Habits()
    for place in range(100):
        habits.learn(place, 1)
        assert len(habits) <= 10


def test_each_grammar_and_salt_has_its_own_and_they_end_with_the_grammar(monkeypatch):
    monkeypatch.setattr(module, "_MAX_SALTS", 3)
    book = HabitBook()
    one, other = Script((frozenset({1}),)), Script((frozenset({2}),))
    assert book.of(one, None) is book.of(one, None)
    assert len({id(habits) for habits in (book.of(one, None), book.of(one, "salt"), book.of(other, None))}) == 3
    first = book.of(one, None)
    for number in range(3):
        book.of(one, str(number))
    assert book.of(one, None) is not first
    del one
    gc.collect()
    assert len(book._by_grammar) == 1
