"""Every bit of a mask against trying the tokens one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest
from toy_vocabulary import EOS, brute_force, mask_of, vocabulary, walk

from formcast import Grammar, Vocabulary, compile_grammar
from formcast.fsm_cache import advance_many, fill_masks

GRAMMARS = {
    "any": Grammar.json_schema(True),
    "any value, free whitespace": Grammar.json_schema(True, whitespace="any"),
    "object": Grammar.json_schema({"type": "object", "properties": {"name": {"type": "string"}, "id": {"type": "integer"}}, "required": ["name"]}),
    "object, any order": Grammar.json_schema(
        {"type": "object", "properties": {"name": {}, "ab": {"type": "number"}, "abc": {}}, "required": ["abc"]}, property_order="any"
    ),
    "closed": Grammar.json_schema({"properties": {"a": {"type": "boolean"}, "ab": {"enum": ["abc", None, 12]}}, "additionalProperties": False}),
    "lengths": Grammar.json_schema({"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 3}, "maxItems": 2}),
    "pattern": Grammar.json_schema({"type": "string", "pattern": "^[a-zé]{1,4}( the)?$"}),
    "pattern of some length": Grammar.json_schema({"type": "string", "pattern": "^(?:[^ ]+ )*[^ ]+12$", "maxLength": 6}),
    "pattern of some length, every spelling": Grammar.json_schema({"type": "array", "items": {"type": "string", "pattern": "a|é", "minLength": 2, "maxLength": 4}, "maxItems": 2}, property_order="any"),
    "pattern of some length beside others": Grammar.json_schema({"anyOf": [{"type": "string", "pattern": "^a+b?$", "maxLength": 3}, {"pattern": "n$", "maxLength": 5, "type": ["string", "integer"]}, {"const": "abc"}]}),
    "pattern keys": Grammar.json_schema({"type": "object", "patternProperties": {"^a": {"type": "null"}, "b$": {"type": ["null", "string"]}}, "additionalProperties": False}),
    "pattern keys beside names": Grammar.json_schema({"type": "object", "properties": {"ab": {"type": "null"}, "abc": {}, "name": {}}, "patternProperties": {"^[a-zé]+$": {"type": "integer"}}, "additionalProperties": {"type": "string"}}, property_order="any"),
    "short pattern keys": Grammar.json_schema({"type": "object", "patternProperties": {"^[a-b]{1,2}$": {"type": "null"}, "^x": {}}, "additionalProperties": False, "minProperties": 2}),
    "few pattern keys": Grammar.json_schema({"type": "object", "patternProperties": {"^(a|ab|é)$": {}}, "additionalProperties": False, "minProperties": 2}),
    "union": Grammar.json_schema({"anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"], "type": "object"}, {"properties": {"a": {"type": "string"}}, "type": "object"}, {"type": "array"}]}),
    "escaped neighbours": Grammar.json_schema({"type": "object", "properties": {"\n": {}, "a": {}, "\u2028": {}}, "required": ["a"], "maxProperties": 1, "additionalProperties": False}),
    "distinct": Grammar.json_schema({"type": "array", "items": {"type": ["string", "integer", "null"], "maxLength": 2}, "uniqueItems": True}),
    "names beyond ASCII": Grammar.json_schema({"type": "object", "properties": {"é": {}, "日本": {"type": "null"}, "éa": {}}, "required": ["日本"]}),
    "names with escapes": Grammar.json_schema({"type": "object", "properties": {'a"b': {}, "a\\": {}, "a": {}, "": {}}, "additionalProperties": False}),
    "names, every spelling": Grammar.json_schema({"type": "object", "properties": {'a"': {}, "ab": {"const": 1}}, "maxProperties": 2}, property_order="any"),
    "undeclared names": Grammar.json_schema({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2}),
    "bounded": Grammar.json_schema({"type": "array", "items": {"type": "integer", "minimum": -3, "maximum": 120}, "minItems": 1}),
    "long": Grammar.json_schema({"type": "string", "minLength": 2, "maxLength": 5}),
    "classes beyond ASCII": Grammar.json_schema({"type": "string", "pattern": "^(é[^日]|日.|[^x]\\p{L}|[à-ÿ]{2,3})*$"}),
    "keys beyond ASCII": Grammar.json_schema({"type": "object", "patternProperties": {"^[^é]\\p{L}*$": {"type": "null"}, "^[à-😀]{1,2}$": {}}, "additionalProperties": False}),
    "distinct beyond ASCII": Grammar.json_schema({"type": "array", "items": {"type": "string", "pattern": "^[^a-y]{1,2}$"}, "uniqueItems": True}),
    "regex beyond ASCII": Grammar.regex("(.[^é]|[à-日]{1,20}a|\\W)+", dialect="python"),
    "spelt out": Grammar.json_schema({"enum": ["ab", "abc", "a b", "", "é", "\n", 12, -1.5, True]}),
    "open pattern": Grammar.json_schema({"type": "array", "items": {"type": "string", "pattern": "ab"}}),
    "recursive": Grammar.json_schema({"type": "array", "items": {"$ref": "#"}}),
    "separators": Grammar.json_schema({"type": "object"}, separators=(", ", ": ")),
    "regex": Grammar.regex("(ab|abc|é+)*12?"),
    "choice": Grammar.choice(["ab", "abc", "name", "日本"]),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAMMARS)
def test_mask_equals_brute_force_on_random_reachable_states(name: str) -> None:
    fsm = compile_grammar(GRAMMARS[name], vocabulary())
    rng = random.Random(name)
    for _ in range(6):
        cursor = fsm.cursor()
        for _ in range(14):
            allowed = mask_of(cursor)
            assert allowed == brute_force(cursor)
            tokens = sorted(allowed - {EOS})
            if not tokens:
                break
            assert cursor.advance(rng.choice(tokens))


@pytest.mark.parametrize("name", GRAMMARS)
def test_random_walks_never_get_stuck_and_end_accepted(name: str) -> None:
    rng = random.Random(name)
    for _ in range(8):
        text = walk(GRAMMARS[name], vocabulary(), rng)
        assert text is None or GRAMMARS[name].accepts(text.decode())


@pytest.mark.parametrize("name", GRAMMARS)
def test_end_tokens_are_set_exactly_where_the_text_may_end(name: str) -> None:
    cursor = compile_grammar(GRAMMARS[name], vocabulary()).cursor()
    rng = random.Random(name)
    for _ in range(20):
        allowed = mask_of(cursor)
        assert (EOS in allowed) == cursor.accepting
        tokens = sorted(allowed - {EOS})
        if not tokens:
            break
        cursor.advance(rng.choice(tokens))


def test_special_unused_and_padding_tokens_are_never_allowed() -> None:
    vocab = vocabulary()
    cursor = compile_grammar(Grammar.json_schema(True), vocab).cursor()
    for token in (1, 2, *range(len(vocab.token_bytes) - 7, vocab.vocab_size)):
        assert token not in mask_of(cursor)
        assert not cursor.advance(token)
    assert not cursor.advance(-1)
    assert not cursor.advance(vocab.vocab_size)


def test_tokens_with_the_same_bytes_are_allowed_together() -> None:
    vocab = vocabulary()
    same = [t for t, data in enumerate(vocab.token_bytes) if data == b"ab"]
    assert len(same) == 2
    assert set(same) <= mask_of(compile_grammar(Grammar.choice(["abc"]), vocab).cursor())


def test_fill_masks_leaves_unconstrained_rows_alone() -> None:
    vocab = vocabulary()
    cursor = compile_grammar(Grammar.json_object(), vocab).cursor()
    rows = np.full((3, vocab.row_words), 7, np.int32)
    fill_masks([None, cursor, None], rows)
    assert (rows[0] == 7).all() and (rows[2] == 7).all()
    alone = np.zeros(vocab.row_words, np.int32)
    cursor.fill_mask(alone)
    assert (rows[1] == alone).all()


def test_a_batch_of_cursors_of_several_grammars_equals_single_masks() -> None:
    vocab = vocabulary()
    rng = random.Random(5)
    cursors = [compile_grammar(grammar, vocab).cursor() for grammar in GRAMMARS.values()]
    for _ in range(6):
        rows = np.full((len(cursors), vocab.row_words), -1, np.int32)
        fill_masks(cursors, rows)
        tokens = []
        for cursor, row in zip(cursors, rows, strict=True):
            alone = np.zeros(vocab.row_words, np.int32)
            cursor.fill_mask(alone)
            assert (row == alone).all()
            tokens.append(rng.choice(sorted(mask_of(cursor)) or [EOS]))
        before = [cursor.finished for cursor in cursors]
        assert advance_many(cursors, tokens) == [not finished for finished in before]


def test_a_batch_of_the_wrong_shape_or_type_is_refused() -> None:
    vocab = vocabulary()
    cursor = compile_grammar(Grammar.json_object(), vocab).cursor()
    for rows in (
        np.zeros((1, vocab.row_words + 1), np.int32),
        np.zeros((2, vocab.row_words), np.int32),
        np.zeros((1, vocab.row_words), np.int64),
        np.zeros((1, 2 * vocab.row_words), np.int32)[:, ::2],
    ):
        with pytest.raises(ValueError, match="mask row"):
            fill_masks([cursor], rows)


def test_a_row_of_the_wrong_shape_or_type_is_refused() -> None:
    vocab = vocabulary()
    cursor = compile_grammar(Grammar.json_object(), vocab).cursor()
    with pytest.raises(ValueError, match="mask row"):
        cursor.fill_mask(np.zeros(vocab.row_words + 1, np.int32))
    with pytest.raises(ValueError, match="mask row"):
        cursor.fill_mask(np.zeros(vocab.row_words, np.int64))


def test_masks_are_the_same_when_their_memory_is_tiny() -> None:
    from formcast.fsm_cache.token_fsm import TokenFSM

    vocab = vocabulary()
    small = TokenFSM(GRAMMARS["object"].compile(), vocab, max_bytes=1)
    large = compile_grammar(GRAMMARS["object"], vocab)
    a, b = small.cursor(), large.cursor()
    rng = random.Random(1)
    for _ in range(20):
        allowed = mask_of(a)
        assert allowed == mask_of(b)
        tokens = sorted(allowed - {EOS})
        if not tokens:
            break
        token = rng.choice(tokens)
        assert a.advance(token) and b.advance(token)


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_mask_says_whether_nothing_but_the_end_is_left(name: str) -> None:
    rng = random.Random(name)
    cursor = compile_grammar(GRAMMARS[name], vocabulary()).cursor()
    for _ in range(25):
        allowed = mask_of(cursor)
        assert cursor.mask().is_end == (allowed == {EOS})
        if not cursor.advance(rng.choice(sorted(allowed - {EOS}) or [EOS])):
            break


def test_a_leaf_may_end_inside_more_bytes_than_there_are_tokens() -> None:
    long = [bytes([letter]) * 20_000 for letter in b"abcdefgh"]
    vocab = Vocabulary([*long, b"-", None], eos_token_ids=[9])
    cursor = compile_grammar(Grammar.regex("([^-][^-])*[^-]?"), vocab).cursor()
    assert mask_of(cursor) == {*range(8), 9}


@pytest.mark.parametrize("pattern", ["[^}]{0,1}", "[^}]{0,3}", "[^}]{1,4}-", "[^}]{2,4}", '"([^"]|""){0,3}"', "(?![^@]{5})[^.@]+(\\.[^.@]+)*"])
def test_tokens_of_counted_characters_of_several_bytes(pattern: str) -> None:
    words = ["日", "日本", "a日b", "ab日", "aa", "aaaaa", "日本日", "a日本", "日本日本", "a-", "日-x", '"a""b"', '""', '"日""', "a.b", "a.日.b", "a..b"]
    broken = [b"\xe6", b"\xe6\x97", b"a\xe6\x97", b"\x97", b"\xa5a", b"\xe6a", "日".encode() + b"\xe6\x9c", "日".encode() + b"\x9c"]
    tokens = [*(word.encode() for word in words), *broken, None]
    vocab = Vocabulary(tokens, eos_token_ids=[len(tokens) - 1])
    fsm = compile_grammar(Grammar.regex(pattern, "python"), vocab)
    for seed in range(6):
        cursor, rng = fsm.cursor(), random.Random(seed)
        for _ in range(4):
            mask = mask_of(cursor)
            assert mask == brute_force(cursor)
            allowed = sorted(mask - {len(tokens) - 1})
            if not allowed:
                break
            cursor.advance(rng.choice(allowed))
