"""What a parser makes of a pattern.

Whatever holds no assertion is a `Node` at once. The classes here keep the rest, whose meaning depends on its
surroundings, until `translate` knows what stands before and after.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .charset import CharSet
from .nodes import ANYTHING, EPSILON, Node, alt, cat, chars, complement, length


@dataclass(frozen=True, eq=False, slots=True)
class Sequence:
    parts: tuple[Item, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Alternatives:
    parts: tuple[Item, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Repetition:
    """`body` `lo` to `hi` times; `possessive` gives nothing back."""

    body: Item
    lo: int
    hi: int | None
    possessive: bool
    position: int


@dataclass(frozen=True, eq=False, slots=True)
class Atomic:
    """`body` without a second try; `is_run` tells that it is one greedy repetition of one character."""

    body: Item
    is_run: bool
    position: int


@dataclass(frozen=True, eq=False, slots=True)
class Before:
    """All that was read before this place is in `prefix`."""

    prefix: Node


@dataclass(frozen=True, eq=False, slots=True)
class After:
    """All that follows this place is in `rest`."""

    rest: Node


@dataclass(frozen=True, eq=False, slots=True)
class Lookahead:
    body: Item
    negative: bool
    position: int


@dataclass(frozen=True, eq=False, slots=True)
class Lookbehind:
    body: Item
    negative: bool
    position: int


Item = Node | Sequence | Alternatives | Repetition | Atomic | Before | After | Lookahead | Lookbehind

TEXT_START = Before(EPSILON)
TEXT_END = After(EPSILON)


@cache
def line_start(newline: CharSet) -> Item:
    return Before(alt((EPSILON, cat(ANYTHING, chars(newline)))))


@cache
def line_end(newline: CharSet) -> Item:
    return After(alt((EPSILON, cat(chars(newline), ANYTHING))))


@cache
def end_or_final_newline() -> Item:
    return After(alt((EPSILON, chars(CharSet.single(0x0A)))))


@cache
def word_boundary(word: CharSet) -> Item:
    before, after = _word_before(word), _word_after(word)
    return Alternatives(
        (
            Sequence((Before(before), After(complement(after)))),
            Sequence((Before(complement(before)), After(after))),
        )
    )


@cache
def no_word_boundary(word: CharSet) -> Item:
    before, after = _word_before(word), _word_after(word)
    return Alternatives(
        (
            Sequence((Before(before), After(after))),
            Sequence((Before(complement(before)), After(complement(after)))),
        )
    )


@cache
def text_not_empty() -> Item:
    return Alternatives((Before(length(1, None)), After(length(1, None))))


def _word_before(word: CharSet) -> Node:
    return cat(ANYTHING, chars(word))


def _word_after(word: CharSet) -> Node:
    return cat(chars(word), ANYTHING)


def width(item: Item) -> tuple[int, int | None]:
    """Least and greatest number of characters that `item` itself reads (None = unbounded)."""
    sizes: dict[int, tuple[int, int | None]] = {}
    stack: list[Item] = [item]
    while stack:
        current = stack[-1]
        children = _children(current)
        missing = [child for child in children if id(child) not in sizes]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        sizes[id(current)] = _width_of(current, [sizes[id(child)] for child in children])
    return sizes[id(item)]


def has_lookahead(item: Item) -> bool:
    """Whether an assertion about what follows is inside `item`, outside of nested lookarounds' own bodies."""
    stack: list[Item] = [item]
    while stack:
        current = stack.pop()
        if isinstance(current, (After, Lookahead)):
            return True
        stack.extend(_children(current))
    return False


def _children(item: Item) -> tuple[Item, ...]:
    if isinstance(item, (Sequence, Alternatives)):
        return item.parts
    if isinstance(item, (Repetition, Atomic)):
        return (item.body,)
    return ()


def _width_of(item: Item, parts: list[tuple[int, int | None]]) -> tuple[int, int | None]:
    if isinstance(item, Node):
        return item.min_len, item.max_len
    if isinstance(item, Sequence):
        longest = [high for _, high in parts if high is not None]
        return sum([low for low, _ in parts]), sum(longest) if len(longest) == len(parts) else None
    if isinstance(item, Alternatives):
        longest = [high for _, high in parts if high is not None]
        return min([low for low, _ in parts]), max(longest) if len(longest) == len(parts) else None
    if isinstance(item, Repetition):
        low, high = parts[0]
        return low * item.lo, None if high is None or item.hi is None else high * item.hi
    if isinstance(item, Atomic):
        return parts[0]
    return 0, 0
