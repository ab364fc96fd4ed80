"""The pool in front of compilation: sharing, eviction, exhausted automata."""

from __future__ import annotations

import random

import numpy as np
import pytest
from toy_vocabulary import vocabulary

from formcast import Grammar, Limits, compile_grammar
from formcast.fsm_cache import FsmCompiler
from formcast.grammar.errors import GrammarError

VOCAB = vocabulary()


def test_equal_grammars_share_one_automaton() -> None:
    compiler = FsmCompiler(VOCAB)
    one, two = (compiler.submit(Grammar.json_schema({"type": "array"})).result() for _ in range(2))
    assert one is two
    assert (compiler.stats().hits, compiler.stats().misses) == (1, 1)
    compiler.close()


def test_refused_grammars_are_not_kept() -> None:
    compiler = FsmCompiler(VOCAB)
    grammar = Grammar.json_schema({"type": "object", "required": ["a"], "properties": {"a": {"enum": []}}})
    for _ in range(2):
        with pytest.raises(GrammarError):
            compiler.submit(grammar).result()
    assert compiler.stats().failures == 2 and compiler.stats().live == 0
    compiler.close()


def test_memory_stays_bounded_and_cursors_outlive_eviction() -> None:
    compiler = FsmCompiler(VOCAB, max_bytes=2 << 20)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    cursor = compiler.submit(Grammar.json_schema(schema)).result().cursor()
    assert cursor.advance(VOCAB.token_bytes.index(b'{"'))
    for number in range(100):
        compiler.submit(Grammar.json_schema({"const": f"value {number}"})).result()
    assert compiler.stats().live < 60
    fresh = compile_grammar(Grammar.json_schema(schema), VOCAB).cursor()
    assert fresh.advance(VOCAB.token_bytes.index(b'{"'))
    rows = np.zeros((2, VOCAB.row_words), np.int32)
    cursor.fill_mask(rows[0])
    fresh.fill_mask(rows[1])
    assert (rows[0] == rows[1]).all()
    compiler.close()


def test_an_exhausted_automaton_is_replaced_for_new_texts() -> None:
    compiler = FsmCompiler(VOCAB, Limits(max_nodes=40_000))
    grammar = Grammar.json_schema({"type": "object", "additionalProperties": {"type": "integer"}})
    first = compiler.submit(grammar).result()
    rng = random.Random(1)
    for _ in range(400):
        if first.is_full:
            break
        cursor = first.cursor()
        for _ in range(80):
            row = np.zeros(VOCAB.row_words, np.int32)
            cursor.fill_mask(row)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
            if not allowed or not cursor.advance(rng.choice(allowed)):
                break
    assert first.is_full
    second = compiler.submit(grammar).result()
    assert second is not first and not second.is_full
    compiler.close()
