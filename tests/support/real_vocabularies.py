"""Real vocabularies, and masks over them against every token tried one by one."""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from formcast import Grammar, Vocabulary, compile_grammar
from formcast.fsm_cache import Cursor

_ASSETS = Path(os.environ.get("FORMCAST_ASSETS") or Path.home() / ".cache" / "formcast-assets")
NAMES = ("llama3_1", "qwen3", "gemma3")


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
    """Walks along the masks; each holds exactly the tokens whose bytes can be taken."""
    compiled = grammar.compile(special_tokens=vocab.special_tokens)
    machine, state = compiled.machine, compiled.start
    cursor = compile_grammar(grammar, vocab).cursor()
    for _ in range(steps):
        tokens = allowed(cursor)
        spelled = [(t, data) for t, data in enumerate(vocab.spellings) if data and t not in vocab.eos_token_ids]
        expected = [t for t, data in spelled if machine.run(state, data) >= 0]
        expected += [t for t in vocab.eos_token_ids if machine.accepting(state)]
        assert sorted(set(expected)) == tokens.tolist()
        choices = [int(t) for t in tokens if t not in vocab.eos_token_ids]
        if not choices:
            return
        token = rng.choice(choices)
        assert cursor.advance(token)
        state = machine.run(state, vocab.spellings[token] or b"")
