"""Reading rules without recursion: a cursor over the text and a stack of open groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Generic, TypeVar

from ..errors import GrammarError, LimitError
from ..limits import Limits

S = TypeVar("S")

_MAX_COUNT = 1_000_000_000
_DIGITS = re.compile(r"[0-9]+")
_MAX_COMPARED = 1000  # names that are looked through for one that is alike


def like(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Names that are almost the one given, best first; none where there are too many to compare."""
    names = list(islice(known, _MAX_COMPARED + 1))
    return tuple(get_close_matches(name, names)) if len(names) <= _MAX_COMPARED and len(name) < _MAX_COMPARED else ()


class Cursor:
    """A place in a grammar text.

    Args:
        text: the whole text.
        limits: `max_bytes` is checked here.
    """

    def __init__(self, text: str, limits: Limits):
        if not isinstance(text, str):
            raise GrammarError(f"a grammar must be text, not {type(text).__name__}")
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise GrammarError("a grammar with a lone surrogate is not Unicode text", position=error.start) from None
        if size > limits.max_bytes:
            raise LimitError(f"the grammar is longer than {limits.max_bytes} bytes (max_bytes)")
        self.text = text
        self.pos = 0

    @property
    def at_end(self) -> bool:
        return self.pos >= len(self.text)

    def peek(self) -> str:
        """The next character, "" at the end."""
        return self.text[self.pos : self.pos + 1]

    def take(self, token: str) -> bool:
        """Reads `token` if it comes next."""
        if not self.text.startswith(token, self.pos):
            return False
        self.pos += len(token)
        return True

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Reads what `pattern` matches here."""
        found = pattern.match(self.text, self.pos)
        if found is None:
            return None
        self.pos = found.end()
        return found.group()

    def error(self, *expected: str, position: int | None = None) -> GrammarError:
        """Something else was expected here."""
        place = self.pos if position is None else position
        found = repr(self.text[place]) if place < len(self.text) else "end of the grammar"
        return GrammarError(f"unexpected {found}", position=place, expected=expected)

    def number(self) -> int:
        """Reads a decimal number."""
        start = self.pos
        digits = self.match(_DIGITS)
        if digits is None:
            raise self.error("a number")
        if len(digits.lstrip("0")) > 10 or int(digits) > _MAX_COUNT:
            raise LimitError(f"a repetition count is larger than {_MAX_COUNT}", position=start)
        return int(digits)


@dataclass
class _Group(Generic[S]):
    position: int
    closer: str
    alternatives: list[tuple[S, ...]] = field(default_factory=list)
    sequence: list[S] = field(default_factory=list)
    minuend: tuple[S, int] | None = None


class BodyBuilder(Generic[S]):
    """The right side of one rule, being read. Each group becomes a rule of its own through `add_rule`.

    Args:
        add_rule: takes the alternatives of a group and answers a symbol that refers to them.
    """

    def __init__(self, position: int, add_rule: Callable[[list[tuple[S, ...]]], S]):
        self._add_rule = add_rule
        self._group: _Group[S] = _Group(position, "")
        self._open: list[_Group[S]] = []

    @property
    def sequence(self) -> list[S]:
        """Symbols of the alternative being read."""
        return self._group.sequence

    @property
    def closer(self) -> str:
        """What closes the innermost group, "" outside of groups."""
        return self._group.closer

    @property
    def group_position(self) -> int:
        """Where the innermost group, or the rule, began."""
        return self._group.position

    def hold(self, position: int) -> None:
        """Sets the last symbol aside as the left side of an operator at `position`."""
        self._group.minuend = (self._group.sequence.pop(), position)

    def held(self) -> tuple[S, int] | None:
        """The symbol set aside and the position of its operator; it is set aside no longer."""
        held, self._group.minuend = self._group.minuend, None
        return held

    def open(self, position: int, closer: str) -> None:
        self._open.append(self._group)
        self._group = _Group(position, closer)

    def next_alternative(self) -> None:
        self._group.alternatives.append(tuple(self._group.sequence))
        self._group.sequence = []

    def close(self) -> None:
        """Ends the innermost group; it is then the last symbol of what is around it."""
        self.next_alternative()
        alternatives = self._group.alternatives
        self._group = self._open.pop()
        if len(alternatives) == 1 and len(alternatives[0]) == 1:
            self._group.sequence.append(alternatives[0][0])
        else:
            self._group.sequence.append(self._add_rule(alternatives))

    def finish(self) -> list[tuple[S, ...]]:
        """The alternatives of the rule."""
        self.next_alternative()
        return self._group.alternatives
