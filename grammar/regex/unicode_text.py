"""The characters that the running Python knows, in order, and the ranges of them that a test picks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

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
    pattern = re.compile(f"{escape}+")
    return CharSet.of([(start + found.start(), start + found.end() - 1) for start, text in _planes() for found in pattern.finditer(text)])


def _planes() -> Iterator[tuple[int, str]]:
    """First code point and all characters of each plane that has some, surrogates included (not kept)."""
    version = int(unicodedata.unidata_version.split(".")[0])
    for plane in _USED_PLANES if version <= _SURVEYED else _ALL_PLANES:
        numbers = np.arange(plane * _PLANE, (plane + 1) * _PLANE, dtype="<u4")
        yield plane * _PLANE, numbers.tobytes().decode("utf-32-le", "surrogatepass")


@cache
def cased_text() -> str:
    """A superset of the characters that change or are produced when case is changed or folded, in order."""
    blocks = [text[at : at + _BLOCK] for _, text in _planes() for at in range(0, _PLANE, _BLOCK)]
    return "".join([block for block in blocks if not block.casefold() == block.lower() == block.upper() == block])
