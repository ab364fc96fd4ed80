"""Resident states: what the arrays say is what the automata say, within a bounded room."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest
from toy_vocabulary import EOS, bits, mask_of, vocabulary

from formcast import Grammar, compile_grammar
from formcast.fsm_cache import Cursor
from formcast.fsm_cache.mask_pool import LOOP, MASK, NONE, STATE, TARGET, TOKEN, MaskPool, bucket_of

VOCAB = vocabulary()
GRAMMARS = (
    Grammar.json_schema(True),
    Grammar.json_schema({"type": "array", "items": {"type": "string", "maxLength": 4}}),
    Grammar.json_schema({"type": "object", "properties": {"name": {"type": "string", "pattern": "^a[b-z ]*c$"}, "id": {"type": "integer"}}}),
    Grammar.regex("(ab|é)*12?"),
    Grammar.structural_tag(
        {"type": "triggered_tags", "triggers": ["<"], "tags": [{"begin": "<a", "content": {"type": "json_schema", "json_schema": True}, "end": ">"}]}
    ),
)


def _target(pool: MaskPool, slot: int, token: int) -> int | None:
    """What the arrays say about a transition; None for nothing."""
    loop = pool.states[slot, LOOP]
    if loop != NONE and token in bits(pool.rows[loop], VOCAB.vocab_size):
        return slot
    bucket = pool.steps[bucket_of(slot, token, len(pool.steps))]
    targets = {int(t) for s, k, t in zip(bucket[STATE], bucket[TOKEN], bucket[TARGET], strict=True) if (s, k) == (slot, token)}
    assert len(targets) <= 1
    return targets.pop() if targets else None


class _Text:
    """A random text that is walked over and over."""

    def __init__(self, cursor: Cursor, pool: MaskPool, rng: random.Random):
        self.cursor, self._pool, self._rng = cursor, pool, rng
        self._residents = pool.residents(cursor.fsm)
        self.num_known = 0

    def step(self) -> None:
        pool, cursor = self._pool, self.cursor
        slot = pool.enter(self._residents, cursor.state)
        if pool.states[slot, MASK] == NONE:
            pool.fill(slot)
        allowed = mask_of(cursor)
        assert bits(pool.rows[pool.states[slot, MASK]], VOCAB.vocab_size) == allowed
        assert pool.resident(slot).is_end == (allowed == {EOS})
        tokens = sorted(allowed - {EOS})
        if not tokens or cursor.num_tokens > 30:
            cursor.reset()
            return
        token = self._rng.choice(tokens)
        target = _target(pool, slot, token)
        assert cursor.advance(token)
        if target is None:
            pool.learn(slot, token, pool.enter(self._residents, cursor.state))
            assert _target(pool, slot, token) in (slot, pool.enter(self._residents, cursor.state))
        else:
            self.num_known += 1
            assert pool.resident(target).state == cursor.state


@pytest.mark.parametrize("min_rows", [6, 200], ids=["scarce", "ample"])
def test_rows_and_transitions_are_those_of_the_automata(min_rows: int) -> None:
    rng = random.Random(min_rows)
    pool = MaskPool(VOCAB.row_words, max_bytes=0, min_rows=min_rows)
    fsms = [compile_grammar(grammar, VOCAB) for grammar in GRAMMARS]
    for _ in range(6):
        texts = [_Text(fsm.cursor(), pool, rng) for fsm in fsms]
        for _ in range(60):
            for text in texts:
                pool.tick()
                text.step()
    assert pool.num_rows <= min_rows and pool.num_states <= 4 * min_rows
    assert sum(text.num_known for text in texts) > (0 if min_rows == 6 else 100)


@pytest.mark.parametrize("grammar", GRAMMARS, ids=range(len(GRAMMARS)))
def test_loops_are_tokens_that_lead_back(grammar: Grammar) -> None:
    fsm = compile_grammar(grammar, VOCAB)
    rng = random.Random(3)
    for _ in range(8):
        cursor = fsm.cursor()
        for _ in range(12):
            allowed = mask_of(cursor)
            loop = fsm.loop(cursor.state)
            if loop is not None:
                returning = {token for token in allowed - {EOS} if fsm.advance(cursor.state, token) == cursor.state}
                assert bits(loop.row(VOCAB.row_words), VOCAB.vocab_size) <= returning
            if not cursor.advance(rng.choice(sorted(allowed))) or cursor.finished:
                break


@pytest.mark.parametrize(("grammar", "begin"), [(Grammar.json_schema({"type": "string"}), b'"'), (GRAMMARS[-1], b" the")], ids=["string", "free text"])
def test_text_loops_over_most_of_the_vocabulary(grammar: Grammar, begin: bytes) -> None:
    cursor = compile_grammar(grammar, VOCAB).cursor()
    assert cursor.advance(VOCAB.token_bytes.index(begin))
    cursor.mask()  # which makes what a loop is known by
    loop = cursor.fsm.loop(cursor.state)
    assert loop is not None
    looping = bits(loop.row(VOCAB.row_words), VOCAB.vocab_size)
    spelt = {VOCAB.token_bytes[token] for token in looping}
    assert {b"a", b" the", "é".encode(), "日本".encode(), "😀".encode()} <= spelt
    assert not spelt & {b"\xff", "é".encode()[:1]}
    assert spelt.isdisjoint({b'"', b"\\n", b"\n"}) if begin == b'"' else b"<" not in spelt


def test_states_of_a_dropped_grammar_are_freed() -> None:
    pool = MaskPool(VOCAB.row_words, max_bytes=0, min_rows=50)
    kept, dropped = (compile_grammar(grammar, VOCAB) for grammar in GRAMMARS[:2])
    for fsm in (kept, dropped):
        text = _Text(fsm.cursor(), pool, random.Random(0))
        for _ in range(40):
            pool.tick()
            text.step()
    of_kept = len(pool.residents(kept).slots)
    assert pool.num_states > of_kept
    del fsm, dropped, text
    gc.collect()
    pool.tick()
    assert pool.num_states == of_kept
    in_use = np.unique(pool.states[pool.states != NONE])
    assert pool.num_rows <= len(in_use)
    assert set(pool.steps[:, STATE][pool.steps[:, STATE] != NONE].tolist()) <= set(pool.residents(kept).slots.values())


def test_changes_are_told_once() -> None:
    pool = MaskPool(VOCAB.row_words, max_bytes=0, min_rows=50)
    mirror = [array.copy() for array in (pool.rows, pool.states, pool.steps)]
    text = _Text(compile_grammar(GRAMMARS[0], VOCAB).cursor(), pool, random.Random(1))
    for _ in range(100):
        pool.tick()
        text.step()
        for copy, array, indices in zip(mirror, (pool.rows, pool.states, pool.steps), pool.changes(), strict=True):
            copy[indices] = array[indices]
            assert (copy == array).all()
    assert all(len(indices) == 0 for indices in pool.changes())
