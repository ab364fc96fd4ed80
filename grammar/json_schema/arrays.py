"""Arrays: how many items may come, which schema each has, and what `contains` still wants."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ..errors import GrammarError, LimitError
from ..machine_layout import ARRAY_AFTER, UNKNOWN
from ..machine_parts import ArrayFrame
from .nodes import NOTHING, Node
from .numbers import NumberSet
from .shapes import ArrayShape, Numbers
from .values import Value, plain

if TYPE_CHECKING:
    from .compile import SchemaCompiler
    from .expand import Expander

_MAX_VALUES = 128  # distinct scalar items that the frame lists as alternatives
_MAX_STATES = 20_000  # places of one array that `contains` distinguishes
_MAX_STEPS = 5_000  # taken to list the ways to finish an array


class _At(NamedTuple):
    """Progress through an array: items so far (held at the point from which nothing changes), matches per `contains`, and
    under `uniqueItems` the values used, as constants where they are listed."""

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


def _next(expander: Expander, shape: ArrayShape, at: _At, kind: Uniqueness) -> list[tuple[Node, _At]]:
    """The ways to add an item: its node for each set of `contains` it is counted for, and the place after it."""
    if shape.high is not None and at.index >= shape.high:
        return []
    held = _held(shape)
    index = at.index + 1 if held is None else min(at.index + 1, held)
    ways: list[tuple[Node, _At]] = []
    if kind is Uniqueness.LISTED:
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
    VALUES = "the values are read from the text and compared"
    REPEATED = "the values are read from the text until two are equal, which some must be"

    @property
    def is_recorded(self) -> bool:
        """Whether the frames depend on values read from the text."""
        return self in (Uniqueness.VALUES, Uniqueness.REPEATED)


def uniqueness(expander: Expander, shape: ArrayShape) -> Uniqueness:
    """Which way keeps the items of the shape distinct, or looks for equal ones.

    Raises:
        GrammarError: `contains` beside items that must not all be distinct.
    """
    if shape.repeats:
        if shape.contains:
            raise GrammarError("'contains' beside the negation of 'uniqueItems' is not supported", pointer=shape.pointer)
        return Uniqueness.REPEATED
    if not shape.unique or (shape.high is not None and shape.high <= 1):
        return Uniqueness.IDLE
    last = len(shape.prefix) if shape.high is None else min(len(shape.prefix), shape.high - 1)
    if all(expander.finite_values(shape.item(i), _MAX_VALUES) is not None for i in range(last + 1)):
        return Uniqueness.LISTED
    shapes = expander.expand(shape.rest)
    fractions = shapes.number & ~Numbers.of(NumberSet.integers())
    if shape.prefix or shape.contains or shapes.arrays or shapes.objects or not fractions.other.is_empty(expander.limits):
        return Uniqueness.VALUES
    return Uniqueness.TEXT


def _item_values(expander: Expander, shape: ArrayShape, index: int) -> tuple[Node, ...]:
    """All values of the item at `index` under Uniqueness.LISTED."""
    values = expander.finite_values(shape.item(index), _MAX_VALUES)
    assert values is not None
    return values


def _matches(choices: Sequence[Sequence[Node | Value]], used: Collection[Node | Value]) -> bool:
    """Whether each of the choices can be given a value of its own that is not used (bipartite matching, Kuhn)."""
    taken: dict[Node | Value, int] = {}

    def place(k: int, tried: set[Node | Value]) -> bool:
        for value in choices[k]:
            if value not in used and value not in tried:
                tried.add(value)
                if value not in taken or place(taken[value], tried):
                    taken[value] = k
                    return True
        return False

    return all(place(k, set()) for k in range(len(choices)))


def _distinct_fill(expander: Expander, shape: ArrayShape, at: _At) -> bool:
    """Whether the items still required can all differ from each other and from those used."""
    missing = shape.low - at.index
    if missing > _MAX_VALUES:
        return False
    return _matches([_item_values(expander, shape, at.index + k) for k in range(missing)], at.used)


def _scarce(expander: Expander, shape: ArrayShape, index: int) -> list[tuple[Value, ...]]:
    """The values of the items required from `index` on that have fewer than `minItems`; the others never run out of values."""
    finite, few = expander.extent.finite, list[tuple[Value, ...]]()
    for i in range(index, min(shape.low, len(shape.prefix))):
        values = finite(shape.item(i), shape.low - 1)
        few += [] if values is None else [values]
    rest = shape.low - max(index, len(shape.prefix))
    if rest > 0:
        values = finite(shape.rest, shape.low - 1)
        few += [] if values is None else [values] * min(rest, len(values) + 1)
    if len(few) > _MAX_VALUES:
        raise LimitError("too many items must differ of which there are few", pointer=shape.pointer.child("uniqueItems"))
    return few


def _check_contained(expander: Expander, shape: ArrayShape) -> None:
    """Refuses `contains` beside `uniqueItems` where the items that it needs could be used up before it is met.

    They can't where there are more of them than the array needs; nor where one is needed, of items that are all alike.
    """
    is_simple = len(shape.contains) == 1 and shape.contains[0].low <= 1 and shape.contains[0].high is None
    if is_simple and not shape.prefix and shape.low <= 1:
        return
    needed = shape.low + len(shape.prefix) + sum(c.low for c in shape.contains)
    after = _At(max((c.first for c in shape.contains), default=0), (0,) * len(shape.contains))
    for item in (*shape.prefix, shape.rest):
        for node, _ in _count(expander, shape, after, item, after):
            if expander.inhabited(node) and expander.extent.finite(node, needed) is not None:
                reason = "'uniqueItems' beside 'contains' is not supported where few items match"
                raise GrammarError(reason, pointer=shape.pointer.child("uniqueItems"))


def _pairs(expander: Expander, shape: ArrayShape, first: int) -> list[list[Node]]:
    """What must be inhabited for two items from `first` on to be equal: both at once, and the items before the later one."""
    end = max(first, len(shape.prefix)) + 2
    end = end if shape.high is None else min(end, shape.high)
    if (end - first) ** 2 > _MAX_STEPS:
        raise LimitError("too many pairs of items may be equal", pointer=shape.pointer.child("uniqueItems"))
    items = [shape.item(i) for i in range(first, end)]
    return [[expander.nodes.all_of((items[i], items[j])), *dict.fromkeys(items[:j])] for j in range(len(items)) for i in range(j)]


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
    if kind is Uniqueness.VALUES and shape.contains:
        _check_contained(expander, shape)
    if kind is Uniqueness.VALUES and shape.low > 1 and not _matches(_scarce(expander, shape, 0), ()):
        return []
    if not shape.contains:
        needs = list(shape.prefix[: shape.low])
        if shape.low > len(shape.prefix):
            needs.append(shape.rest)
        if kind is Uniqueness.REPEATED:
            return [[*needs, *way] for way in _pairs(expander, shape, 0)]
        return [needs]
    start = (_start_of(len(shape.contains)), frozenset[Node]())
    seen, stack, answers = {start}, [start], set[frozenset[Node]]()
    while stack:
        at, needs = stack.pop()
        if _complete(shape, at):
            answers.add(needs)
            continue
        ways = _next(expander, shape, at, kind)
        expander.steps.spend(len(ways) * (len(needs) + len(shape.contains)))
        for node, after in ways:
            reached = (after, needs | {node})
            if reached not in seen:
                seen.add(reached)
                stack.append(reached)
                if len(seen) > _MAX_STATES:
                    raise LimitError("'contains' distinguishes too many places of the array", pointer=shape.pointer)
    return [list(needs) for needs in answers]


def array_endings(
    expander: Expander, shape: ArrayShape, at: _At | None, used: tuple[Value, ...], cap: int
) -> frozenset[tuple[Value, ...]] | None:
    """All ways to finish an array; None when there are more than `cap`.

    Args:
        at: its place, None for the beginning.
        used: the items so far, as far as others must differ from them.

    Raises:
        LimitError: too many steps find too few of them.
    """
    kind = uniqueness(expander, shape)
    kind = Uniqueness.VALUES if kind is Uniqueness.TEXT else kind
    found: set[tuple[Value, ...]] = set()
    stack: list[tuple[_At, tuple[Value, ...]]] = [(_start_of(len(shape.contains)) if at is None else at, ())]
    steps = 0
    while stack:
        at, items = stack.pop()
        if _complete(shape, at) and (not shape.repeats or len({*used, *items}) < len(used) + len(items)):
            found.add(items)
            if len(found) > cap:
                return None
        for node, after in _next(expander, shape, at, kind):
            if not expander.inhabited(node):
                continue
            values = expander.extent.finite(node, cap + len(used) + len(items))
            if values is None:
                return None
            stack.extend((after, (*items, v)) for v in values if not (shape.unique and (v in used or v in items)))
            steps += len(values)
        if steps > _MAX_STEPS + 20 * cap:
            raise LimitError("the values that an array can still have are too many to be told apart", pointer=shape.pointer)
    return frozenset(found)


class _Place(NamedTuple):
    """A place in an array whose items are read from the text.

    Attributes:
        at: what the shape says.
        items: the items so far, oldest first, where some must differ or be equal; None: not known.
        rivals: arrays that this one must not be and still agrees with, oldest first.
        size: the number of items so far while there are rivals.
    """

    at: _At
    items: tuple[Value, ...] | None = ()
    rivals: tuple[Value, ...] = ()
    size: int = 0


class _Way(NamedTuple):
    """What an item may be, and where it leads. `after` has the rivals that have such an item, of any value."""

    node: Node
    unlike: tuple[Value, ...]
    after: _Place


class ArrayFrames:
    """Frames of one array shape in one machine.

    Args:
        compiler: makes values of nodes.
        shape: the array shape.
        by_value: read the items even where their texts could be compared.
    """

    def __init__(self, compiler: SchemaCompiler, shape: ArrayShape, *, by_value: bool = False):
        self._compiler = compiler
        self._shape = shape
        self._frames: dict[_Place, int] = {}
        self._live: dict[_At, bool] = {}
        self._known_endings: dict[_Place, frozenset[tuple[Value, ...]] | int] = {}  # an int: there are more
        kind = uniqueness(compiler.expander, shape)
        self.kind = Uniqueness.VALUES if by_value and kind is Uniqueness.TEXT else kind

    def start(self, rivals: tuple[Value, ...] = ()) -> int:
        return self.frame(self._start(rivals))

    def differs(self, rivals: tuple[Value, ...]) -> bool:
        """Whether some array of the shape is none of the rivals."""
        return self._may_differ(self._start(rivals))

    def _start(self, rivals: tuple[Value, ...]) -> _Place:
        return _Place(_start_of(len(self._shape.contains)), (), rivals)

    def frame(self, place: _Place) -> int:
        frame = self._frames.get(place)
        if frame is None:
            frame = self._frames[place] = self._compiler.machine.new_frame(self._make, place)
        return frame

    def _make(self, place: _Place) -> ArrayFrame:
        can_close = _complete(self._shape, place.at) and self.kind is not Uniqueness.REPEATED
        can_close = can_close and not any(len(rival.data) == place.size for rival in place.rivals)
        if place.items is None:
            alternatives = [(UNKNOWN, UNKNOWN)] if self._next(place.at) else []
        else:
            value = self._compiler.distinct_value if self.kind is Uniqueness.TEXT else self._compiler.value
            alternatives = [(value(way.node, way.unlike), self._frame_behind(way)) for way in self._ways(place)]
        return ArrayFrame(can_close, alternatives)

    def _next(self, at: _At) -> list[tuple[Node, _At]]:
        expander = self._compiler.expander
        ways = _next(expander, self._shape, at, self.kind)
        return [(node, after) for node, after in ways if expander.inhabited(node) and self._is_live(after)]

    def _ways(self, place: _Place) -> list[_Way]:
        assert place.items is not None
        rivals = tuple(rival for rival in place.rivals if len(rival.data) > place.size)
        size = place.size + 1 if rivals else 0
        ways: list[_Way] = []
        for node, at in self._next(place.at):
            after = _Place(at, place.items, rivals, size)
            unlike = (*place.items, *self._starving(place)) if self.kind is Uniqueness.VALUES else ()
            if self.kind is Uniqueness.REPEATED:
                node = self._still_repeating(place, node)
            unlike = tuple(dict.fromkeys((*unlike, *self._equal_for_sure(after)))) if rivals else unlike
            if self._compiler.expander.inhabited(node) and self._compiler.extent.exceeds(node, unlike):
                ways.append(_Way(node, unlike, after))
        return ways

    def _still_repeating(self, place: _Place, node: Node) -> Node:
        """`node` where some item behind it can be the second of two equal ones, else that part of it that is one of two."""
        expander, shape, index = self._compiler.expander, self._shape, place.at.index
        assert place.items is not None
        for pair in _pairs(expander, shape, index + 1):
            if all(expander.inhabited(need) for need in pair):
                return node
        seen = [expander.nodes.constant(plain(value), shape.pointer) for value in dict.fromkeys(place.items)]
        later: list[Node] = []
        end = max(index + 1, len(shape.prefix)) + 1
        for i in range(index + 1, end if shape.high is None else min(end, shape.high)):
            item = shape.item(i)
            if not expander.inhabited(item):
                break
            if any(expander.inhabited(expander.nodes.all_of((item, constant))) for constant in seen):
                return node
            later.append(item)
        return expander.nodes.all_of((node, expander.nodes.any_of((*seen, *later))))

    def _frame_behind(self, way: _Way) -> int:
        if not way.after.rivals and not self.kind.is_recorded:
            return self.frame(way.after)
        return ~self._compiler.question(_ItemQuestion(self, way.after, way.unlike))

    def frame_behind(self, after: _Place, value: Value | None) -> int:
        """Frame behind an item of this value, None: of one that is not known and matters to no item that may follow."""
        rivals = tuple(rival for rival in after.rivals if rival.data[after.size - 1] is value)
        frames, items, size = self, after.items, after.size if rivals else 0
        if self.kind is Uniqueness.REPEATED and value in (items or ()):
            frames, items = self._compiler.array_frames(replace(self._shape, repeats=False)), ()
        elif self.kind.is_recorded:
            items = None if value is None or items is None else (*items, value)
        return frames.frame(_Place(after.at, items, rivals, size))

    def may_run_out(self, after: _Place) -> bool:
        """Whether the value of one more item may decide if others can follow."""
        if self.kind is not Uniqueness.VALUES:
            return self.kind is Uniqueness.REPEATED
        assert after.items is not None
        expander, shape = self._compiler.expander, self._shape
        nodes = shape.prefix[: shape.high] if shape.high is not None and shape.high <= len(shape.prefix) else (*shape.prefix, shape.rest)
        num_used = max(len(after.items) + 1, shape.low)
        return any(expander.inhabited(node) and expander.extent.finite(node, num_used) is not None for node in nodes)

    # --- liveness --------------------------------------------------------------------------------------------------

    def _starving(self, place: _Place) -> list[Value]:
        """Values of the next item that would leave too few for the items required behind it."""
        assert place.items is not None
        few = _scarce(self._compiler.expander, self._shape, place.at.index + 1) if self._shape.low > place.at.index + 1 else []
        candidates = dict.fromkeys(value for values in few for value in values if value not in place.items)
        return [value for value in candidates if not _matches(few, {*place.items, value})]

    def _equal_for_sure(self, after: _Place) -> tuple[Value, ...]:
        """Values of the last item with which the array could only become one of the rivals."""
        if not self.kind.is_recorded and self._endings(after._replace(rivals=()), len(after.rivals)) is None:
            return ()
        groups: dict[Value, list[Value]] = {}
        for rival in after.rivals:
            groups.setdefault(rival.data[after.size - 1], []).append(rival)
        stuck: list[Value] = []
        for value, group in groups.items():
            items = (*(after.items or ()), value) if self.kind.is_recorded else after.items
            if not self._may_differ(after._replace(items=items, rivals=tuple(group))):
                stuck.append(value)
        return tuple(stuck)

    def _may_differ(self, place: _Place) -> bool:
        if not place.rivals:
            return True
        endings = self._endings(place._replace(rivals=()), len(place.rivals))
        return endings is None or not endings <= {rival.data[place.size :] for rival in place.rivals}

    def _endings(self, place: _Place, cap: int) -> frozenset[tuple[Value, ...]] | None:
        known = self._known_endings.get(place)
        if known is None or (isinstance(known, int) and known < cap):
            assert place.items is not None
            endings = array_endings(self._compiler.expander, self._shape, place.at, place.items, cap)
            known = self._known_endings[place] = cap if endings is None else endings
        return None if isinstance(known, int) else known

    def _is_live(self, at: _At) -> bool:
        """Whether the array can still be completed from `at`."""
        shape, expander = self._shape, self._compiler.expander
        if _complete(shape, at):
            return True
        if self.kind is Uniqueness.LISTED and not shape.contains:
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
            for node, after in _next(expander, self._shape, at, self.kind):
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


class _ItemQuestion(NamedTuple):
    """Which frame follows an item, given its value."""

    frames: ArrayFrames
    after: _Place
    unlike: tuple[Value, ...]

    def answer(self, value: Value | None) -> tuple[int, int]:
        return ARRAY_AFTER, self.frames.frame_behind(self.after, value)

    def candidates(self) -> Iterable[Value] | None:
        if self.frames.may_run_out(self.after):
            return None
        last = self.after.size - 1
        return (rival.data[last] for rival in self.after.rivals)
