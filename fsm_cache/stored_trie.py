"""The trie of a vocabulary, kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from .store import ArrayStore
from .trie import Trie

_FIELDS = ("nodes", "same", "subtrees", "order")


def stored_trie(store: ArrayStore, spellings: Sequence[bytes | None], vocab_size: int) -> Trie:
    """The trie of the tokens that have a spelling, from the store if it was made before, by this version of the code."""
    key = f"trie {_code_digest()} {vocab_size} {_digest(spellings)}"
    arrays = store.get(key)
    if arrays is not None:
        return Trie(**{name: arrays[name] for name in _FIELDS}, max_depth=arrays["max_depth"].item())
    trie = Trie.build([(data, i) for i, data in enumerate(spellings) if data is not None], vocab_size)
    store.put(key, {**{name: getattr(trie, name) for name in _FIELDS}, "max_depth": np.array(trie.max_depth)})
    return trie


def _digest(spellings: Sequence[bytes | None]) -> str:
    lengths = np.fromiter((-1 if data is None else len(data) for data in spellings), np.int32, len(spellings))
    digest = hashlib.sha256(lengths.tobytes())
    digest.update(b"".join([data for data in spellings if data is not None]))
    return digest.hexdigest()


@cache
def _code_digest() -> str:
    """Changes whenever the layout of tries might."""
    return hashlib.sha256(Path(__file__).with_name("trie.py").read_bytes()).hexdigest()[:16]
