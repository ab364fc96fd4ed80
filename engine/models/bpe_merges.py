"""BPE merges recovered from a vocabulary that lists none.

A sentencepiece BPE model stores tokens in the order of a score instead of the merges that made them. Every way to cut a
token into two tokens is a merge; better tokens are merged first. `tokenizers` wants the merges spelt out, best first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import UnsupportedModel

MAX_TOKEN_LENGTH = 1024
"""Longest token, in characters, that is cut: the work grows with the square of the length."""

Merge = tuple[str, str]


def merges_by_position(ids: Mapping[str, int]) -> list[Merge]:
    """Merges where the order of the vocabulary is the order of preference.

    Args:
        ids: token -> id, in the order of preference.

    Raises:
        UnsupportedModel: a token is longer than `MAX_TOKEN_LENGTH`.
    """
    return _cuts(ids, ids)


def merges_by_score(ids: Mapping[str, int], scores: Sequence[float]) -> list[Merge]:
    """Merges by falling score of the merged token; among equals longer parts first, then the order of the vocabulary.

    Args:
        ids: token -> id.
        scores: by token id, higher is better.

    Raises:
        UnsupportedModel: a token is longer than `MAX_TOKEN_LENGTH`.
    """

    def rank(merge: Merge) -> tuple[float, int, int]:
        left, right = merge
        return -scores[ids[left + right]], -len(left), -len(right)

    return sorted(_cuts(ids, ids), key=rank)


def _cuts(tokens: Iterable[str], ids: Mapping[str, int]) -> list[Merge]:
    """All ways to cut tokens into two tokens, token by token, the longest left part first."""
    merges: list[Merge] = []
    for token in tokens:
        length = len(token)
        if length > MAX_TOKEN_LENGTH:
            raise UnsupportedModel(f"the vocabulary holds a token of {length} characters; at most {MAX_TOKEN_LENGTH} are supported")
        for cut in range(length - 1, 0, -1):
            left = token[:cut]
            if left in ids:
                right = token[cut:]
                if right in ids:
                    merges.append((left, right))
    return merges
