"""The characters that the running Python knows, in order, and the ranges of them that a test picks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np

from .charset import CharSet

_BLOCK = 1024
_PLANE = 1 << 16
_ALL_PLANES = tuple(range(17))
# Planes with letters, digits, marks or blanks: up to the version below the others are unassigned, or for private use.
_USED_PLANES = (0, 1, 2, 3, 14)
_SURVEYED = 17


@cache
def python_class(escape: str) -> CharSet:
    r"""What the module `re` means by `\w`, `\d` or `\s` in a text pattern, from its own tables."""
    if escape == r"\s":  # what `str.split` splits at; many times faster than a search
        texts = list(_planes())
        known = CharSet.of([(ord(text[0]), ord(text[-1])) for text in texts])
        return known - CharSet.of([(ord(part[0]), ord(part[-1])) for text in texts for part in text.split()])
    pattern = re.compile(f"{escape}+")
    parts = [found.group() for text in _planes() for found in pattern.finditer(text)]
    return CharSet.of([(ord(part[0]), ord(part[-1])) for part in parts])


def _planes() -> Iterator[str]:
    """All characters of each plane that has some, in order, cut at the surrogates."""
    version = int(unicodedata.unidata_version.split(".")[0])
    for plane in _USED_PLANES if version <= _SURVEYED else _ALL_PLANES:
        cuts = (0, 0xD800, 0xE000, _PLANE) if plane == 0 else (plane * _PLANE, (plane + 1) * _PLANE)
        for first, end in list(pairwise(cuts))[::2]:
            yield np.arange(first, end, dtype="<u4").tobytes().decode("utf-32-le")


@cache
def cased_text() -> str:
    """A superset of the characters that change or are produced when case is changed or folded, in order."""
    blocks = [text[at : at + _BLOCK] for text in _planes() for at in range(0, len(text), _BLOCK)]
    return "".join([block for block in blocks if not block.casefold() == block.lower() == block.upper() == block])
