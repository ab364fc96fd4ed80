"""Every code point in order, as one string, and the ranges of it that a test picks."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from ..languages import MAX_CODE_POINT
from .charset import CharSet

_BLOCK = 1024


@cache
def python_class(escape: str) -> CharSet:
    r"""What the module `re` means by an escape such as `\w` in a text pattern, from its own tables."""
    return CharSet.of([(match.start(), match.end() - 1) for match in re.finditer(f"{escape}+", all_code_points())])


def all_code_points() -> str:
    """The string whose character at index i is U+i, surrogates included (4 MB: not kept)."""
    numbers = np.arange(MAX_CODE_POINT + 1, dtype="<u4")
    return numbers.tobytes().decode("utf-32-le", "surrogatepass")


@cache
def cased_text() -> str:
    """A superset of the characters that change or are produced when case is changed or folded, in order."""
    text = all_code_points()
    blocks = [text[start : start + _BLOCK] for start in range(0, len(text), _BLOCK)]
    return "".join([block for block in blocks if not block.casefold() == block.lower() == block.upper() == block])
