"""Grammars that share leaves, used by several threads at once."""

from __future__ import annotations

import gc
import random
from concurrent.futures import ThreadPoolExecutor

from toy_vocabulary import brute_force, mask_of, vocabulary

from formcast import Grammar, compile_grammar
from formcast.fsm_cache import TokenFSM

VOCAB = vocabulary()


def _schema(number: int) -> dict:
    """Different objects over the same leaves: numbers, a pattern that only this test uses, words, any string."""
    return {
        "type": "object",
        "properties": {
            f"n{number}": {"type": "integer", "minimum": -7, "maximum": 12_345_6},
            "p": {"type": "string", "pattern": r"^(ab|é|\d{2}){1,6}[^xyz]*$"},
            "e": {"enum": ["abc", "ab", "name", 12, None]},
        },
        "required": ["p"],
    }


def _walk(fsm: TokenFSM, seed: int) -> list[tuple[set[int], set[int]]]:
    """What masks hold and what can be taken, along a text; with some of it taken back now and then."""
    cursor, rng = fsm.cursor(), random.Random(seed)
    pairs = []
    for _ in range(30):
        allowed = mask_of(cursor)
        pairs.append((allowed, brute_force(cursor)))
        if not allowed or rng.random() < 0.1:
            cursor.rollback(rng.randint(0, cursor.num_tokens))
        else:
            cursor.advance(rng.choice(sorted(allowed)))
    return pairs


def _walk_own(number: int) -> list[tuple[set[int], set[int]]]:
    return _walk(compile_grammar(Grammar.json_schema(_schema(number)), VOCAB), number)


def _check(walks: list[list[tuple[set[int], set[int]]]]) -> None:
    for pairs in walks:
        for made, expected in pairs:
            assert made == expected


def test_masks_made_at_the_same_time_are_right() -> None:
    with ThreadPoolExecutor(4) as pool:
        _check(list(pool.map(_walk_own, range(12))))


def _wide_pattern(number: int) -> Grammar:
    """A leaf of its own, in which most characters beyond ASCII lead somewhere else each time."""
    return Grammar.json_schema({"type": "string", "pattern": f"^([^x]é{{{number}}}|[à-日]{{1,{number}}}a|\\p{{L}}.)*$"})


def test_one_automaton_is_walked_by_several_threads() -> None:
    for number in range(2, 5):
        fsm = compile_grammar(_wide_pattern(number), VOCAB)
        with ThreadPoolExecutor(4) as pool:
            _check(list(pool.map(lambda seed, fsm=fsm: _walk(fsm, seed), range(6))))


def test_rows_that_were_used_before_are_as_good_as_new() -> None:
    for number in range(5, 17):
        _check([_walk(compile_grammar(_wide_pattern(number), VOCAB), number)])
        if number % 4 == 0:
            gc.collect()
