"""A grammar whose texts have used up half of a budget is compiled anew for the next ones."""

from __future__ import annotations

import json

from toy_vocabulary import text_of, vocabulary

from formcast import Grammar, Limits
from formcast.fsm_cache import FsmCompiler

VOCAB = vocabulary()
BYTES = {text_of(VOCAB, [t]): t for t in range(VOCAB.vocab_size) if len(text_of(VOCAB, [t])) == 1}


def test_a_worn_grammar_is_replaced_and_still_serves_its_cursors() -> None:
    grammar = Grammar.json_schema({"type": "array", "uniqueItems": True, "items": {"type": "object"}}, whitespace="compact")
    compiler = FsmCompiler(VOCAB, Limits(max_nodes=60_000))
    try:
        first = compiler.submit(grammar).result()
        assert compiler.submit(grammar).result() is first
        for k in range(40):
            cursor = first.cursor()
            text = json.dumps([{"id": k}, {"name": f"name {k} " * 60}, {}], separators=(",", ":"))
            assert all(cursor.advance(BYTES[bytes((byte,))]) for byte in text.encode()), text
            if first.is_worn:
                break
        assert first.is_worn
        second = compiler.submit(grammar).result()
        assert second is not first
        assert not second.is_worn
        assert compiler.submit(grammar).result() is second
        assert cursor.accepting
    finally:
        compiler.close()
