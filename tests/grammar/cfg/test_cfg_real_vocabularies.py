"""Masks of random and shipped grammars over real vocabularies: exactly the tokens whose bytes can be taken, tried one by one."""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from formcast import Grammar, Vocabulary, compile_grammar, schemas
from formcast.fsm_cache import Cursor

_ASSETS = Path(os.environ.get("FORMCAST_ASSETS") or Path.home() / ".cache" / "formcast-assets")
_NAMES = ("llama3_1", "qwen3", "gemma3")

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


@cache
def vocabulary(name: str) -> Vocabulary:
    path = _ASSETS / "tokenizers" / name / "tokenizer.json"
    if not path.exists():
        pytest.skip(f"no tokenizer {name}")
    return Vocabulary.from_tokenizer(str(path))


def allowed(cursor: Cursor) -> np.ndarray:
    row = np.zeros(cursor.fsm.vocabulary.row_words, np.int32)
    cursor.fill_mask(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))


def check_masks(grammar: Grammar, vocab: Vocabulary, rng: random.Random, steps: int) -> None:
    compiled = grammar.compile()
    machine, state = compiled.machine, compiled.start
    cursor = compile_grammar(grammar, vocab).cursor()
    for _ in range(steps):
        tokens = allowed(cursor)
        expected = [t for t, data in enumerate(vocab.token_bytes) if data and machine.run(state, data) >= 0]
        expected += [t for t in vocab.eos_token_ids if machine.accepting(state)]
        assert sorted(set(expected)) == tokens.tolist()
        choices = [int(t) for t in tokens if t not in vocab.eos_token_ids]
        if not choices:
            return
        token = rng.choice(choices)
        assert cursor.advance(token)
        state = machine.run(state, vocab.token_bytes[token] or b"")


@pytest.mark.parametrize("name", _NAMES)
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
