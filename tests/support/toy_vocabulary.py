"""A small vocabulary with everything that makes masks hard, and random walks through masks."""

from __future__ import annotations

import random

import numpy as np

from formcast import Grammar, Vocabulary, compile_grammar
from formcast.fsm_cache import Cursor

EOS = 0

_PIECES = [
    *(bytes((b,)) for b in range(256)),
    *(w.encode() for w in ("true", "false", "null", "name", "ame", "abc", "ab", "id", " the", "é", "日本", "😀", "12", "345", "0.5", "-1", "e+", "00")),
    *(w.encode() for w in ('"}', '",', '":', '": "', '","', '{"', '["', '"]', '}}', '"}}', "[]", "{}", "[[", '"a', 'a"', 'name"', 'name":', '":{"', '\\"', "\\u", "\\u00")),
    *(w.encode() for w in ("\n", "\n  ", "  ", "\n\t\t", " ", ", ", ": ", "\\n", 'x\\"y', 'ab","b":')),
    "é".encode()[:1], "日".encode()[:2], b'\xa9"', "😀".encode()[:3], b"\xff", b"a\x00",
]  # fmt: skip


def vocabulary() -> Vocabulary:
    """End token, a special token, an unused id, the pieces, one duplicate; padded to a width that is no multiple of 32."""
    pieces: list[bytes | None] = [None, None, None, *_PIECES, b"ab"]
    return Vocabulary(pieces, [EOS], vocab_size=len(pieces) + 7)


def bits(row: np.ndarray, size: int) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[:size]).tolist())


def mask_of(cursor: Cursor) -> set[int]:
    vocab = cursor.fsm.vocabulary
    row = np.full(vocab.row_words, -1, np.int32)
    cursor.fill_mask(row)
    assert not np.unpackbits(row.view(np.uint8), bitorder="little")[vocab.vocab_size :].any()
    return bits(row, vocab.vocab_size)


def brute_force(cursor: Cursor) -> set[int]:
    """Tokens that an independent copy of the cursor takes."""
    return {t for t in range(cursor.fsm.vocabulary.vocab_size) if cursor.fork().advance(t)}


def text_of(vocab: Vocabulary, tokens: list[int]) -> bytes:
    return b"".join(vocab.token_bytes[t] or b"" for t in tokens)


_CLOSERS = {b'"', b"}", b"]", b'"}', b'"]', b"}}", b'"}}'}


def walk(grammar: Grammar, vocab: Vocabulary, rng: random.Random, max_tokens: int = 120) -> bytes | None:
    """A random text through the masks that tends to end; None when it grows too long. Asserts that it never gets stuck."""
    cursor = compile_grammar(grammar, vocab).cursor()
    tokens: list[int] = []
    for _ in range(max_tokens):
        allowed = mask_of(cursor)
        assert allowed, f"dead end after {text_of(vocab, tokens)!r}"
        if EOS in allowed and (rng.random() < 0.5 or len(allowed) == 1):
            return text_of(vocab, tokens)
        choices = sorted(allowed - {EOS})
        closers = [t for t in choices if vocab.token_bytes[t] in _CLOSERS]
        token = rng.choice(closers if closers and rng.random() < 0.5 else choices)
        assert cursor.advance(token)
        tokens.append(token)
    return None
