"""What Python answers a machine: values, frames, places and forks, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol


class ValueParts(NamedTuple):
    """How a value can begin: a row for scalars, bounds and first row of a counted string, frames of objects and arrays; for an item that
    must differ from its siblings, rows of a string (after the quote) and of numbers and literals. `unlike` is a text list of
    what the string must not be instead of its siblings. A frame `f` whose text is to be recorded is given as `~f`."""

    scalar_row: int | None
    counted: tuple[int, int | None, int] | None
    objects: Sequence[int]
    arrays: Sequence[int]
    distinct_string: int | None = None
    distinct_raw: int | None = None
    unlike: int | None = None


class PositionParts(NamedTuple):
    """What can follow a place in a context-free grammar.

    Attributes:
        alternatives: `(row, positions)`: a terminal that begins with `row` (a leaf row), then the positions (numbers of
            `Machine.new_position`), first one first. None of them may be reached again before a terminal is read (no left recursion).
    """

    alternatives: Sequence[tuple[int, Sequence[int]]]


class Element(NamedTuple):
    """A node to be pushed; what its fields mean is in `machine_layout`."""

    kind: int
    a: int
    b: int = 0
    c: int = 0


class ForkParts(NamedTuple):
    """Several ways to go on.

    Attributes:
        alternatives: what is read one after another, at most two elements each; none means that what stands after the fork comes.
            A fork may not be reached again before something is read.
    """

    alternatives: Sequence[Sequence[Element]]


class Frontier(NamedTuple):
    """What can happen in a state without a further byte.

    Attributes:
        accepting: the text may end without passing a mark.
        goes_on: more can be read without passing a mark.
        marks: nodes of marks that can be passed.
    """

    accepting: bool
    goes_on: bool
    marks: tuple[int, ...]


class ObjectFrame(NamedTuple):
    """Where an object stands: whether `}` may come, and which keys may.

    Attributes:
        can_close: `}` is allowed.
        key_row: row after the opening quote of a key; with `names`, of a key that is none of them. None if no such key can come.
        classes: bit set of allowed classes of undeclared keys.
        declared: bit set (a Python int) of allowed declared keys, by sorted index.
        count: number of declared keys.
        names: trie of the declared keys (`Machine.new_names`); None where `key_row` reads them too.
    """

    can_close: bool
    key_row: int | None
    classes: int
    declared: int
    count: int
    names: int | None = None


class ArrayFrame(NamedTuple):
    """Where an array stands: whether `]` may come, and the ways to go on as `(value, next frame)`. A question takes the place of
    a frame as `~question`. A value is UNKNOWN behind items that are not known."""

    can_close: bool
    alternatives: Sequence[tuple[int, int]]


Transition = Sequence[tuple[int, int]]  # (value, next frame or ~question)

# What stands in the declared names [lo, hi) after their first `depth` characters may be spelled with an escape: the row after its
# backslash.
EscapeMaker = Callable[[int, int, int], int]


class Question(Protocol):
    """What Python reads from recorded text to decide which frame follows a value."""

    def answer(self, text: int | None) -> Sequence[tuple[int, int]]:
        """`(OBJECT_AFTER or ARRAY_AFTER, frame)` behind the value that `text` ends with; None: a value like no other."""
        ...

    def doubts(self, text: int, *, inside: bool) -> Callable[[bytes], bool] | None:
        """Whether the value that `text` and some more bytes end with may be like one that matters; None if it is none of them.

        Args:
            inside: the text ends within the value or before it.
        """
        ...
