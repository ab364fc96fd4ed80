"""Special tokens as boundaries, and texts that may take a bounded number of tokens."""

from __future__ import annotations

import random
from typing import Any

import pytest
from toy_vocabulary import EOS, brute_force, mask_of

from formcast import Grammar, GrammarError, Vocabulary, compile_grammar
from formcast.grammar.structural_tag import TagBegin, TagDelta, TagEnd, TextDelta
from formcast.grammar.structural_tag.grammar import TagGrammar

CALL, OVER, OTHER = 1, 2, 3
_WORDS = (b"hi", b" there", b"</think>", b"</th", b"ink>", b"<think>", b">x", b"{}", b"<|call|>", "é".encode(), b"a", b"\xff\x00\x00\x01")
_PIECES = [None, None, None, None, *(bytes((b,)) for b in range(256)), *_WORDS]
VOCABULARY = Vocabulary(_PIECES, [EOS], special_tokens={"<|call|>": CALL, "<|over|>": OVER, "<|other|>": OTHER})


def ids(*words: bytes | int) -> list[int]:
    """Tokens of words, the longest pieces that are one token; numbers are tokens themselves."""
    return [word if isinstance(word, int) else _PIECES.index(word) for word in words]


def takes(cursor: Any, tokens: list[int]) -> bool:
    return all(cursor.advance(token) for token in tokens)


def tagged(**more: Any) -> TagGrammar:
    token = {"type": "token", "token": "<|call|>"}
    tag = {"begin": token, "content": {"type": "json_schema", "json_schema": {"type": "object"}}, "end": {"type": "token", "token": OVER}}
    return Grammar.structural_tag({"type": "triggered_tags", "triggers": [token], "tags": [tag], **more})


def test_a_token_is_in_the_mask_where_it_is_named_and_nowhere_else():
    cursor = compile_grammar(tagged(), VOCABULARY).cursor()
    assert mask_of(cursor) == brute_force(cursor)
    assert CALL in mask_of(cursor) and not {OVER, OTHER} & mask_of(cursor)
    assert takes(cursor, ids(b"hi", CALL))
    assert not {CALL, OVER, OTHER, EOS} & mask_of(cursor)
    assert takes(cursor, ids(b"{}"))
    assert mask_of(cursor) == {OVER} == brute_force(cursor)
    assert cursor.forced_bytes() == b""
    assert takes(cursor, [OVER]) and cursor.accepting


def test_bytes_cannot_spell_a_token():
    cursor = compile_grammar(tagged(at_least_one=True), VOCABULARY).cursor()
    assert mask_of(cursor) == {CALL}
    assert not cursor.advance(ids(b"\xff")[0])
    assert not cursor.advance(ids(b"\xff\x00\x00\x01")[0])


def test_events_of_tokens():
    parser = tagged().parser(VOCABULARY)
    assert parser.needs_tokens
    events = [*parser.feed_tokens(ids(b"hi", CALL)), *parser.feed_tokens(ids(b"{}", OVER, EOS)), *parser.finish()]
    kinds = [(type(event), event.text) for event in events]
    assert kinds == [(TextDelta, "hi"), (TagBegin, "<|call|>"), (TagDelta, "{}"), (TagEnd, "<|over|>")]


def test_where_the_vocabulary_has_no_such_token_its_name_serves():
    plain = Vocabulary(_PIECES, [EOS])
    token = {"type": "token", "token": "<|call|>"}
    grammar = Grammar.structural_tag({"type": "tag", "begin": token, "content": {"type": "any_text"}, "end": "</think>"})
    cursor = compile_grammar(grammar, plain).cursor()
    assert takes(cursor, ids(b"<|call|>", b"hi", b"</think>")) and cursor.accepting
    assert not grammar.parser().needs_tokens
    assert grammar.accepts("<|call|>x</think>")


@pytest.mark.parametrize("token", [4, 999, EOS])
def test_an_id_that_is_no_special_token_is_refused(token: int):
    grammar = Grammar.structural_tag({"type": "sequence", "elements": [{"type": "token", "token": token}]})
    with pytest.raises(GrammarError, match=r"no special token") as caught:
        compile_grammar(grammar, VOCABULARY)
    assert caught.value.pointer == "/elements/0"
    with pytest.raises(GrammarError, match="needs a vocabulary"):
        grammar.accepts("")


def thinking(budget: int, **more: Any) -> TagGrammar:
    content = {"type": "any_text", "max_tokens": budget, **more}
    return Grammar.structural_tag({"type": "tag", "begin": "<think>", "content": content, "end": "</think>"})


@pytest.mark.parametrize("budget", [0, 1, 2, 5])
def test_a_budget_is_honoured_exactly(budget: int):
    fsm = compile_grammar(thinking(budget), VOCABULARY)
    cursor = fsm.cursor()
    assert takes(cursor, ids(b"<think>"))
    for _ in range(budget):
        assert len(mask_of(cursor)) > 100
        assert takes(cursor, ids(b"hi"))
    assert mask_of(cursor) == set(ids(b"<", b"</th", b"</think>"))
    assert takes(cursor, ids(b"</th", b"ink>")) and cursor.accepting


def test_a_budget_counts_what_may_yet_be_the_end():
    cursor = compile_grammar(thinking(2), VOCABULARY).cursor()
    assert takes(cursor, ids(b"<think>", b"hi", b"</th"))
    assert mask_of(cursor) == set(ids(b"i", b"ink>", b"<", b"</th", b"</think>"))
    other = cursor.fork()
    assert takes(cursor, ids(b"ink>")) and cursor.accepting
    assert takes(other, ids(b"</think>")) and other.accepting


def test_a_token_that_only_ends_the_begin_does_not_count():
    cursor = compile_grammar(thinking(1), VOCABULARY).cursor()
    assert takes(cursor, ids(b"<", b"t", b"h", b"i", b"n", b"k", b">", b"hi"))
    assert not cursor.fork().advance(ids(b"hi")[0])
    cursor.rollback(2)
    assert takes(cursor, ids(b">x"))
    assert not cursor.fork().advance(ids(b"hi")[0])


def test_the_last_token_may_not_end_inside_a_character():
    first, second = ids(b"\xc3", b"\xa9")
    cursor = compile_grammar(thinking(2), VOCABULARY).cursor()
    assert takes(cursor, ids(b"<think>", b"hi"))
    assert mask_of(cursor) == brute_force(cursor)
    assert first not in mask_of(cursor)
    cursor.rollback(1)
    assert takes(cursor, [first, second])
    assert mask_of(cursor) == set(ids(b"<", b"</th", b"</think>"))


@pytest.mark.parametrize("seed", range(8))
def test_masks_under_budgets(seed: int):
    rng = random.Random(seed)
    inner = {"type": "any_text", "max_tokens": rng.randint(1, 3), "excludes": ["aa"]}
    tag = {"type": "tag", "begin": "<think>", "content": inner, "end": ["</think>", "</th!"]}
    free = {"type": "any_text", "max_tokens": 2}
    fsm = compile_grammar(Grammar.structural_tag({"type": "sequence", "elements": [tag, free]}), VOCABULARY)
    cursor = fsm.cursor()
    for _ in range(30):
        allowed = mask_of(cursor)
        assert allowed and allowed == brute_force(cursor)
        choices = sorted(allowed - {EOS})
        if not choices:
            break
        assert cursor.advance(rng.choice(choices))
    assert cursor.accepting


def test_a_budget_without_an_end_tag_leaves_the_rest_of_the_tree():
    tree = {"type": "sequence", "elements": [{"type": "any_text", "max_tokens": 2}, {"type": "const_string", "value": "{}"}]}
    cursor = compile_grammar(Grammar.structural_tag(tree), VOCABULARY).cursor()
    assert takes(cursor, ids(b"hi", b"hi"))
    assert mask_of(cursor) == set(ids(b"{", b"{}"))


def token(name: str) -> dict[str, Any]:
    return {"type": "token", "token": name}


def in_order(*pieces: Any) -> dict[str, Any]:
    parts = [{"type": "const_string", "value": piece} if isinstance(piece, str) else piece for piece in pieces]
    return {"type": "sequence", "elements": parts}


CHANNELS = {
    "type": "tag",
    "begin": in_order(token("<|call|>"), "hi"),
    "content": {"type": "any_text", "max_tokens": 2},
    "end": [in_order(token("<|over|>"), token("<|call|>"), "a"), in_order("a", token("<|over|>"))],
}


def test_boundaries_of_tokens_and_texts():
    cursor = compile_grammar(Grammar.structural_tag(CHANNELS), VOCABULARY).cursor()
    assert takes(cursor, ids(CALL, b"hi", b" there"))
    assert mask_of(cursor) == brute_force(cursor)
    assert {OVER, *ids(b"a", b"hi")} <= mask_of(cursor) and not {CALL, OTHER} & mask_of(cursor)
    bound = cursor.fork()
    assert takes(bound, [OVER]) and mask_of(bound) == {CALL} == brute_force(bound), "a token that is read is no part of the text"
    assert takes(bound, ids(CALL, b"a")) and bound.accepting
    assert takes(cursor, ids(b"a", OVER)) and cursor.accepting


@pytest.mark.parametrize("size", [1, 2, 100])
def test_events_of_boundaries_of_several_pieces(size: int):
    parser = Grammar.structural_tag(CHANNELS).parser(VOCABULARY)
    tokens = ids(CALL, b"h", b"i", b"a", b"hi", OVER, CALL, b"a", EOS)
    events = [event for at in range(0, len(tokens), size) for event in parser.feed_tokens(tokens[at : at + size])]
    said = [(type(event), event.text) for event in [*events, *parser.finish()]]
    texts = "".join(text for kind, text in said if kind is TagDelta)
    assert (said[0], texts, said[-1]) == ((TagBegin, "<|call|>hi"), "ahi", (TagEnd, "<|over|><|call|>a"))


def test_a_token_that_ends_the_text_is_read_where_it_ends():
    vocabulary = Vocabulary(_PIECES, [EOS, OVER], special_tokens={"<|call|>": CALL, "<|over|>": OVER})
    tree = {"type": "tag", "begin": token("<|call|>"), "content": {"type": "any_text"}, "end": token("<|over|>")}
    grammar = Grammar.structural_tag(tree)
    cursor = compile_grammar(grammar, vocabulary).cursor()
    assert mask_of(cursor) == {CALL}
    assert takes(cursor, ids(CALL, b"hi")) and {EOS, OVER} <= mask_of(cursor)
    parser = grammar.parser(vocabulary)
    events = [*parser.feed_tokens(ids(CALL, b"hi", OVER)), *parser.finish()]
    assert [(type(event), event.text) for event in events] == [(TagBegin, "<|call|>"), (TagDelta, "hi"), (TagEnd, "")]
    triggered = {"type": "triggered_tags", "triggers": [token("<|over|>")], "tags": [{**tree, "begin": token("<|over|>")}]}
    with pytest.raises(GrammarError, match="triggers nothing"):
        compile_grammar(Grammar.structural_tag(triggered), vocabulary)
    with pytest.raises(GrammarError, match="ends the text"):
        compile_grammar(Grammar.lark('start: "x" <|over|>'), vocabulary)


def test_one_token_of_text():
    tree = in_order({"type": "exclude_token", "exclude_tokens": ["hi", "<|other|>"]}, "{}")
    grammar = Grammar.structural_tag(tree)
    cursor = compile_grammar(grammar, VOCABULARY).cursor()
    first = mask_of(cursor)
    assert first == brute_force(cursor)
    assert set(ids(b" there", "é".encode(), b"{", b"{}")) <= first
    assert not {EOS, CALL, OTHER, *ids(b"hi", "é".encode()[:1])} & first
    assert takes(cursor, ids(b"{}")) and mask_of(cursor) == set(ids(b"{", b"{}"))
    assert grammar.accepts("there{}") and not grammar.accepts("{}") and not grammar.accepts("hi{}")
    tokens = ids(CALL, b"{}", b"a", b" there", OVER)
    tag = {"type": "tag", "begin": token("<|call|>"), "content": {"type": "star", "content": tree["elements"][0]}, "end": token("<|over|>")}
    cursor = compile_grammar(Grammar.structural_tag(tag), VOCABULARY).cursor()
    assert takes(cursor, tokens) and cursor.accepting
