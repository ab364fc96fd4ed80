"""Keeps what people write from turning into control tokens.

A chat template glues messages and control tokens (`<|im_end|>`) into one text, and the tokenizer reads that text without knowing who
wrote what. A message that spells a control token could so end its own turn and open one of the system. Here such spellings are taken
out of the messages before the template sees them, and put back as plain characters when the text is cut into tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_FIRST_MARK = 0xF0000  # private use: no text means anything by it


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Attributes:
    is_plain: no control token may be read in it.
    """

    text: str
    is_plain: bool = False


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """A JSON-like value without control tokens in its texts.

    Attributes:
        value: equal to what was given, but that each spelling is a short mark.
        spellings: what the marks stand for.
        mark: begins and ends a mark.
    """

    value: Any
    spellings: tuple[str, ...] = ()
    mark: str = ""

    def pieces(self, text: str) -> list[Piece]:
        """A text made from `value`, with the spellings back in their places."""
        if not self.spellings:
            return [Piece(text=text)]
        parts = re.split(f"{self.mark}([0-9]+){self.mark}", text)
        return [
            Piece(text=self.spellings[int(part)], is_plain=True) if index % 2 else Piece(text=part)
            for index, part in enumerate(parts)
            if part
        ]


class ControlTokens:
    """The control tokens of a tokenizer, by their spelling."""

    def __init__(self, names: Iterable[str]):
        longest_first = sorted({name for name in names if name}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def hide(self, value: Any) -> Hidden:
        """Take all spellings out of the texts of a value; the value itself is not changed."""
        pattern = self._pattern
        if pattern is None or not any(pattern.search(text) for text in _texts(value)):
            return Hidden(value=value)
        mark = _unused_mark(value)
        spellings: list[str] = []

        def take_out(match: re.Match[str]) -> str:
            spellings.append(match.group())
            return f"{mark}{len(spellings) - 1}{mark}"

        hidden = _map_texts(value, lambda text: pattern.sub(take_out, text))
        return Hidden(value=hidden, spellings=tuple(spellings), mark=mark)

    def broken(self, spelling: str) -> Iterator[str]:
        """The spelling in parts of which none holds a control token, to be tokenized one by one."""
        if len(spelling) < 2 or self._pattern is None or not self._pattern.search(spelling):
            yield spelling
            return
        middle = len(spelling) // 2
        yield from self.broken(spelling[:middle])
        yield from self.broken(spelling[middle:])


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            waiting += part.keys()
            waiting += part.values()
        elif isinstance(part, (list, tuple)):
            waiting += part


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        changed = {}
        for key, member in value.items():
            changed[_map_texts(key, change)] = _map_texts(member, change)
        return changed
    if isinstance(value, (list, tuple)):
        items = []
        for item in value:
            items.append(_map_texts(item, change))  # a comprehension would cost a second frame a level
        return items
    return value


def _unused_mark(value: Any) -> str:
    used = {character for text in _texts(value) for character in text if ord(character) >= _FIRST_MARK}
    return next(mark for mark in map(chr, range(_FIRST_MARK, _FIRST_MARK + len(used) + 1)) if mark not in used)
