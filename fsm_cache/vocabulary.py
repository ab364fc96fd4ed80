"""The exact bytes of every token, from the tokenizer's own tables, never through decoded text."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..grammar.errors import FormcastError
from ..grammar.structural_tag.symbols import TOKEN_LEAD, token_spelling
from .trie import Trie

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from .leaf_tables import LeafTables
    from .loops import Loops
    from .scratch import Scratch
    from .shared_masks import SharedMasks
    from .store import ArrayStore
    from .string_tables import StringTables

_END_NAMES = ("<|eot_id|>", "<|im_end|>", "<end_of_turn>", "</s>", "<|endoftext|>", "<|end_of_text|>", "<eos>")
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_WORD_START = "\u2581"  # sentencepiece writes a space so


class VocabularyError(FormcastError):
    """The tokenizer's tables do not say which bytes its tokens stand for."""


class Vocabulary:
    """Tokens as bytes.

    Args:
        token_bytes: bytes of each token id; None for special and unused ids, which no text contains.
        eos_token_ids: ids that end the text.
        vocab_size: width of the logits; ids from `len(token_bytes)` on are padding.
        encode: the tokenizer's own segmentation of a text, without special tokens; None where it is not known.
        special_tokens: ids by name of the special tokens that a grammar may name. They have no bytes, and end tokens are none of them.
        store: keeps what takes long to make for the next process.

    Attributes:
        row_words: words of one mask row, ceil(vocab_size / 32).
        named_tokens: ids by name of the special tokens, None for end tokens.
    """

    def __init__(
        self,
        token_bytes: Sequence[bytes | None],
        eos_token_ids: Collection[int],
        vocab_size: int | None = None,
        encode: Callable[[str], list[int]] | None = None,
        special_tokens: Mapping[str, int] | None = None,
        store: ArrayStore | None = None,
    ):
        self.vocab_size = len(token_bytes) if vocab_size is None else vocab_size
        self.eos_token_ids = frozenset(eos_token_ids)
        if not self.eos_token_ids:
            raise VocabularyError("no end token is known; pass eos_token_ids")
        for eos in self.eos_token_ids:
            if not 0 <= eos < self.vocab_size:
                raise VocabularyError(f"the end token {eos} is outside the vocabulary of {self.vocab_size}")
        self.encode = encode
        self._store = store
        usable = list(token_bytes[: self.vocab_size])
        usable += [None] * (self.vocab_size - len(usable))
        for eos in self.eos_token_ids:
            usable[eos] = None
        self.row_words = (self.vocab_size + 31) // 32
        self._scratch = threading.local()
        self.token_bytes: tuple[bytes | None, ...] = tuple(b or None for b in usable)
        named = {name: i for name, i in (special_tokens or {}).items() if i < self.vocab_size}
        self.named_tokens = {name: None if i in self.eos_token_ids else i for name, i in named.items()}
        self.special_tokens = {name: i for name, i in self.named_tokens.items() if i is not None}
        if any(self.token_bytes[i] is not None for i in self.special_tokens.values()):
            raise VocabularyError("a special token stands for no text, but one of them has bytes")

    @staticmethod
    def from_tokenizer(
        tokenizer: Any,
        vocab_size: int | None = None,
        eos_token_ids: Collection[int] | None = None,
        store: ArrayStore | None = None,
    ) -> Vocabulary:
        """The vocabulary of a `tokenizers.Tokenizer`, a fast transformers tokenizer, or a path to `tokenizer.json` or its folder.

        Args:
            tokenizer: see above.
            vocab_size: width of the logits; default the tokenizer's own size.
            eos_token_ids: ids that end the text; default the tokenizer's end token, else well-known names.
            store: see `Vocabulary`.

        Raises:
            VocabularyError: the tokenizer's kind is not known, or it has no end token.

        Cost: about 0.3 s for 128,000 tokens, half of it for the trie of all tokens, where the `store` has none.
        """
        if eos_token_ids is None:
            eos = getattr(tokenizer, "eos_token_id", None)
            eos_token_ids = [eos] if isinstance(eos, int) else eos
        backend = _backend(tokenizer)
        if eos_token_ids is None:
            eos_token_ids = [i for i in map(backend.token_to_id, _END_NAMES) if i is not None][:1]

        def encode(text: str) -> list[int]:
            return backend.encode(text, add_special_tokens=False).ids

        special = {token.content: i for i, token in backend.get_added_tokens_decoder().items() if token.special}
        vocabulary = Vocabulary(_token_bytes(backend), eos_token_ids, vocab_size, encode, special, store)
        vocabulary.prepare()
        return vocabulary

    def prepare(self) -> None:
        """Makes now what masks of any grammar need, rather than with the first of them."""
        _ = self.tries

    @property
    def spellings(self) -> tuple[bytes | None, ...]:
        """What an automaton reads for each token: its bytes, or those that stand for a special token. None for tokens that no grammar
        takes, such as those with a byte that begins special tokens and is in no text."""
        return self._spellings

    @cached_property
    def _spellings(self) -> tuple[bytes | None, ...]:
        spelt = [None if data is None or TOKEN_LEAD in data else data for data in self.token_bytes]
        for i in self.special_tokens.values():
            spelt[i] = token_spelling(i)
        return tuple(spelt)

    @cached_property
    def unfinished(self) -> tuple[int, ...]:
        """Tokens after which a text may stand inside a character (RFC 3629): those that end with the beginning of one, or hold
        nothing but the middle of one."""
        return tuple(i for i, data in enumerate(self.token_bytes) if data is not None and _is_unfinished(data))

    @cached_property
    def trie(self) -> Trie:
        """All tokens that an automaton can read."""
        if self._store is not None:
            from .stored_trie import stored_trie

            return stored_trie(self._store, self.spellings, self.vocab_size)
        return Trie.build([(b, i) for i, b in enumerate(self.spellings) if b is not None], self.vocab_size)

    @cached_property
    def string_tables(self) -> tuple[StringTables, StringTables]:
        """Masks inside strings in every spelling, and in the tidy one."""
        from .string_tables import StringTables

        return StringTables(self, tidy=False), StringTables(self, tidy=True)

    @cached_property
    def tries(self) -> tuple[Trie, ...]:
        """By number, see `kernels.kit`."""
        every, tidy = self.string_tables
        return self.trie, every.suffixes, tidy.suffixes, every.closing, tidy.closing

    @cached_property
    def leaf_tables(self) -> LeafTables:
        """What tokens do inside leaves that grammars share."""
        from .leaf_tables import LeafTables

        return LeafTables(self)

    @cached_property
    def masks(self) -> SharedMasks:
        """Masks that states have in common."""
        from .shared_masks import SharedMasks

        return SharedMasks()

    @property
    def shared_bytes(self) -> int:
        """Memory of masks and tables of leaves that automata over this vocabulary hold, each counted once."""
        return self.masks.num_bytes + self.leaf_tables.held_bytes

    @cached_property
    def loops(self) -> Loops:
        """Tokens that stay in one state."""
        from .loops import Loops

        return Loops(self)

    @property
    def scratch(self) -> Scratch:
        """Working memory of the calling thread."""
        try:
            return self._scratch.value
        except AttributeError:
            from .scratch import Scratch

            scratch = self._scratch.value = Scratch(self)
            return scratch

    @cached_property
    def eos_array(self) -> np.ndarray:
        return np.array(sorted(self.eos_token_ids), np.int32)


def _is_unfinished(data: bytes) -> bool:
    at = len(data) - 1
    while at >= 0 and data[at] & 0xC0 == 0x80:
        at -= 1
    if at < 0:
        return True
    length = 1 + (data[at] >= 0xC0) + (data[at] >= 0xE0) + (data[at] >= 0xF0)
    return len(data) - at < length


def _backend(tokenizer: Any) -> Tokenizer:
    from tokenizers import Tokenizer

    if isinstance(tokenizer, str | os.PathLike):
        path = os.fspath(tokenizer)
        return Tokenizer.from_file(os.path.join(path, "tokenizer.json") if os.path.isdir(path) else path)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not isinstance(backend, Tokenizer):
        raise VocabularyError(f"{type(tokenizer).__name__} has no fast tokenizer behind it")
    return backend


def _decoders(tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """The decoder's steps as plain data."""
    decoder = tokenizer.decoder
    if decoder is None:
        return []
    state = json.loads(decoder.__getstate__())
    return state["decoders"] if state["type"] == "Sequence" else [state]


def _byte_of_char() -> dict[str, int]:
    """Byte-level BPE writes each byte as one printable character (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(b): b for b in printable}
    rest = (b for b in range(0x100) if b not in set(printable))
    table.update({chr(0x100 + n): b for n, b in enumerate(rest)})
    return table


def _token_bytes(tokenizer: Tokenizer) -> list[bytes | None]:
    kinds = {step["type"] for step in _decoders(tokenizer)}
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    added = tokenizer.get_added_tokens_decoder()
    size = max(max(vocabulary.values(), default=-1), max(added, default=-1)) + 1
    tokens: list[bytes | None] = [None] * size
    if "ByteLevel" in kinds:
        table = _byte_of_char()
        for text, i in vocabulary.items():
            try:
                tokens[i] = bytes([table[c] for c in text])
            except KeyError:
                tokens[i] = text.encode()
    elif kinds & {"ByteFallback", "Metaspace", "Replace"}:
        fallback = "ByteFallback" in kinds
        for text, i in vocabulary.items():
            byte = _BYTE_TOKEN.fullmatch(text) if fallback else None
            tokens[i] = bytes([int(byte[1], 16)]) if byte else text.replace(_WORD_START, " ").encode()
    else:
        raise VocabularyError(f"tokenizers that decode with {', '.join(sorted(kinds)) or 'no decoder'} are not supported")
    for i, token in added.items():
        tokens[i] = None if token.special else token.content.encode()
    return tokens
