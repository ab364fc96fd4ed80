"""The tokenizer a GGUF file describes, as a `tokenizers.Tokenizer`.

A file holds the vocabulary, the merges or scores, and two names: the model (`gpt2` is byte-level BPE, `llama` is
sentencepiece BPE) and the pre-tokenizer. The rest (normaliser, decoder, added tokens) follows from them. A name that is
not in the tables is refused: guessing would give other token ids than the model was trained with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE

from ..errors import UnsupportedModel
from .bpe_merges import merges_by_position, merges_by_score
from .gguf_file import GgufFile

_WORD_MARK = "\u2581"  # sentencepiece's visible space
_GEMMA_ARCHITECTURES = frozenset({"gemma", "gemma2", "gemma3"})


class TokenKind(IntEnum):
    """`tokenizer.ggml.token_type` (llama.h, `llama_token_type`)."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


_SPECIAL = frozenset({TokenKind.CONTROL, TokenKind.UNKNOWN})


@dataclass(frozen=True, kw_only=True)
class GgufVocabulary:
    """The token tables of a file; `tokens` and `kinds` are indexed by token id."""

    tokens: list[str]
    kinds: list[int]
    scores: list[float] | None
    merges: list[str] | None
    bos_token_id: int | None
    eos_token_id: int | None
    unknown_token_id: int | None
    add_bos: bool
    add_eos: bool

    def token(self, token_id: int | None) -> str | None:
        """The token of an id, None for no id."""
        return None if token_id is None else self.tokens[token_id]


def read_vocabulary(file: GgufFile) -> GgufVocabulary:
    """The token tables of a file.

    Raises:
        UnsupportedModel: tables are missing, of different length, or an id lies outside of them.
    """
    tokens = file.require("tokenizer.ggml.tokens", list)
    kinds: list[int] = file.get("tokenizer.ggml.token_type", list) or [TokenKind.NORMAL.value] * len(tokens)
    scores = file.get("tokenizer.ggml.scores", list)
    ids = {name: file.get(f"tokenizer.ggml.{name}", int) for name in ("bos_token_id", "eos_token_id", "unknown_token_id")}
    if len(kinds) != len(tokens) or (scores is not None and len(scores) != len(tokens)):
        raise UnsupportedModel(f"{file.path}: the tokenizer's tables have different lengths")
    for name, token_id in ids.items():
        if token_id is not None and not 0 <= token_id < len(tokens):
            raise UnsupportedModel(f"{file.path}: {name} {token_id} is not in the vocabulary")
    adds_bos = _split(file).add_bos if file.get("tokenizer.ggml.model", str) == "gpt2" else True
    return GgufVocabulary(
        tokens=tokens,
        kinds=kinds,
        scores=scores,
        merges=file.get("tokenizer.ggml.merges", list),
        add_bos=file.get("tokenizer.ggml.add_bos_token", bool, adds_bos),
        add_eos=file.get("tokenizer.ggml.add_eos_token", bool, False),
        **ids,
    )


def build_tokenizer(file: GgufFile, vocabulary: GgufVocabulary) -> Tokenizer:
    """The tokenizer of a file. `encode` adds the begin-of-text token where the file says so.

    Raises:
        UnsupportedModel: a model or pre-tokenizer that is not known, or malformed tables.
    """
    name = file.require("tokenizer.ggml.model", str)
    build = _MODELS.get(name)
    if build is None:
        raise UnsupportedModel(f"{file.path}: tokenizer model {name!r} is not supported (supported: {', '.join(sorted(_MODELS))})")
    tokenizer = build(file, vocabulary)
    _add_tokens(tokenizer, vocabulary)
    _add_post_processor(tokenizer, vocabulary)
    return tokenizer


# ---------------------------------------------------------------------------------------------------- byte level


@dataclass(frozen=True, kw_only=True)
class _Split:
    """How a byte-level vocabulary's training text was cut.

    Attributes:
        pattern: what a piece is, or None for GPT-2's.
        whole_words: a piece that is itself a token is taken whole, whatever the merges say.
        add_bos: the begin-of-text token is added where the file does not say.
    """

    pattern: str | None = None
    whole_words: bool = False
    add_bos: bool = False


_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS_AND_NUMBERS = _CONTRACTIONS + r"|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{number}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = _Split(pattern=_WORDS_AND_NUMBERS.format(number=r"\p{N}{1,3}"), whole_words=True, add_bos=True)
_QWEN2 = _Split(pattern=_WORDS_AND_NUMBERS.format(number=r"\p{N}"))

_SPLITS: dict[str, _Split] = {
    "default": _Split(),
    "gpt-2": _Split(),
    "smollm": _Split(),  # as transformers converts it; llama.cpp also cuts off every digit by itself
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
}


def _byte_level(file: GgufFile, vocabulary: GgufVocabulary) -> Tokenizer:
    split = _split(file)
    if vocabulary.merges is None:
        raise UnsupportedModel(f"{file.path} has a byte-level tokenizer without merges")
    ids = {_byte_spelling(token, kind): index for index, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.kinds, strict=True))}
    merges = [_merge(file, line) for line in vocabulary.merges]
    tokenizer = Tokenizer(_bpe(file, vocab=ids, merges=merges, ignore_merges=split.whole_words))
    tokenizer.pre_tokenizer = _byte_level_pre_tokenizer(split)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _split(file: GgufFile) -> _Split:
    name = file.get("tokenizer.ggml.pre", str, "default")
    if name not in _SPLITS:
        raise UnsupportedModel(f"{file.path}: pre-tokenizer {name!r} is not supported (supported: {', '.join(sorted(_SPLITS))})")
    return _SPLITS[name]


def _byte_level_pre_tokenizer(split: _Split) -> pre_tokenizers.PreTokenizer:
    if split.pattern is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    cut = pre_tokenizers.Split(Regex(split.pattern), behavior="isolated")
    return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _byte_letters() -> dict[int, str]:
    """The printable character that stands for each byte in byte-level vocabularies (GPT-2's `bytes_to_unicode`)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + index) for index, byte in enumerate(others)}


_BYTE_LETTERS = _byte_letters()
_BYTE_ALPHABET = frozenset(_BYTE_LETTERS.values())


def _byte_spelling(token: str, kind: int) -> str:
    """A token as the vocabulary must spell it: text outside the byte alphabet is an ordinary token written raw."""
    if kind in _SPECIAL or kind == TokenKind.USER_DEFINED or _BYTE_ALPHABET.issuperset(token):
        return token
    return "".join(_BYTE_LETTERS[byte] for byte in token.encode("utf-8"))


def _merge(file: GgufFile, line: str) -> tuple[str, str]:
    left, separator, right = line.partition(" ")
    if not separator:
        raise UnsupportedModel(f"{file.path}: merge {line!r} is not a pair")
    return left, right


# ------------------------------------------------------------------------------------------------- sentencepiece


def _sentencepiece(file: GgufFile, vocabulary: GgufVocabulary) -> Tokenizer:
    is_gemma = file.architecture in _GEMMA_ARCHITECTURES
    tokens = [_space_run(token) for token in vocabulary.tokens] if is_gemma else vocabulary.tokens
    ids = {token: index for index, token in enumerate(tokens)}
    merges = _sentencepiece_merges(file, vocabulary, ids, by_position=is_gemma)
    unknown = vocabulary.token(vocabulary.unknown_token_id)
    tokenizer = Tokenizer(_bpe(file, vocab=ids, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    has_prefix = file.get("tokenizer.ggml.add_space_prefix", bool, not is_gemma)
    if is_gemma:
        tokenizer.normalizer = normalizers.Replace(" ", _WORD_MARK)
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    else:
        mark_spaces = normalizers.Replace(" ", _WORD_MARK)
        # Sentencepiece's `add_dummy_prefix`: text that starts with a space gets another one.
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(_WORD_MARK), mark_spaces]) if has_prefix else mark_spaces
    steps: list[decoders.Decoder] = [decoders.Replace(_WORD_MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    if has_prefix:
        steps.append(decoders.Strip(content=" ", left=1))
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


def _space_run(token: str) -> str:
    """Gemma files spell runs of two and more spaces raw, but for the single one."""
    return _WORD_MARK * len(token) if token and not token.strip(" ") else token


def _sentencepiece_merges(file: GgufFile, vocabulary: GgufVocabulary, ids: dict[str, int], *, by_position: bool) -> list[tuple[str, str]]:
    if vocabulary.merges is not None:
        return [_merge(file, line) for line in vocabulary.merges]
    if by_position:
        return merges_by_position(ids)
    if vocabulary.scores is None:
        raise UnsupportedModel(f"{file.path} has a sentencepiece tokenizer without scores")
    return merges_by_score(ids, vocabulary.scores)


# --------------------------------------------------------------------------------------------------- what is shared


def _bpe(file: GgufFile, **options: Any) -> BPE:
    try:
        return BPE(**options)
    except Exception as error:  # the binding raises bare `Exception` for a merge outside the vocabulary
        raise UnsupportedModel(f"{file.path}: malformed tokenizer: {error}") from error


def _add_tokens(tokenizer: Tokenizer, vocabulary: GgufVocabulary) -> None:
    """Control tokens and the unknown token are special; user-defined ones are matched whole but decode as text."""
    kinds = list(zip(vocabulary.tokens, vocabulary.kinds, strict=True))
    known = tokenizer.get_vocab(with_added_tokens=False)
    control = [text for text, kind in kinds if kind in _SPECIAL and text in known]
    defined = [text for text, kind in kinds if kind == TokenKind.USER_DEFINED and text in known]
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in control])
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in defined])


def _add_post_processor(tokenizer: Tokenizer, vocabulary: GgufVocabulary) -> None:
    bos = vocabulary.token(vocabulary.bos_token_id) if vocabulary.add_bos else None
    eos = vocabulary.token(vocabulary.eos_token_id) if vocabulary.add_eos else None
    around = [(text, token_id) for text, token_id in ((bos, vocabulary.bos_token_id), (eos, vocabulary.eos_token_id)) if text is not None]
    if not around:
        return

    def wrapped(sequence: str, type_id: int) -> list[str]:
        head = [f"{bos}:{type_id}"] if bos is not None else []
        tail = [f"{eos}:{type_id}"] if eos is not None else []
        return [*head, f"{sequence}:{type_id}", *tail]

    tokenizer.post_processor = processors.TemplateProcessing(
        single=wrapped("$A", 0), pair=[*wrapped("$A", 0), *wrapped("$B", 1)], special_tokens=around
    )


_MODELS: dict[str, Callable[[GgufFile, GgufVocabulary], Tokenizer]] = {"gpt2": _byte_level, "llama": _sentencepiece}
