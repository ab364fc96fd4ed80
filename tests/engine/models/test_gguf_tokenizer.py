# ruff: noqa: RUF001 (other scripts are what is tested)
"""Tokenizers from GGUF files give the ids that the vocabulary was trained to give."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from gguf_samples import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, byte_level_metadata, byte_level_tokenizer, write_gguf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, pre_tokenizers

from formcast.engine.errors import UnsupportedModel
from formcast.engine.models.bpe_merges import MAX_TOKEN_LENGTH, merges_by_position, merges_by_score
from formcast.engine.models.gguf_file import GgufFile
from formcast.engine.models.gguf_tokenizer import build_tokenizer, read_vocabulary

ANY_TEXT = st.text(st.one_of(st.sampled_from(list(" \n\t'.,019aAbBéщ世م🎉▁<|")), st.characters(exclude_categories=["Cs"])), max_size=40)
reuses_fixtures = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def tokenizer_of(tmp_path: Path, metadata: dict[str, Any], architecture: str = "llama") -> Tokenizer:
    file = GgufFile(write_gguf(tmp_path / "t.gguf", architecture, metadata, {}))
    return build_tokenizer(file, read_vocabulary(file))


# ----------------------------------------------------------------------------------------------------- byte level


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    return byte_level_tokenizer()


@pytest.fixture(scope="module")
def from_file(trained: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return tokenizer_of(tmp_path_factory.mktemp("t"), byte_level_metadata(trained))


@given(text=ANY_TEXT)
def test_byte_level_ids_and_text(trained: Tokenizer, from_file: Tokenizer, text: str):
    ids = from_file.encode(text).ids
    assert ids == trained.encode(text).ids
    assert from_file.decode(ids, skip_special_tokens=False) == text


def test_control_tokens_are_matched_whole_and_skipped_in_text(from_file: Tokenizer):
    encoding = from_file.encode("<|im_start|>a<|im_end|>")
    assert (encoding.ids[0], encoding.ids[-1]) == (1, 2)
    assert from_file.decode(encoding.ids) == "a"


LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@reuses_fixtures
@given(text=ANY_TEXT)
def test_llama3_splits(trained: Tokenizer, tmp_path: Path, text: str):
    # Merges only join within a piece, so the ids of the whole are the ids of the pieces.
    tokenizer = tokenizer_of(tmp_path, {**byte_level_metadata(trained), "tokenizer.ggml.pre": "llama-bpe"})
    pieces = [piece for piece, _ in pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated").pre_tokenize_str(text)]
    expected = [token_id for piece in pieces for token_id in tokenizer.encode(piece, add_special_tokens=False).ids]
    assert tokenizer.encode(text, add_special_tokens=False).ids == expected


def test_llama3_adds_bos_unless_the_file_says_otherwise(trained: Tokenizer, tmp_path: Path):
    metadata = {**byte_level_metadata(trained), "tokenizer.ggml.pre": "llama-bpe"}
    assert tokenizer_of(tmp_path, metadata).encode("a").ids[0] == 1
    metadata["tokenizer.ggml.add_bos_token"] = False
    assert tokenizer_of(tmp_path, metadata).encode("a").ids[0] != 1


def test_llama3_takes_a_word_that_is_a_token_whole(trained: Tokenizer, tmp_path: Path):
    metadata = byte_level_metadata(trained)
    whole = [*metadata["tokenizer.ggml.tokens"], "qqq"]
    metadata |= {"tokenizer.ggml.tokens": whole, "tokenizer.ggml.token_type": [*metadata["tokenizer.ggml.token_type"], NORMAL]}
    assert len(tokenizer_of(tmp_path, metadata).encode("qqq").ids) == 3  # no merge makes it
    metadata["tokenizer.ggml.pre"] = "llama-bpe"
    assert tokenizer_of(tmp_path, metadata).encode("qqq", add_special_tokens=False).tokens == ["qqq"]


def test_bos_and_eos_around_text(trained: Tokenizer, tmp_path: Path):
    metadata = {**byte_level_metadata(trained), "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True}
    tokenizer = tokenizer_of(tmp_path, metadata)
    plain = tokenizer.encode("a", add_special_tokens=False).ids
    assert tokenizer.encode("a").ids == [1, *plain, 2]
    assert tokenizer.encode("a", "a").ids == [1, *plain, 2, 1, *plain, 2]


def test_tokens_outside_the_byte_alphabet_are_spelt_in_it(trained: Tokenizer, tmp_path: Path):
    metadata = byte_level_metadata(trained)
    extra = [("two words", USER_DEFINED), ("raw token", NORMAL), ("<｜end▁mark｜>", CONTROL)]
    metadata["tokenizer.ggml.tokens"] = [*metadata["tokenizer.ggml.tokens"], *(text for text, _ in extra)]
    metadata["tokenizer.ggml.token_type"] = [*metadata["tokenizer.ggml.token_type"], *(kind for _, kind in extra)]
    tokenizer = tokenizer_of(tmp_path, metadata)
    assert tokenizer.encode("two words").ids == [400]
    assert tokenizer.encode("<｜end▁mark｜>").ids == [402]
    assert tokenizer.decode([400, 401]) == "two wordsraw token"
    assert tokenizer.decode([402]) == ""
    assert tokenizer.get_vocab_size() == 403


# -------------------------------------------------------------------------------------------------- sentencepiece

WORDS = ["▁▁", "▁▁▁", "▁a", "ab", "▁ab", "abc", "▁abc", "bc", "cd", "abcd", "aa", "aaa", "щз", "世界", "▁щз"]
LETTERS = list("▁abcdeщз世界.\n")


def sentencepiece_metadata(words: Sequence[str] = WORDS, *, scores: Sequence[float] | None = None) -> dict[str, Any]:
    """A sentencepiece vocabulary: specials, bytes, words from best to worst, then letters."""
    specials = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("<mark>", USER_DEFINED)]
    entries = [*specials, *((f"<0x{byte:02X}>", BYTE) for byte in range(256)), *((word, NORMAL) for word in [*words, *LETTERS])]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [text for text, _ in entries],
        "tokenizer.ggml.token_type": [kind for _, kind in entries],
        "tokenizer.ggml.scores": list(scores) if scores is not None else [-float(index) for index in range(len(entries))],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def greedy_pieces(text: str, words: Sequence[str]) -> list[str]:
    """Sentencepiece's rule: of all neighbours whose union is a word, join the best word first, longer left parts first."""
    rank = {word: index for index, word in enumerate(words)}
    pieces = list(text)
    while True:
        joins = [
            (rank[left + right], -len(left), position)
            for position, (left, right) in enumerate(itertools.pairwise(pieces))
            if left + right in rank
        ]
        if not joins:
            return pieces
        position = min(joins)[2]
        pieces[position : position + 2] = [pieces[position] + pieces[position + 1]]


def spelt(pieces: Sequence[str], tokens: Sequence[str]) -> list[str]:
    """Pieces that are no token fall back to their bytes."""
    known = set(tokens)
    return [part for piece in pieces for part in ([piece] if piece in known else [f"<0x{byte:02X}>" for byte in piece.encode()])]


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return tokenizer_of(tmp_path_factory.mktemp("g"), sentencepiece_metadata(), architecture="gemma3")


LETTER_TEXT = st.text(st.sampled_from(list(" abcdeщз世界.\nx🎉")), max_size=30)


@given(text=LETTER_TEXT)
def test_gemma_ids(gemma: Tokenizer, text: str):
    marked = text.replace(" ", "▁")
    expected = ["<s>", *spelt(greedy_pieces(marked, WORDS), sentencepiece_metadata()["tokenizer.ggml.tokens"])]
    encoding = gemma.encode(text)
    assert encoding.tokens == expected
    assert gemma.decode(encoding.ids) == text


def test_gemma_spells_runs_of_spaces_raw(tmp_path: Path):
    metadata = sentencepiece_metadata()
    metadata["tokenizer.ggml.tokens"] = [" " * len(t) if set(t) == {"▁"} and len(t) > 1 else t for t in metadata["tokenizer.ggml.tokens"]]
    assert tokenizer_of(tmp_path, metadata, architecture="gemma3").encode("a  b", add_special_tokens=False).tokens == ["a", "▁▁", "b"]


@given(text=LETTER_TEXT)
def test_llama_prefixes_a_space_and_strips_it_again(llama: Tokenizer, text: str):
    ids = llama.encode(text).ids
    assert ids[0] == 1
    assert llama.decode(ids) == text


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return tokenizer_of(tmp_path_factory.mktemp("l"), sentencepiece_metadata())


def test_llama_ids(llama: Tokenizer):
    assert llama.encode("abc  щз").tokens == ["<s>", "▁abc", "▁▁", "щз"]
    assert llama.encode("a<mark>b").tokens == ["<s>", "▁a", "<mark>", "▁", "b"]


def test_scores_decide_not_positions(tmp_path: Path):
    scores = [0.0] * (4 + 256) + [-1.0, -2.0] + [-9.0] * len(LETTERS)
    plain = tokenizer_of(tmp_path, sentencepiece_metadata(["ab", "bc"], scores=scores))
    assert plain.encode("abc", add_special_tokens=False).tokens[-2:] == ["ab", "c"]
    scores[4 + 256 : 4 + 256 + 2] = [-2.0, -1.0]
    turned = tokenizer_of(tmp_path, sentencepiece_metadata(["ab", "bc"], scores=scores))
    assert turned.encode("abc", add_special_tokens=False).tokens[-2:] == ["a", "bc"]


def test_a_sentencepiece_file_needs_scores(tmp_path: Path):
    metadata = sentencepiece_metadata()
    del metadata["tokenizer.ggml.scores"]
    with pytest.raises(UnsupportedModel, match="without scores"):
        tokenizer_of(tmp_path, metadata)


# --------------------------------------------------------------------------------------------------------- merges


def ids_of(tokens: Sequence[str]) -> dict[str, int]:
    return {token: index for index, token in enumerate(tokens)}


def test_merges_by_position_are_all_cuts_in_order():
    assert merges_by_position(ids_of(["ab", "abc", "a", "b", "c", "bc"])) == [("a", "b"), ("ab", "c"), ("a", "bc"), ("b", "c")]


def test_merges_by_score_are_sorted_best_first():
    ids = ids_of(["ab", "abc", "a", "b", "c", "bc"])
    assert merges_by_score(ids, [1.0, 3.0, 0.0, 0.0, 0.0, 2.0]) == [("ab", "c"), ("a", "bc"), ("b", "c"), ("a", "b")]


@given(tokens=st.lists(st.text("abc", min_size=1, max_size=5), unique=True, max_size=30))
def test_merges_are_exactly_the_pairs_that_make_a_token(tokens: list[str]):
    ids = ids_of(tokens)
    pairs = {(left, right) for left in tokens for right in tokens if left + right in ids}
    assert set(merges_by_position(ids)) == pairs
    assert len(merges_by_position(ids)) == len(pairs)


def test_a_monstrous_token_is_refused():
    with pytest.raises(UnsupportedModel, match="1025 characters"):
        merges_by_position(ids_of(["x" * (MAX_TOKEN_LENGTH + 1)]))
