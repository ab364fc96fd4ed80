"""Exact bytes of tokens, for byte-level and sentencepiece-like tokenizers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from formcast import Grammar, Vocabulary, compile_grammar
from formcast.fsm_cache import VocabularyError


def id_of(tokenizer: Tokenizer, text: str) -> int:
    token = tokenizer.token_to_id(text)
    assert token is not None
    return token


def byte_level() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(alphabet)}
    merges = [("Ġ", "t"), ("a", "b"), ("Ã", "©")]
    for a, b in merges:
        vocab[a + b] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|im_end|>", "<|im_start|>"])
    tokenizer.add_tokens([AddedToken("<added é>", special=False)])
    return tokenizer


def sentencepiece() -> Tokenizer:
    pieces = ["<unk>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", "▁the", "é", "ab"]
    tokenizer = Tokenizer(models.BPE(vocab={p: i for i, p in enumerate(pieces)}, merges=[], unk_token="<unk>", byte_fallback=True))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(["<unk>", "</s>"])
    return tokenizer


def test_byte_level_tokens_are_their_bytes() -> None:
    tokenizer = byte_level()
    vocab = Vocabulary.from_tokenizer(tokenizer)
    for text, expected in [("Ġt", b" t"), ("ab", b"ab"), ("Ã©", "é".encode()), ("Ċ", b"\n"), ("<added é>", "<added é>".encode())]:
        assert vocab.token_bytes[id_of(tokenizer, text)] == expected
    assert sorted(b for b in vocab.token_bytes if b and len(b) == 1) == [bytes((b,)) for b in range(256)]
    assert vocab.eos_token_ids == {id_of(tokenizer, "<|im_end|>")}
    assert vocab.token_bytes[id_of(tokenizer, "<|im_start|>")] is None


def test_every_text_is_the_bytes_of_its_tokens() -> None:
    tokenizer = byte_level()
    vocab = Vocabulary.from_tokenizer(tokenizer)
    for text in ("ab the é 日本 😀\n\t", '{"a": [1.5e3, "\\u00e9"]}'):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert b"".join(vocab.token_bytes[i] or b"?" for i in ids) == text.encode()


def test_sentencepiece_bytes_and_spaces() -> None:
    tokenizer = sentencepiece()
    vocab = Vocabulary.from_tokenizer(tokenizer)
    for text, expected in [("<0x0A>", b"\n"), ("<0xFF>", b"\xff"), ("▁the", b" the"), ("é", "é".encode()), ("</s>", None), ("<unk>", None)]:
        assert vocab.token_bytes[id_of(tokenizer, text)] == expected
    assert vocab.eos_token_ids == {1}


def test_padding_and_several_end_tokens() -> None:
    tokenizer = byte_level()
    ends = [id_of(tokenizer, "<|im_end|>"), id_of(tokenizer, "ab")]
    vocab = Vocabulary.from_tokenizer(tokenizer, vocab_size=320, eos_token_ids=ends)
    assert vocab.vocab_size == 320 and vocab.row_words == 10
    assert vocab.token_bytes[ends[1]] is None, "an end token is never content"
    cursor = compile_grammar(Grammar.choice(["t"]), vocab).cursor()
    assert cursor.advance(id_of(tokenizer, "t"))
    assert cursor.fork().advance(ends[0]) and cursor.fork().advance(ends[1])


def test_a_path_or_its_folder_will_do(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    byte_level().save(str(path))
    assert Vocabulary.from_tokenizer(path).token_bytes == Vocabulary.from_tokenizer(tmp_path).token_bytes


def test_what_cannot_be_read_is_refused() -> None:
    unknown = Tokenizer(models.WordLevel({"a": 0, "</s>": 1}, unk_token="a"))
    with pytest.raises(VocabularyError, match="not supported"):
        Vocabulary.from_tokenizer(unknown)
    without_end = byte_level()
    with pytest.raises(VocabularyError, match="end token"):
        Vocabulary.from_tokenizer(without_end, eos_token_ids=[])
    with pytest.raises(VocabularyError, match="outside"):
        Vocabulary.from_tokenizer(without_end, eos_token_ids=[10_000])
    with pytest.raises(VocabularyError, match="fast tokenizer"):
        Vocabulary.from_tokenizer(object(), eos_token_ids=[0])


def test_forced_tokens_are_cut_as_the_tokenizer_cuts() -> None:
    tokenizer = byte_level()
    vocab = Vocabulary.from_tokenizer(tokenizer)
    schema = {"type": "object", "properties": {"abc the": {"type": "null"}}, "required": ["abc the"], "additionalProperties": False}
    cursor = compile_grammar(Grammar.json_schema(schema, whitespace="compact"), vocab).cursor()
    whole = tokenizer.encode(json.dumps({"abc the": None}, separators=(",", ":")), add_special_tokens=False).ids
    for k in range(3):
        draft = cursor.forced_tokens()
        assert draft == whole[k : k + len(draft)] and len(draft) >= 3
        probe = cursor.fork()
        assert all(probe.advance(t) for t in draft)
        assert cursor.advance(whole[k])
    assert cursor.num_tokens == 3
