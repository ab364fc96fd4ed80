"""Cursor: history, forks, end of text, forced text."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_vocabulary import EOS, mask_of, vocabulary

from formcast import Grammar, compile_grammar

VOCAB = vocabulary()
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "id": {"type": "integer"}},
    "required": ["name", "id"],
    "additionalProperties": False,
}
FSM = compile_grammar(Grammar.json_schema(SCHEMA, whitespace="compact"), VOCAB)


def token(text: str) -> int:
    return VOCAB.token_bytes.index(text.encode())


@given(st.integers(0, 10_000), st.lists(st.one_of(st.integers(0, 4), st.none()), max_size=25))
def test_rollback_is_exact_for_every_history(seed: int, moves: list[int | None]) -> None:
    """After any mix of advances and rollbacks the mask is that of a fresh cursor fed the remaining history."""
    rng = random.Random(seed)
    cursor, history = FSM.cursor(), []
    for move in moves:
        allowed = sorted(mask_of(cursor))
        if move is None and allowed:
            history.append(rng.choice(allowed))
            assert cursor.advance(history[-1])
        elif move is not None:
            n = min(move, len(history))
            cursor.rollback(n)
            history = history[: len(history) - n]
    fresh = FSM.cursor()
    assert all(fresh.advance(t) for t in history)
    assert mask_of(fresh) == mask_of(cursor)
    assert fresh.finished == cursor.finished
    assert cursor.num_tokens == len(history)


def test_a_refused_token_changes_nothing() -> None:
    cursor = FSM.cursor()
    assert cursor.advance(token('{"'))
    before = mask_of(cursor)
    for refused in (token("true"), token("}}"), EOS, token("ab")):
        assert not cursor.advance(refused)
        assert mask_of(cursor) == before
        assert cursor.num_tokens == 1


def test_forks_are_independent() -> None:
    cursor = FSM.cursor()
    cursor.advance(token('{"'))
    fork = cursor.fork()
    assert fork.advance(token("name"))
    assert cursor.num_tokens == 1 and fork.num_tokens == 2
    assert mask_of(cursor) == mask_of(_fed('{"'))


def _fed(*texts: str):
    cursor = FSM.cursor()
    assert all(cursor.advance(token(t)) for t in texts)
    return cursor


def test_the_end_token_finishes_and_can_be_taken_back() -> None:
    cursor = compile_grammar(Grammar.choice(["ab", "abc"]), VOCAB).cursor()
    assert not cursor.accepting
    assert cursor.advance(token("ab"))
    assert cursor.accepting and not cursor.finished
    assert cursor.advance(EOS)
    assert cursor.finished
    assert mask_of(cursor) == set()
    assert not cursor.advance(EOS)
    cursor.rollback(1)
    assert not cursor.finished
    assert cursor.advance(token("c"))


def test_reset_goes_back_to_the_start() -> None:
    cursor = _fed('{"', "name")
    cursor.reset()
    assert cursor.num_tokens == 0
    assert mask_of(cursor) == mask_of(FSM.cursor())


def test_rollback_beyond_the_history_is_refused() -> None:
    cursor = _fed('{"')
    with pytest.raises(ValueError, match="take back"):
        cursor.rollback(2)
    with pytest.raises(ValueError, match="take back"):
        cursor.rollback(-1)


def test_forced_bytes_are_the_text_without_a_choice() -> None:
    assert FSM.cursor().forced_bytes() == b'{"name":"'
    assert _fed('{"', "n").forced_bytes() == b'ame":"'
    assert compile_grammar(Grammar.choice(["name: ab", "name: id"]), VOCAB).cursor().forced_bytes() == b"name: "
    done = compile_grammar(Grammar.choice(["ab"]), VOCAB).cursor()
    assert done.advance(token("ab"))
    assert done.forced_bytes() == b""
