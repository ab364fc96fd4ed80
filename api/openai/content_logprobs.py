"""Which log-probabilities belong to the content of an answer that holds a thought or calls as well."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...engine.request import TokenLogprob
from ..answers.reader import AnswerDelta, AnswerReader, ContentDelta
from .logprobs import TokenBytes


class Piece(NamedTuple):
    """A piece of an answer and the tokens that spell it; none where it is no content."""

    delta: AnswerDelta
    logprobs: tuple[TokenLogprob, ...]


class ContentLogprobs:
    """Reads one answer token by token, so that each piece of its content knows its tokens.

    A token that spells the end of a thought and the begin of the content belongs to the content.
    """

    def __init__(self, reader: AnswerReader, token_bytes: TokenBytes):
        self._reader = reader
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unread: list[TokenLogprob] = []  # tokens that no piece has come of so far

    def feed(self, text: str, logprobs: Sequence[TokenLogprob]) -> Iterator[Piece]:
        """What a further piece of the answer brings. Raises what `AnswerReader.feed` raises."""
        for part, entries in self._parts(text, logprobs):
            self._unread += entries
            yield from self._shared_out(self._reader.feed(part, [entry.token_id for entry in entries]))

    def finish(self) -> Iterator[Piece]:
        return self._shared_out(self._reader.finish())

    def _parts(self, text: str, logprobs: Sequence[TokenLogprob]) -> Iterator[tuple[str, Sequence[TokenLogprob]]]:
        """Token by token, or all at once where the tokens do not add up to the text, because a stop text was cut off, say."""
        parts, at = [], 0
        for entry in logprobs:
            part = self._decoder.decode(self._token_bytes(entry.token_id))
            shown = part if text.startswith(part, at) else ""  # else an end token, say, which the text leaves out
            parts.append((shown, (entry,)))
            at += len(shown)
        yield from parts if self._reader.needs_tokens or at == len(text) else [(text, logprobs)]

    def _shared_out(self, deltas: Sequence[AnswerDelta]) -> Iterator[Piece]:
        for delta in deltas:
            yield Piece(delta, self._spelling(delta.text) if isinstance(delta, ContentDelta) else ())
        if deltas:
            self._unread.clear()

    def _spelling(self, text: str) -> tuple[TokenLogprob, ...]:
        """The fewest of the last tokens that spell a text: those before them spell what is read and not shown."""
        spelt, start = b"", len(self._unread)
        while start and text.encode("utf-8", "replace") not in spelt:
            start -= 1
            spelt = self._token_bytes(self._unread[start].token_id) + spelt
        found = tuple(self._unread[start:])
        self._unread.clear()
        return found
