"""Masks of random and shipped grammars over real vocabularies: exactly the tokens whose bytes can be taken, tried one by one."""

from __future__ import annotations

import random

import pytest
from real_vocabularies import NAMES, check_masks, vocabulary

from formcast import Grammar, schemas

pytestmark = pytest.mark.slow

RANDOM_LARK = """start: {body}
x: "(" start ")" | A x? | B
A: {a}
B: {b}
{ignore}"""
_BODIES = ('x ("," x)*', "start x | x", "x~1..3", 'x | "[" start "]" start', "[x] x", 'A (B | "a" x)+')
_PATTERNS = (
    "/[a-z]{1,9}/",
    '/"[^"]{0,12}"/',
    "/[0-9]+(\\.[0-9]+)?/",
    "/[^\\s,()\\[\\]]+/",
    "/(?!the)[A-Za-z]+/",
    "/\\w+\\b/",
    "/é|[à-ü ]{2,5}/",
    '"ab" | "abc"i',
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_masks_of_random_grammars(name: str, seed: int):
    rng = random.Random(seed)
    ignore = rng.choice(("", '%ignore " "', "%ignore /\\s+/"))
    text = RANDOM_LARK.format(body=rng.choice(_BODIES), a=rng.choice(_PATTERNS), b=rng.choice(_PATTERNS), ignore=ignore)
    check_masks(Grammar.lark(text), vocabulary(name), rng, 4)


@pytest.mark.parametrize("name", schemas.grammar_names())
def test_masks_of_shipped_grammars(name: str):
    kind, text = schemas.load_grammar(name)
    check_masks(getattr(Grammar, kind)(text), vocabulary("llama3_1"), random.Random(name), 4)
