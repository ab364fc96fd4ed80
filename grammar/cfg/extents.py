"""Which characters make a match longer: patterns whose matches end where the language says.

`re.match` takes the match that its choices prefer. If no choice ever prefers a shorter match, it takes the longest one, and a text of the
pattern that is followed by a character which extends no match is matched as a whole. A terminal that only such characters can follow
is then read like any regular language: nothing has to be known about where exactly it ends.

Decided on the positions of the pattern (Glushkov, 1961), each with the list of what may come next in the order in which a backtracking
matcher tries it, and on pairs of positions that the same text can lead to. Counts are forgotten: each repetition is done as often as
wanted. That only adds ways through the pattern, so an answer holds for the pattern with its counts. Lookaheads are taken as passed, for
the same reason; what they can read counts as extending the match, so that otherwise they see no more than the end of the text.
"""

from __future__ import annotations

from typing import NamedTuple

from ..lazily import lazy
from ..regex import CharSet
from ..regex.charset import NO_CHARS, joined
from ..regex.nodes import EMPTY, EPSILON, KIND_CHARS, KIND_WORDS, Node
from ..regex.syntax import Alternatives, Item, Lookahead, Repetition, Sequence, width
from .ordered import LazyRepetition

_END = -1
_MAX_POSITIONS = 200
_MAX_PAIRS = 4_000

_Options = list["int | _Options"]


class _TooMuch(Exception):
    """The pattern is no simple one."""


class Extent(NamedTuple):
    """How far the matches of a pattern reach.

    Attributes:
        first: characters that a match begins with, or more.
        extending: characters that matter when they follow a match: inside of a longer match, or to a lookahead.
    """

    first: CharSet
    extending: CharSet


def extent_of(item: Item) -> Extent | None:
    """The extent of a pattern; None if a match may end before the longest one does, or if that is not easy to tell."""
    try:
        positions = _Positions(item)
        first = joined([positions.chars[option] for option in positions.first if option != _END])
        return Extent(first, _Pairs(positions).extending)
    except _TooMuch:
        return None


class _Positions:
    """The positions of a pattern.

    Attributes:
        chars: characters of each position.
        next: for each position what may come after it, in order of preference: positions, and _END.
        first: what may come first.
        seen: characters that lookaheads read.
    """

    def __init__(self, item: Item):
        self.chars: list[CharSet] = []
        self.seen = NO_CHARS
        self._after: list[_Options] = []
        self._first = self._enter(item, [_END])

    @lazy
    def first(self) -> list[int]:
        return _flat(self._first)

    @lazy
    def next(self) -> list[list[int]]:
        return [_flat(options) for options in self._after]

    def _enter(self, item: Item, after: _Options) -> _Options:
        """What may come first where `item` and then `after` are to be read. Patterns are not nested deeply here."""
        if isinstance(item, Node):
            return self._enter_text(item, after)
        if isinstance(item, Sequence):
            for part in reversed(item.parts):
                after = self._enter(part, after)
            return after
        if isinstance(item, Alternatives):
            return [self._enter(part, after) for part in item.parts]
        if isinstance(item, Lookahead):
            inner = _Positions(item.body)
            self.seen = joined([*dict.fromkeys((self.seen, inner.seen, *inner.chars))])
            return after
        if isinstance(item, LazyRepetition) or not isinstance(item, Repetition):
            raise _TooMuch
        if item.hi == 0:
            return after
        if width(item.body)[0] == 0:
            raise _TooMuch
        if item.hi == 1:
            return [self._enter(item.body, after), after] if item.lo == 0 else self._enter(item.body, after)
        again: _Options = []
        first = self._enter(item.body, again)
        again.extend((first, after))
        return again if item.lo == 0 else first

    def _enter_text(self, node: Node, after: _Options) -> _Options:
        if node is EPSILON:
            return after
        if node is EMPTY:
            return []
        if node.kind == KIND_CHARS:
            return [self._add(node.chars, after)]
        if node.kind != KIND_WORDS:
            raise _TooMuch
        table, start, end, depth = node.words
        if end - start != 1:
            raise _TooMuch
        for char in reversed(table.words[start][depth:]):
            after = [self._add(CharSet.single(ord(char)), after)]
        return after

    def _add(self, chars: CharSet, after: _Options) -> int:
        if len(self.chars) == _MAX_POSITIONS:
            raise _TooMuch
        self.chars.append(chars)
        self._after.append(after)
        return len(self.chars) - 1


def _flat(options: _Options) -> list[int]:
    found: list[int] = []
    todo: list[int | _Options] = [options]
    while todo:
        option = todo.pop()
        if isinstance(option, int):
            found.append(option)
        else:
            todo.extend(reversed(option))
        if len(found) + len(todo) > 2 * _MAX_POSITIONS:
            raise _TooMuch
    return found


class _Pairs:
    """Pairs of positions that one text leads to, the first one preferred.

    Attributes:
        extending: characters after a match inside a longer one.
    """

    def __init__(self, positions: _Positions):
        self._positions = positions
        self._extending = {positions.seen: None}
        self._seen: set[tuple[int, int]] = set()
        self._todo: list[tuple[int, int]] = []
        for options in (positions.first, *positions.next):
            self._add_own(options)
        while self._todo:
            self._add_pair(*self._todo.pop())
        self.extending = joined([*self._extending])

    def _add_own(self, options: list[int]) -> None:
        """One way through the pattern, and where it splits."""
        if _END in options:
            end = options.index(_END)
            if any(option != _END for option in options[end:]):
                raise _TooMuch  # it ends although it could go on
            self._extend(options[:end])
        ways = [option for option in options if option != _END]
        for index, one in enumerate(ways):
            for other in ways[index + 1 :]:
                self._meet(one, other)

    def _add_pair(self, one: int, other: int) -> None:
        first, second = self._positions.next[one], self._positions.next[other]
        if _END in first and any(option != _END for option in second):
            raise _TooMuch  # the preferred way may end while the other goes on
        if _END in second:
            self._extend(first)
        for option in first:
            for other_option in second:
                if _END not in (option, other_option):
                    self._meet(option, other_option)

    def _meet(self, one: int, other: int) -> None:
        if (one, other) not in self._seen and self._positions.chars[one] & self._positions.chars[other]:
            if len(self._seen) == _MAX_PAIRS:
                raise _TooMuch
            self._seen.add((one, other))
            self._todo.append((one, other))

    def _extend(self, options: list[int]) -> None:
        for option in options:
            if option != _END:
                self._extending[self._positions.chars[option]] = None
