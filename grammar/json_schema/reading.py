"""Recorded text read as JSON, piece by piece: what has been read so far is kept with each piece and never read again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from ..machine import Machine
from ..machine_layout import NIL
from .values import Value, Values

_STRING_PART = re.compile(rb'(?:[^"\\]|\\.)*', re.DOTALL)
_RAW_PART = re.compile(rb'[^\s\[\]{}:,"]*')
_WORDS = frozenset((b"null", b"true", b"false"))

_List: TypeAlias = "tuple[object, _List] | None"  # newest first


class _Open(NamedTuple):
    """An array or object that is begun. `content` has its items, or its names and values in turn, newest first."""

    bracket: int
    content: _List
    outer: _Open | None


class Reading(NamedTuple):
    """A text read so far.

    Attributes:
        open: the innermost bracket that is not closed; None behind the outermost one.
        begun: pieces of a token that may go on, newest first.
        escaped: the begun string ends within an escape.
    """

    open: _Open | None
    begun: _List = None
    escaped: bool = False


class Readings:
    """Reads the texts of one machine."""

    def __init__(self, machine: Machine, values: Values):
        self._machine = machine
        self._values = values
        self._known: dict[int, Reading] = {}

    def of(self, text: int) -> Reading:
        pieces: list[tuple[int, bytes]] = []
        reading = self._known.get(text)
        while reading is None:
            before, end = self._machine.text_end(text)
            if before == NIL:
                reading = self._known[text] = Reading(_Open(end[0], None, None))
            else:
                pieces.append((text, end))
                text = before
                reading = self._known.get(text)
        for at, piece in reversed(pieces):
            reading = self._known[at] = self.longer(reading, piece)
        return reading

    def last(self, reading: Reading) -> Value:
        """The value that the innermost open object or array ends with."""
        if reading.begun is not None:
            return self._token(b"".join(_oldest_first(reading.begun)))
        assert reading.open is not None and reading.open.content is not None
        value = reading.open.content[0]
        assert isinstance(value, Value)
        return value

    def begun(self, reading: Reading) -> bytes | None:
        """The token that is begun and may go on."""
        return None if reading.begun is None else b"".join(_oldest_first(reading.begun))

    def longer(self, reading: Reading, piece: bytes) -> Reading:
        """The reading of a text that has `piece` more."""
        place, begun, escaped = reading
        at = 0
        if begun is not None:
            first = next(iter(_oldest_first(begun)))
            if first[:1] == b'"':
                end, escaped = _end_of_string(piece, 0, escaped)
            else:
                match = _RAW_PART.match(piece)
                assert match is not None
                end = match.end() if match.end() < len(piece) else -1
            if end < 0:
                return Reading(place, (piece, begun), escaped)
            token = b"".join([*_oldest_first(begun), piece[:end]])
            place, at = self._with(place, self._token(token)), end
        while at < len(piece):
            byte = piece[at]
            if byte in b" \t\n\r,:":
                at += 1
            elif byte in b"[{":
                place, at = _Open(byte, None, place), at + 1
            elif byte in b"]}":
                if place is not None:  # else a bracket that was opened before the text begins
                    place = self._with(place.outer, self._closed(place))
                at += 1
            else:
                if byte == 0x22:
                    end, escaped = _end_of_string(piece, at + 1, False)
                else:
                    match = _RAW_PART.match(piece, at)
                    assert match is not None
                    end = match.end() if match.end() < len(piece) else -1
                if end < 0:
                    return Reading(place, (piece[at:], None), escaped)
                place, at = self._with(place, self._token(piece[at:end])), end
        return Reading(place)

    def _with(self, place: _Open | None, value: Value) -> _Open | None:
        return None if place is None else place._replace(content=(value, place.content))

    def _token(self, token: bytes) -> Value:
        if token[:1] == b'"':
            return self._values.string(json.loads(token))
        return self._values.word(token.decode()) if token in _WORDS else self._values.number(token.decode())

    def _closed(self, place: _Open) -> Value:
        if place.bracket == ord("{"):
            return self._values.object(_members(place.content))
        items = list(_oldest_first(place.content))
        return self._values.array(tuple(items))  # pyright: ignore[reportArgumentType]


def _end_of_string(piece: bytes, at: int, escaped: bool) -> tuple[int, bool]:
    """Behind the closing quote, or -1 and whether the piece ends within an escape."""
    if escaped:
        at += 1
    match = _STRING_PART.match(piece, at)
    assert match is not None
    end = match.end()
    if end < len(piece) and piece[end] == 0x22:
        return end + 1, False
    return -1, end < len(piece)


def _oldest_first(content: _List) -> Iterator:
    found = []
    while content is not None:
        item, content = content
        found.append(item)
    return reversed(found)


def _members(content: _List) -> dict[str, Value]:
    parts = list(_oldest_first(content))
    return {name.data: value for name, value in zip(parts[::2], parts[1::2], strict=True)}
