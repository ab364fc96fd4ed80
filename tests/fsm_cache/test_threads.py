"""Grammars that share leaves, used by several threads at once."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

from toy_vocabulary import brute_force, mask_of, vocabulary

from formcast import Grammar, compile_grammar

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


def _walk(number: int) -> list[tuple[set[int], set[int]]]:
    cursor, rng = compile_grammar(Grammar.json_schema(_schema(number)), VOCAB).cursor(), random.Random(number)
    pairs = []
    for _ in range(30):
        allowed = mask_of(cursor)
        pairs.append((allowed, brute_force(cursor)))
        if not allowed:
            break
        cursor.advance(rng.choice(sorted(allowed)))
    return pairs


def test_masks_made_at_the_same_time_are_right() -> None:
    with ThreadPoolExecutor(4) as pool:
        walks = list(pool.map(_walk, range(12)))
    for pairs in walks:
        for made, expected in pairs:
            assert made == expected
