"""The part of parsing that both dialects share: one pass over the text with an explicit stack of groups."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from ..errors import GrammarError, LimitError
from . import nodes
from .budget import NODE_PRICE, Budget
from .charset import CharSet
from .nodes import EPSILON, Node
from .syntax import Alternatives, Atomic, Item, Lookahead, Lookbehind, Repetition, Sequence, width

FLAG_IGNORE_CASE = 1
FLAG_DOT_ALL = 2
FLAG_MULTILINE = 4
FLAG_VERBOSE = 8
FLAG_ASCII = 16

_PLAIN_RUN = re.compile(r"[^\\^$.|?*+()\[\]{}]+")
_DIGITS = re.compile(r"[0-9]*")
_MAX_COUNT_DIGITS = 10


class Group:
    """A group that is still open, and what stands in it so far."""

    __slots__ = ("branches", "flags", "kind", "parts", "position", "run", "text")

    def __init__(self, kind: str, position: int, flags: int):
        self.kind = kind
        self.position = position
        self.flags = flags  # of the surroundings, back in force when the group closes
        self.branches: list[Item | str] = []
        self.parts: list[Item] = []
        self.run: Node | None = None  # the last part, if it is one greedy repetition of one character
        self.text: list[str] = []  # literal characters at the end, not yet in `parts`


class Parser(ABC):
    """Reads one pattern. A dialect says what escapes, groups, classes and single characters mean.

    `flags` holds the `FLAG_*` bits in force at `pos`.
    """

    # What `(?...` may open without further ado: text after the parenthesis -> kind of the group.
    group_openers: ClassVar[dict[str, str]] = {"?:": "group", "?=": "ahead", "?!": "not ahead", "?<=": "behind", "?<!": "not behind"}

    possessive_suffix: ClassVar[bool] = False
    repeats_lookaround: ClassVar[bool] = False
    fixed_width_lookbehind: ClassVar[bool] = False

    def __init__(self, text: str, budget: Budget):
        self.text = text
        self.pos = 0
        self.flags = 0
        self.budget = budget
        self._repeatable = False
        self._group = Group("pattern", 0, 0)
        self._open: list[Group] = []
        self._atoms: dict[str, Callable[[], None]] = {
            "(": self._open_group,
            ")": self._close_group,
            "|": self._next_branch,
            "[": self._class,
            ".": self._dot,
            "^": self._caret,
            "$": self._dollar,
            "\\": self._backslash,
            "*": self._star,
            "+": self._plus,
            "?": self._optional,
            "{": self._brace,
            "}": self._lone_bracket,
            "]": self._lone_bracket,
        }

    def parse(self) -> Item:
        """The whole pattern. Raises GrammarError with the position, LimitError."""
        text, end = self.text, len(self.text)
        atoms = self._atoms
        while self.pos < end:
            handler = atoms.get(text[self.pos])
            if handler is not None:
                self.budget.spend(NODE_PRICE)
                handler()
            else:
                self._plain()
        if self._open:
            raise self.error("a group is not closed", self._group.position, (")",))
        return self._finish_group(self._group)

    # What a dialect decides.

    @abstractmethod
    def escape(self) -> Item | str:
        """Read an escape outside of a class (`pos` is at the backslash): a literal character or an item."""

    @abstractmethod
    def char_class(self) -> CharSet:
        """Read a class (`pos` is at the bracket)."""

    @abstractmethod
    def special_group(self) -> str | None:
        """Read what follows `(` where `text[pos]` is `?`: the kind of group, None if nothing was opened."""

    @abstractmethod
    def dot(self) -> CharSet: ...

    @abstractmethod
    def caret(self) -> Item: ...

    @abstractmethod
    def dollar(self) -> Item: ...

    @abstractmethod
    def fold(self, chars: CharSet) -> CharSet:
        """The closure of a set under the case rules in force."""

    @abstractmethod
    def braced_count(self) -> tuple[int, int | None] | None:
        """Read `{m,n}` (`pos` is at the brace); None, with nothing read, if it is not a count but plain text."""

    # Reading.

    def error(self, reason: str, position: int | None = None, expected: tuple[str, ...] = ()) -> GrammarError:
        return GrammarError(reason, position=self.pos if position is None else position, expected=expected)

    def peek(self, offset: int = 0) -> str:
        """The character at `pos + offset`, or "" beyond the end."""
        index = self.pos + offset
        return self.text[index] if index < len(self.text) else ""

    def starts(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.pos)

    def digits(self) -> str:
        match = _DIGITS.match(self.text, self.pos)
        found = match.group() if match is not None else ""
        self.pos += len(found)
        return found

    def count(self, digits: str, position: int) -> int:
        digits = digits.lstrip("0") or "0"
        if len(digits) > _MAX_COUNT_DIGITS:
            raise LimitError("a repetition count is too large", position=position)
        return int(digits)

    def hexadecimal(self, num_digits: int) -> int | None:
        """Read exactly `num_digits` hexadecimal digits; None, with nothing read, if there are fewer."""
        found = self.text[self.pos : self.pos + num_digits]
        if len(found) < num_digits or any(char not in "0123456789abcdefABCDEF" for char in found):
            return None
        self.pos += num_digits
        return int(found, 16)

    def at_start(self) -> bool:
        """Whether nothing but flags and comments was read so far."""
        group = self._group
        return not (self._open or group.branches or group.parts or group.text)

    # Building.

    def _plain(self) -> None:
        match = _PLAIN_RUN.match(self.text, self.pos)
        if match is None:
            raise self.error("unexpected character")
        self.literal(match.group())
        self.pos = match.end()

    def literal(self, found: str) -> None:
        """Add literal characters."""
        if self.flags & FLAG_IGNORE_CASE:
            for char in found:
                self.budget.spend(NODE_PRICE)
                self.add(nodes.chars(self.fold(CharSet.single(ord(char)))))
        else:
            self._group.text.append(found)
        self._repeatable = True

    def add(self, item: Item, repeatable: bool = True) -> None:
        self._flush(self._group)
        self._group.parts.append(item)
        self._repeatable = repeatable

    def _flush(self, group: Group) -> None:
        if group.text:
            group.parts.append(_literal_node("".join(group.text)))
            group.text.clear()

    def _backslash(self) -> None:
        found = self.escape()
        if isinstance(found, str):
            self.literal(found)
        else:
            self.add(found, isinstance(found, Node))

    def _class(self) -> None:
        self.add(nodes.chars(self.char_class()))

    def _dot(self) -> None:
        self.pos += 1
        self.add(nodes.chars(self.dot()))

    def _caret(self) -> None:
        self.pos += 1
        self.add(self.caret(), False)

    def _dollar(self) -> None:
        self.pos += 1
        self.add(self.dollar(), False)

    def _lone_bracket(self) -> None:
        self.literal(self.text[self.pos])
        self.pos += 1

    def _open_group(self) -> None:
        position = self.pos
        if len(self._open) >= self.budget.limits.max_depth:
            raise LimitError(f"groups are nested deeper than {self.budget.limits.max_depth}", position=position)
        self.pos += 1
        outer_flags = self.flags
        kind: str | None = "group"
        if self.peek() == "?":
            kind = next((kind for opener, kind in self.group_openers.items() if self.starts(opener)), None)
            if kind is not None:
                self.pos += next(len(opener) for opener in self.group_openers if self.starts(opener))
            else:
                kind = self.special_group()
        if kind is not None:
            self._flush(self._group)
            self._open.append(self._group)
            self._group = Group(kind, position, outer_flags)
            self._repeatable = False

    def _close_group(self) -> None:
        if not self._open:
            raise self.error("a parenthesis closes no group")
        group = self._group
        body = self._finish_group(group)
        self.pos += 1
        self.flags = group.flags
        self._group = self._open.pop()
        if group.kind in ("ahead", "not ahead"):
            self.add(Lookahead(body, group.kind == "not ahead", group.position), self.repeats_lookaround)
        elif group.kind in ("behind", "not behind"):
            least, most = width(body)
            if self.fixed_width_lookbehind and least != most:
                raise self.error("a lookbehind needs a fixed width", group.position)
            self.add(Lookbehind(body, group.kind == "not behind", group.position), self.repeats_lookaround)
        elif group.kind == "atomic":
            self.add(Atomic(body, len(group.branches) == 1 and body is group.run, group.position))
        else:
            self.add(body)

    def _next_branch(self) -> None:
        self._finish_branch(self._group)
        self.pos += 1
        self._repeatable = False

    def _finish_branch(self, group: Group) -> None:
        if not group.parts:
            group.branches.append("".join(group.text))
            group.text.clear()
            return
        self._flush(group)
        group.branches.append(self._sequence(group.parts))
        group.parts = []

    def _finish_group(self, group: Group) -> Item:
        self._finish_branch(group)
        if len(group.branches) == 1:
            branch = group.branches[0]
            return _literal_node(branch) if isinstance(branch, str) else branch
        texts = [branch for branch in group.branches if isinstance(branch, str)]
        items: list[Item] = [branch for branch in group.branches if not isinstance(branch, str)]
        self.budget.spend(len(group.branches))
        if texts:
            items.append(nodes.words([text for text in texts if not _has_surrogate(text)]))
        plain = [item for item in items if isinstance(item, Node)]
        if len(plain) == len(items):
            return nodes.alt(plain)
        others = [item for item in items if not isinstance(item, Node)]
        return Alternatives((*others, nodes.alt(plain))) if plain else Alternatives(tuple(others))

    def _sequence(self, parts: list[Item]) -> Item:
        if len(parts) == 1:
            return parts[0]
        self.budget.spend(len(parts))
        result: list[Item] = []
        for part in reversed(parts):
            if isinstance(part, Node) and result and isinstance(result[-1], Node):
                result[-1] = nodes.cat(part, result[-1], self.budget)
            elif isinstance(part, Sequence):
                result.extend(reversed(part.parts))
            else:
                result.append(part)
        return result[0] if len(result) == 1 else Sequence(tuple(reversed(result)))

    def _star(self) -> None:
        self._repeat(1, 0, None)

    def _plus(self) -> None:
        self._repeat(1, 1, None)

    def _optional(self) -> None:
        self._repeat(1, 0, 1)

    def _brace(self) -> None:
        position = self.pos
        counts = self.braced_count()
        if counts is None:
            self.literal("{")
            self.pos += 1
            return
        lo, hi = counts
        if hi is not None and lo > hi:
            raise self.error("the numbers of a quantifier are out of order", position)
        end = self.pos
        self.pos = position
        self._repeat(end - position, lo, hi)

    def _repeat(self, size: int, lo: int, hi: int | None) -> None:
        position = self.pos
        if not self._repeatable:
            raise self.error("a quantifier follows nothing that can be repeated")
        self.pos += size
        possessive = lazy = False
        if self.peek() == "?":
            self.pos += 1
            lazy = True
        elif self.peek() == "+" and self.possessive_suffix:
            self.pos += 1
            possessive = True
        item = self._take_last()
        if isinstance(item, Node) and not possessive:
            repeated = nodes.rep(item, lo, hi)
            self._group.run = repeated if not lazy and width(item) == (1, 1) else None
            self.add(repeated, False)
        else:
            self.add(Repetition(item, lo, hi, possessive, position), False)

    def _take_last(self) -> Item:
        group = self._group
        if not group.text:
            return group.parts.pop()
        last = group.text.pop()
        if len(last) > 1:
            group.text.append(last[:-1])
        return _literal_node(last[-1])


def _literal_node(text: str) -> Node:
    if _has_surrogate(text):
        return nodes.EMPTY
    return nodes.word(text) if text else EPSILON


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)
