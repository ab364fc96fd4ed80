from __future__ import annotations

import pytest
from engine_fakes import EOS, Script

from formcast.engine.drafts.drafter import MAX_GRAMMAR_DRAFTS, Drafter
from formcast.engine.drafts.habits import Habits
from formcast.engine.drafts.ngrams import NgramIndex

OPEN = Script((frozenset(b"a"), frozenset(b"b"), frozenset(b"xy"), frozenset(b"c"), frozenset(b"xy"), frozenset(b"xyz")))


def drafter(*, habits=None, ngrams=None, num_ngram_drafts=5) -> Drafter:
    index = None
    if ngrams is not None:
        index = NgramIndex(1, 3)
        index.extend(ngrams)
    return Drafter(habits=habits, ngrams=index, num_ngram_drafts=num_ngram_drafts)


def known(**places: int) -> Habits:
    habits = Habits()
    for place, token in places.items():
        for _ in range(3):
            habits.learn(int(place[1:]), token)
    return habits


@pytest.mark.parametrize(
    ("made", "limit", "text", "forced"),
    [
        (drafter(habits=Habits()), 9, b"ab", [True, True]),
        (drafter(habits=Habits()), 1, b"a", [True]),
        (drafter(habits=known(p2=ord("x"))), 9, b"abxc", [True, True, False, True]),
        (drafter(habits=known(p2=ord("x"), p4=ord("y"), p5=ord("z"))), 9, b"abxcyz", [True, True, False, True, False, False]),
        (drafter(habits=known(p2=ord("q"))), 9, b"ab", [True, True]),  # a habit the grammar forbids
        (drafter(habits=Habits(), ngrams=b"abycx--"), 9, b"abycx", [True, True, False, False, False]),
        (drafter(ngrams=b"-abxc-"), 9, b"abxc", [False] * 4),
        (drafter(ngrams=b"-abxc-", num_ngram_drafts=2), 9, b"ab", [False] * 2),
        (drafter(), 9, b"", []),
    ],
)
def test_drafts(made, limit, text, forced):
    cursor = OPEN.cursor()
    drafts = made.propose(cursor, limit)
    assert (bytes(drafts.token_ids), list(drafts.forced)) == (text, forced)
    assert cursor.place == 0 and not cursor.finished


def test_ends_are_not_drafted():
    cursor = Script.literal(b"ab").cursor()
    assert bytes(drafter(habits=known(p2=EOS)).propose(cursor, 9).token_ids) == b"ab"
    assert cursor.place == 0


def test_a_long_forced_text_is_drafted_in_parts():
    cursor = Script.literal(b"x" * 100).cursor()
    assert len(drafter(habits=Habits()).propose(cursor, 99).token_ids) == MAX_GRAMMAR_DRAFTS


def test_free_text_is_looked_up():
    made = drafter(ngrams=b"the cat and the ")
    assert bytes(made.propose(None, 3).token_ids) == b"cat"
    made.learn(ord("d"), None)
    assert bytes(made.propose(None, 9).token_ids) == b" the "


def test_the_cursor_comes_back_when_the_grammar_fails_ahead():
    class Failing:
        finished = False
        place = 0

        def __init__(self):
            self.taken = 0

        def advance(self, token_id):
            if self.taken == 2:
                raise RuntimeError
            self.taken += 1
            return True

        def rollback(self, n):
            self.taken -= n

        def forced_tokens(self, max_bytes):
            return [1, 1, 1]

    cursor = Failing()
    with pytest.raises(RuntimeError):
        drafter(habits=Habits()).propose(cursor, 9)
    assert cursor.taken == 0
