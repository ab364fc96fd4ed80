"""Prompt lookup: what followed the last few tokens where they stood before.

A. Saxena, "Prompt lookup decoding", 2023. Answers often repeat the prompt: names, code, quotations.
"""

from __future__ import annotations

from collections.abc import Sequence


class NgramIndex:
    """The tokens of one request, and where each n-gram of them was seen last. Amortised O(longest - shortest) a token.

    Args:
        shortest, longest: sizes of the n-grams, at least 1. A longer match is preferred.
    """

    def __init__(self, shortest: int, longest: int):
        self._sizes = range(longest, shortest - 1, -1)
        self._tokens: list[int] = []
        self._ends: dict[tuple[int, ...], int] = {}

    def extend(self, token_ids: Sequence[int]) -> None:
        """The text grew by these tokens."""
        for token_id in token_ids:
            for ngram in self._suffixes(()):
                self._ends[ngram] = len(self._tokens)
            self._tokens.append(token_id)

    def follow(self, ahead: Sequence[int], count: int) -> list[int]:
        """What may come after the text and a few tokens `ahead` of it: at most `count` tokens, none without a match."""
        for ngram in self._suffixes(ahead):
            end = self._ends.get(ngram)
            if end is not None:
                return self._tokens[end : end + count]
        return []

    def _suffixes(self, ahead: Sequence[int]) -> list[tuple[int, ...]]:
        """The last n-grams of the text and the tokens ahead, longest first."""
        longest = self._sizes.start
        tail = (*self._tokens[-longest:], *ahead)
        return [tail[-size:] for size in self._sizes if size <= len(tail)]
