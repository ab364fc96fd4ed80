"""Random trees: masks against single tokens, verdicts against a recogniser that tries everything, events against all ways to cut a text."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import pytest
from structural_trees import Recogniser, random_tree
from toy_vocabulary import EOS, brute_force, mask_of, text_of

from formcast import Grammar, GrammarError, Vocabulary, compile_grammar
from formcast.grammar.structural_tag import Event, TagDelta, TextDelta
from formcast.grammar.structural_tag.grammar import TagGrammar

_WORDS = (
    "<a",
    "<a>",
    "</a>",
    "a>",
    "></",
    "><",
    "ab",
    "</",
    "]",
    "[a",
    "</t>",
    "a]",
    "<b>",
    '{"a":',
    "true",
    '"x"',
    "null",
    ",",
    ">a",
    "é",
)
_PIECES: list[bytes | None] = [None, None, None, *(bytes((b,)) for b in range(256)), *(w.encode() for w in _WORDS)]
VOCABULARY = Vocabulary(_PIECES, [EOS], vocab_size=len(_PIECES) + 5)
_LIKELY = set(b'<>/ab]}"[{:truefalsnx,0123()') | {0xC3, 0xA9}


def grammar_of(seed: int) -> tuple[Any, TagGrammar] | None:
    tree = random_tree(random.Random(seed))
    try:
        return tree, Grammar.structural_tag(tree)
    except GrammarError as error:
        assert error.pointer is not None
        return None


def walk(cursor: Any, rng: random.Random, most: int = 40) -> tuple[list[int], bool]:
    """Tokens of a random text, and whether it came to its end."""
    tokens: list[int] = []
    for _ in range(most):
        allowed = mask_of(cursor)
        assert allowed, f"dead end after {text_of(VOCABULARY, tokens)!r}"
        if EOS in allowed and (rng.random() < 0.25 or len(allowed) == 1):
            return tokens, True
        choices = sorted(allowed - {EOS})
        likely = [t for t in choices if t >= 259 or t - 3 in _LIKELY]
        token = rng.choice(likely if likely and rng.random() < 0.95 else choices)
        assert cursor.advance(token)
        tokens.append(token)
    return tokens, False


@cache
def leaf_grammar(kind: str, spec: str) -> Grammar:
    if kind == "regex":
        return Grammar.regex(spec)
    return Grammar.ebnf(spec) if kind == "grammar" else Grammar.json_schema(spec, whitespace="compact")


def is_leaf_text(node: Any, text: str) -> bool:
    kind = node["type"]
    spec = node["pattern"] if kind == "regex" else node["grammar"] if kind == "grammar" else json.dumps(node["json_schema"])
    return leaf_grammar(kind, spec).accepts(text)


def told(events: list[Event]) -> list[tuple[str, str, str]]:
    """Events with neighbouring pieces of text put together."""
    found: list[tuple[str, str, str]] = []
    for event in events:
        kind, name = type(event).__name__, getattr(event, "name", "")
        if found and isinstance(event, TextDelta | TagDelta) and found[-1][:2] == (kind, name):
            found[-1] = (kind, name, found[-1][2] + event.text)
        else:
            found.append((kind, name, event.text))
    return found


@pytest.mark.parametrize("block", range(6))
def test_masks_hold_exactly_the_tokens_that_are_taken(block: int):
    for seed in range(12 * block, 12 * block + 12):
        made = grammar_of(seed)
        if made is None:
            continue
        cursor = compile_grammar(made[1], VOCABULARY).cursor()
        for _ in range(3):
            assert mask_of(cursor) == brute_force(cursor), seed
            walk(cursor, random.Random(seed), 4)


@pytest.mark.parametrize("block", range(6))
def test_verdicts_are_those_of_a_recogniser(block: int):
    for seed in range(25 * block, 25 * block + 25):
        made = grammar_of(seed)
        if made is None:
            continue
        tree, grammar = made
        rng = random.Random(seed)
        fsm = compile_grammar(grammar, VOCABULARY)
        for _ in range(3):
            tokens, ended = walk(fsm.cursor(), rng, 12)
            text = text_of(VOCABULARY, tokens).decode(errors="ignore")
            at = rng.randrange(len(text) + 1)
            mutants = [text, text[:at] + text[at + 1 :], text[:at] + rng.choice("<>a/x") + text[at:]]
            for mutant in mutants:
                assert grammar.accepts(mutant) == Recogniser(mutant, is_leaf_text).accepts(tree), (seed, mutant)
            if ended:
                assert grammar.accepts(text_of(VOCABULARY, tokens).decode())


@pytest.mark.parametrize("block", range(6))
def test_events_do_not_depend_on_how_a_text_is_cut(block: int):
    for seed in range(30 * block, 30 * block + 30):
        made = grammar_of(seed)
        if made is None:
            continue
        grammar, rng = made[1], random.Random(seed)
        tokens, ended = walk(compile_grammar(grammar, VOCABULARY).cursor(), rng)
        text = text_of(VOCABULARY, tokens).decode(errors="ignore")
        if not ended and text_of(VOCABULARY, tokens).decode(errors="replace") != text:
            continue
        by_tokens = grammar.parser(VOCABULARY)
        events = [event for token in tokens for event in by_tokens.feed_tokens([token])]
        whole = told([*events, *by_tokens.finish()])
        for _ in range(3):
            parser = grammar.parser()
            events, at = [], 0
            while at < len(text):
                size = rng.choice((1, 1, 2, 5, 50))
                events += parser.feed(text[at : at + size])
                at += size
            complete = parser.complete
            events += parser.finish()
            assert told(events) == whole, seed
            assert "".join(event.text for event in events) == text
            assert not ended or (complete and not parser.open_tags)
