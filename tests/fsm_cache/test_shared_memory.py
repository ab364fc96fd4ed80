"""What automata share is weighed once, and only while one of them holds it."""

from __future__ import annotations

import gc
import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from toy_vocabulary import vocabulary

from formcast import Grammar
from formcast.fsm_cache import FsmCompiler, TokenFSM
from formcast.fsm_cache.alive import Alive

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^[a-z]{2,9}$"}, "size": {"type": "integer"}}, "required": ["name", "size"]}


class Value:
    pass


def use(fsm: TokenFSM) -> None:
    """Asks for the masks of one text."""
    cursor, row = fsm.cursor(), np.zeros(fsm.vocabulary.row_words, np.int32)
    for byte in b'{"name": "abc", "size": 12}':
        cursor.fill_mask(row)
        assert cursor.advance(fsm.vocabulary.token_bytes.index(bytes((byte,))))
    cursor.fill_mask(row)


def test_masks_and_tables_of_equal_grammars_weigh_as_those_of_one() -> None:
    vocab = vocabulary()
    compiler = FsmCompiler(vocab)
    weights = []
    for number in range(5):
        use(compiler.submit(Grammar.json_schema({**SCHEMA, "title": str(number)})).result())
        weights.append(compiler.stats().mask_bytes)
    assert compiler.stats().live == 5
    assert weights[0] > 0 and len(set(weights)) == 1
    compiler.close()


def test_nothing_is_weighed_that_no_automaton_holds() -> None:
    vocab = vocabulary()
    compiler = FsmCompiler(vocab)
    use(compiler.submit(Grammar.json_schema(SCHEMA)).result())
    compiler.close()
    del compiler
    gc.collect()
    assert vocab.shared_bytes == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["hold", "release", "weigh"]))))
def test_weights_are_those_of_the_values_held(actions: list[tuple[int, str]]) -> None:
    alive: Alive[int, Value] = Alive()
    held: dict[int, Value] = {}
    for key, action in actions:
        if action == "hold":
            value = alive.put(key, Value(), 10 + key)
            assert held.setdefault(key, value) is value
            del value
        elif action == "release":
            held.pop(key, None)
        else:
            assert alive.num_bytes == sum(10 + key for key in held)
        assert all((alive.get(key) is not None) == (key in held) for key in range(6))
    assert alive.num_bytes == sum(10 + key for key in held)


def test_threads_that_hold_and_release_leave_nothing() -> None:
    alive: Alive[int, Value] = Alive()

    def work() -> None:
        for turn in range(2000):
            mine = [alive.put(turn % 7 + i, Value(), 3) for i in range(3)]
            assert alive.get(turn % 7) is mine[0]

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert alive.num_bytes == 0
