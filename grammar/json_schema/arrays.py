"""Arrays: how many items may come, which schema each has, and what `contains` still wants."""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ..errors import GrammarError, LimitError
from ..machine import ArrayFrame
from .nodes import NOTHING, Node
from .numbers import NumberSet
from .shapes import ArrayShape, Numbers

if TYPE_CHECKING:
    from .compile import SchemaCompiler
    from .expand import Expander

_MAX_VALUES = 128  # distinct items that `uniqueItems` keeps apart
_MAX_STATES = 20_000  # places of one array that `contains` distinguishes


class _At(NamedTuple):
    """Progress through an array: items so far (held at the point from which nothing changes), matches per `contains`, and
    under `uniqueItems` the values used."""

    index: int
    counts: tuple[int, ...]
    used: frozenset[Node] = frozenset()


@cache
def _start_of(num_contains: int) -> _At:
    return _At(0, (0,) * num_contains)


def _held(shape: ArrayShape) -> int | None:
    """Index from which more items change nothing, None if the array is bounded."""
    if shape.high is not None:
        return None
    return max(shape.low, len(shape.prefix), *(c.first for c in shape.contains), 0)


def _complete(shape: ArrayShape, at: _At) -> bool:
    return at.index >= shape.low and all(n >= c.low for n, c in zip(at.counts, shape.contains, strict=True))


def _next(expander: Expander, shape: ArrayShape, at: _At) -> list[tuple[Node, _At]]:
    """The ways to add an item: its node for each set of `contains` it is counted for, and the place after it."""
    if shape.high is not None and at.index >= shape.high:
        return []
    held = _held(shape)
    index = at.index + 1 if held is None else min(at.index + 1, held)
    ways: list[tuple[Node, _At]] = []
    if uniqueness(expander, shape) is Uniqueness.LISTED:
        for value in _item_values(expander, shape, at.index):
            if value not in at.used:
                ways += _count(expander, shape, at, value, _At(index, at.counts, at.used | {value}))
        return ways
    return _count(expander, shape, at, shape.item(at.index), _At(index, at.counts))


def _count(expander: Expander, shape: ArrayShape, at: _At, item: Node, after: _At) -> list[tuple[Node, _At]]:
    """The ways to count `item` for each set of `contains`."""
    meet, negation = expander.outlines.meet, expander.nodes.negation
    ways: list[tuple[Node, tuple[int, ...]]] = [(item, ())]
    for n, c in zip(at.counts, shape.contains, strict=True):
        longer: list[tuple[Node, tuple[int, ...]]] = []
        for node, counts in ways:
            begun = at.index >= c.first
            longer.append((meet(node, negation(c.node)) if begun and c.high is not None else node, (*counts, n)))
            if begun and (c.high is None or n < c.high):
                longer.append((meet(node, c.node), (*counts, min(n + 1, c.low) if c.high is None else n + 1)))
        ways = [way for way in longer if way[0] is not NOTHING]
        if len(ways) > _MAX_STATES:
            raise LimitError("an item can be counted for 'contains' in too many ways", pointer=shape.pointer)
    return [(node, after._replace(counts=counts)) for node, counts in ways]


class Uniqueness(Enum):
    """How `uniqueItems` is kept."""

    IDLE = "at most one item"
    LISTED = "the values are few scalars: the frame lists those used"
    TEXT = "strings, integers and literals are compared by their text, which is unique once unescaped"


def uniqueness(expander: Expander, shape: ArrayShape) -> Uniqueness:
    """Which way keeps the items of the shape distinct.

    Raises:
        GrammarError: none does.
    """
    if not shape.unique or (shape.high is not None and shape.high <= 1):
        return Uniqueness.IDLE
    last = len(shape.prefix) if shape.high is None else min(len(shape.prefix), shape.high - 1)
    if all(expander.finite_values(shape.item(i), _MAX_VALUES) is not None for i in range(last + 1)):
        return Uniqueness.LISTED
    shapes = expander.expand(shape.rest)
    fractions = shapes.number & ~Numbers.of(NumberSet.integers())
    if shape.prefix or shape.contains or shapes.arrays or shapes.objects or not fractions.other.is_empty(expander.limits):
        reason = "'uniqueItems' is supported for strings, integers and literals, and for other scalars of which there are few"
        raise GrammarError(reason, pointer=shape.pointer.child("uniqueItems"))
    return Uniqueness.TEXT


def _item_values(expander: Expander, shape: ArrayShape, index: int) -> tuple[Node, ...]:
    """All values of the item at `index` under Uniqueness.LISTED."""
    values = expander.finite_values(shape.item(index), _MAX_VALUES)
    assert values is not None
    return values


def _distinct_fill(expander: Expander, shape: ArrayShape, at: _At) -> bool:
    """Whether the items still required can all differ from each other and from those used (bipartite matching, Kuhn)."""
    taken: dict[Node, int] = {}

    def place(index: int, tried: set[Node]) -> bool:
        for value in _item_values(expander, shape, index):
            if value not in at.used and value not in tried:
                tried.add(value)
                if value not in taken or place(taken[value], tried):
                    taken[value] = index
                    return True
        return False

    missing = shape.low - at.index
    return missing <= _MAX_VALUES and all(place(at.index + k, set()) for k in range(missing))


def array_needs(expander: Expander, shape: ArrayShape) -> list[list[Node]]:
    """Alternatives of nodes that must be inhabited for the shape to have a value."""
    if any(max(c.low, c.high or 0) > _MAX_STATES for c in shape.contains):
        raise LimitError("'contains' distinguishes too many places of the array", pointer=shape.pointer)
    if shape.high is not None and shape.high < shape.low:
        return []
    kind = uniqueness(expander, shape)
    if kind is Uniqueness.LISTED and not shape.contains:
        return [[]] if _distinct_fill(expander, shape, _start_of(0)) else []
    if kind is Uniqueness.TEXT:
        few = expander.finite_values(shape.rest, shape.low) if shape.low else None
        return [] if few is not None and len(few) < shape.low else [[shape.rest] if shape.low else []]
    if not shape.contains:
        needs = list(shape.prefix[: shape.low])
        if shape.low > len(shape.prefix):
            needs.append(shape.rest)
        return [needs]
    start = (_start_of(len(shape.contains)), frozenset[Node]())
    seen, stack, answers = {start}, [start], set[frozenset[Node]]()
    while stack:
        at, needs = stack.pop()
        if _complete(shape, at):
            answers.add(needs)
            continue
        ways = _next(expander, shape, at)
        expander.steps.spend(len(ways) * (len(needs) + len(shape.contains)))
        for node, after in ways:
            reached = (after, needs | {node})
            if reached not in seen:
                seen.add(reached)
                stack.append(reached)
                if len(seen) > _MAX_STATES:
                    raise LimitError("'contains' distinguishes too many places of the array", pointer=shape.pointer)
    return [list(needs) for needs in answers]


class ArrayFrames:
    """Frames of one array shape in one machine."""

    def __init__(self, compiler: SchemaCompiler, shape: ArrayShape):
        self._compiler = compiler
        self._shape = shape
        self._frames: dict[_At, int] = {}
        self._live: dict[_At, bool] = {}
        self._kind = uniqueness(compiler.expander, shape)

    def start(self) -> int:
        return self._frame(_start_of(len(self._shape.contains)))

    def _frame(self, at: _At) -> int:
        frame = self._frames.get(at)
        if frame is None:
            frame = self._frames[at] = self._compiler.machine.new_frame(lambda: self._make(at))
        return frame

    def _make(self, at: _At) -> ArrayFrame:
        expander = self._compiler.expander
        value = self._compiler.distinct_value if self._kind is Uniqueness.TEXT else self._compiler.value
        ways = [
            (value(node), self._frame(after))
            for node, after in _next(expander, self._shape, at)
            if expander.inhabited(node) and self._is_live(after)
        ]
        return ArrayFrame(_complete(self._shape, at), ways)

    def _is_live(self, at: _At) -> bool:
        """Whether the array can still be completed from `at`."""
        shape, expander = self._shape, self._compiler.expander
        if _complete(shape, at):
            return True
        if self._kind is Uniqueness.LISTED and not shape.contains:
            return _distinct_fill(expander, shape, at)
        if not shape.contains:
            needs = {shape.item(i) for i in range(at.index, min(shape.low, len(shape.prefix)))}
            if shape.low > max(at.index, len(shape.prefix)):
                needs.add(shape.rest)
            return all(expander.inhabited(n) for n in needs)
        if at not in self._live:
            self._explore(at)
        return self._live[at]

    def _explore(self, start: _At) -> None:
        """Decides liveness for every place reachable from `start`, backwards from the complete ones."""
        expander, before = self._compiler.expander, dict[_At, list[_At]]()
        seen, stack, live = {start}, [start], list[_At]()
        while stack:
            at = stack.pop()
            if _complete(self._shape, at):
                live.append(at)
            for node, after in _next(expander, self._shape, at):
                if not expander.inhabited(node):
                    continue
                before.setdefault(after, []).append(at)
                if after not in seen:
                    seen.add(after)
                    stack.append(after)
                    if len(seen) > _MAX_STATES:
                        raise LimitError("'contains' distinguishes too many places of the array", pointer=self._shape.pointer)
        self._live.update(dict.fromkeys(seen, False))
        while live:
            at = live.pop()
            if not self._live[at]:
                self._live[at] = True
                live.extend(before.get(at, ()))
