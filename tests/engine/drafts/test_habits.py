from __future__ import annotations

import gc

from engine_fakes import Script

from formcast.engine.drafts import habits as module
from formcast.engine.drafts.habits import HabitBook, Habits


def test_a_habit_is_known_once_it_was_repeated():
    habits = Habits()
    assert habits.expect("p") is None
    habits.learn("p", 5)
    assert habits.expect("p") is None
    habits.learn("p", 5)
    assert habits.expect("p") == 5 and habits.expect("q") is None


def test_one_exception_does_not_break_a_firm_habit_and_two_do():
    habits = Habits()
    for _ in range(9):
        habits.learn("p", 5)
    habits.learn("p", 6)
    assert habits.expect("p") == 5
    habits.learn("p", 6)
    assert habits.expect("p") is None
    habits.learn("p", 6)
    habits.learn("p", 6)
    assert habits.expect("p") == 6


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
