"""Text of an answer as its tokens arrive: whole code points, and nothing that may yet become a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TokenTable:
    """What tokens stand for.

    Attributes:
        token_bytes: by token id, from the tokenizer's own tables (`fsm_cache.Vocabulary`); None for special and unused ids.
        special_name: the name of a special token, or None for an id that is no token.
    """

    token_bytes: Sequence[bytes | None]
    special_name: Callable[[int], str | None]

    def name_bytes(self, token_id: int) -> bytes:
        """The name of a special token; empty for an unused id."""
        return (self.special_name(token_id) or "").encode()


class Detokenizer:
    """Tokens to text, one at a time.

    Works on bytes: what a token adds does not depend on the prompt, and for a constrained answer the text is exactly what
    the grammar read. Bytes that do not complete a code point wait for the next token; bytes that never can become U+FFFD.
    """

    def __init__(self, table: TokenTable, *, skip_special_tokens: bool):
        self._table = table
        self._skip_special_tokens = skip_special_tokens
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        """The text that became certain with this token."""
        token = self._table.token_bytes[token_id]
        if token is None:
            token = b"" if self._skip_special_tokens else self._table.name_bytes(token_id)
        return self._decoder.decode(token)

    def flush(self) -> str:
        """What is left at the end of the answer."""
        return self._decoder.decode(b"", final=True)


@dataclass(frozen=True, kw_only=True)
class StopScan:
    """What a piece of text came to.

    Attributes:
        text: what may be shown.
        stop: the stop string that ended the text, or None.
    """

    text: str
    stop: str | None = None


class StopStrings:
    """Finds the first stop string in a text that comes in pieces.

    The one that is complete first ends the text, of several that end together the longest; so the outcome does not
    depend on how the text was cut. Text that may be the beginning of a stop string is withheld until that is decided. Time
    is linear in the text (D. Knuth, J. Morris, V. Pratt, "Fast pattern matching in strings", 1977).
    """

    def __init__(self, stops: Sequence[str], *, include: bool):
        self._stops = sorted(set(stops), key=len, reverse=True)
        self._failures = [_failure_table(stop) for stop in self._stops]
        self._matched = [0] * len(self._stops)
        self._held = ""
        self._include = include

    def push(self, text: str) -> StopScan:
        """The text that may be shown once this piece has come. After a stop, nothing may be pushed."""
        if not self._stops:
            return StopScan(text=text)
        buffer, start = self._held + text, len(self._held)
        for end in range(start, len(buffer)):
            stop = self._advance(buffer[end])
            if stop is not None:
                shown = end + 1 if self._include else end + 1 - len(stop)
                self._held = ""
                return StopScan(text=buffer[:shown], stop=stop)
        kept = len(buffer) - max(self._matched)
        self._held = buffer[kept:]
        return StopScan(text=buffer[:kept])

    def flush(self) -> str:
        """What was withheld, when the answer ends for another reason."""
        held, self._held = self._held, ""
        return held

    def _advance(self, character: str) -> str | None:
        complete = None
        for index, (stop, failures) in enumerate(zip(self._stops, self._failures, strict=True)):
            matched = self._matched[index]
            while matched and stop[matched] != character:
                matched = failures[matched - 1]
            matched += stop[matched] == character
            self._matched[index] = matched
            if matched == len(stop):
                complete = complete or stop
                self._matched[index] = failures[matched - 1]
        return complete


def _failure_table(pattern: str) -> list[int]:
    """For each prefix of the pattern, the length of its longest proper border."""
    table = [0] * len(pattern)
    border = 0
    for index in range(1, len(pattern)):
        while border and pattern[index] != pattern[border]:
            border = table[border - 1]
        border += pattern[index] == pattern[border]
        table[index] = border
    return table
