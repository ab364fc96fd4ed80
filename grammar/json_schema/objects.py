"""Objects: which keys may come next, what their values must be, and when the object may close."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..lazily import lazy
from ..lowering import Lowering
from ..machine_layout import CLASS_BASE, OBJECT_AFTER
from ..machine_parts import ObjectFrame, Transition
from ..regex import Language
from .completion import Completion, Ending, Progress
from .key_order import KeyOrder
from .keys import Keys
from .names import Names, ones
from .nodes import Node
from .shapes import ObjectShape
from .values import Value

if TYPE_CHECKING:
    from .compile import SchemaCompiler

Rivals = tuple[Value, ...]  # oldest first


class _KeyStart(NamedTuple):
    """Where a key begins: a row and a trie of declared names, as in `ObjectFrame`."""

    row: int | None
    names: int | None


class _At(NamedTuple):
    """Progress through an object.

    Attributes:
        progress: what has been seen.
        sequences: bit set of the orders that the names seen keep.
        rivals: objects that this one must not be and still agrees with.
    """

    progress: Progress
    sequences: int
    rivals: Rivals = ()


class _Way(NamedTuple):
    """What the value of a member may be, and where it leads. `after` has the rivals that have such a member, of any value."""

    node: Node
    unlike: tuple[Value, ...]
    after: _At


class ObjectFrames:
    """Frames of one object shape in one machine.

    Args:
        compiler: makes values of nodes.
        shape: the object shape.
        any_order: names may come in every order and every spelling, else as `KeyOrder.of_schema` says and without needless escapes.
        more: names of rivals that the shape does not tell apart itself.
    """

    def __init__(self, compiler: SchemaCompiler, shape: ObjectShape, *, any_order: bool, more: Sequence[str] = ()):
        self._compiler = compiler
        self._shape = shape
        self.names = names = Names(compiler.expander, shape, more)
        self._tidy = not any_order
        self._order = KeyOrder() if any_order else KeyOrder.of_schema(names, shape)
        self._completion = Completion(compiler.expander, shape, names)
        self._key_starts: dict[int, _KeyStart] = {}
        self._frames: dict[_At, int] = {}
        self._known_endings: dict[Progress, frozenset[Ending] | int] = {}  # an int: there are more

    def _key_start(self, allowed: int) -> _KeyStart:
        """Where keys begin while some classes are allowed. Rows know how many keys are left below them, so where a class has few
        names, others are left out of its rows while they are not allowed."""
        told_apart = allowed and any(c.language is not None for c in self.names.classes)
        live = allowed if told_apart else self.names.live_classes
        start = self._key_starts.get(live)
        if start is None:
            start = self._key_starts[live] = self._make_key_start(live)
        return start

    def _make_key_start(self, live: int) -> _KeyStart:
        machine, limits = self._compiler.machine, self._compiler.expander.limits
        classes, names = self.names.classes, self.names.sorted
        if live and any(c.language is not None for c in classes):
            automata = [
                (Language.anything() if c.language is None else c.language).automaton(limits) if live >> j & 1 else None
                for j, c in enumerate(classes)
            ]
            keys = Keys(names, automata)
            return _KeyStart(machine.lower(keys, json=True, tidy=self._tidy, keys=keys).start_row(), None)
        others = self._compiler.other_keys(self._tidy) if live else None
        if not names:
            return _KeyStart(others, None)
        return _KeyStart(others, machine.new_names(names, tidy=self._tidy, escapes=self._escapes))

    def _escapes(self, lo: int, hi: int, depth: int) -> int:
        """Row after a backslash behind the first `depth` characters of the declared names [lo, hi)."""
        keys, lowering = self._escaped
        return lowering.escape(keys.within(lo, hi, depth))

    @lazy
    def _escaped(self) -> tuple[Keys, Lowering]:
        """The names in every spelling."""
        limits = self._compiler.expander.limits
        keys = Keys(self.names.sorted, [Language.anything().automaton(limits)] if self.names.live_classes else [])
        return keys, self._compiler.machine.lower(keys, json=True, tidy=self._tidy, keys=keys)

    def start(self, rivals: Rivals = ()) -> int:
        return self.frame(self._start(rivals))

    def differs(self, rivals: Rivals) -> bool:
        """Whether some object of the shape is none of the rivals."""
        return self._may_differ(self._start(rivals))

    def _start(self, rivals: Rivals) -> _At:
        return _At(Progress(), self._order.all_open, rivals)

    def frame(self, at: _At) -> int:
        frame = self._frames.get(at)
        if frame is None:
            frame = self._compiler.machine.new_frame(self._make, at, self._on_key)
            self._frames[at] = frame
        return frame

    # --- what may come ---------------------------------------------------------------------------------------------

    def _make(self, at: _At) -> ObjectFrame:
        can_close = self._completion.is_complete(at.progress)
        if can_close and at.rivals:
            num_seen = at.progress.seen.bit_count()
            can_close = not any(len(rival.data) == num_seen for rival in at.rivals)
        declared, classes = self._allowed(at)
        key_row, names = self._key_start(classes) if declared or classes else _KeyStart(None, None)
        return ObjectFrame(can_close, key_row, classes, declared, len(self.names.sorted), names)

    def _allowed(self, at: _At) -> tuple[int, int]:
        """Bit sets of the names and of the classes that may come."""
        seen = at.progress.seen
        declared, classes = self._completion.outcomes(at.progress)
        declared &= ~self._order.held_back(seen, at.sequences)
        if classes and not self._order.is_complete(seen):
            classes &= sum(1 << j for j, c in enumerate(self.names.classes) if c.invited)
        if at.rivals:
            declared = sum(1 << i for i in ones(declared) if self._ways(at, i))
        return declared, classes

    def _ways(self, at: _At, outcome: int) -> list[_Way]:
        """Of an object that has rivals."""
        sequences, rivals = at.sequences, Rivals()
        if outcome < CLASS_BASE:
            sequences = self._order.after(at.progress.seen, sequences, outcome)
            name = self.names.sorted[outcome]
            rivals = tuple(rival for rival in at.rivals if name in rival.data)
        ways: list[_Way] = []
        for node, progress in self._completion.ways(at.progress, outcome):
            after = _At(progress, sequences, rivals)
            unlike = self._equal_for_sure(after, self.names.sorted[outcome]) if rivals else ()
            if self._compiler.extent.exceeds(node, unlike):
                ways.append(_Way(node, unlike, after))
        return ways

    def _on_key(self, at: _At, outcome: int) -> Transition:
        if not at.rivals:
            value, frame, sequences = self._compiler.value, self.frame, at.sequences
            if outcome < CLASS_BASE:
                sequences = self._order.after(at.progress.seen, sequences, outcome)
            return [(value(node), frame(_At(progress, sequences))) for node, progress in self._completion.ways(at.progress, outcome)]
        return [(self._compiler.value(way.node, way.unlike), self._frame_behind(way, outcome)) for way in self._ways(at, outcome)]

    def _frame_behind(self, way: _Way, outcome: int) -> int:
        if not way.after.rivals:
            return self.frame(way.after)
        return ~self._compiler.question(_MemberQuestion(self, way.after, self.names.sorted[outcome], way.unlike))

    # --- rivals ----------------------------------------------------------------------------------------------------

    def _may_differ(self, at: _At) -> bool:
        """Whether the object can be finished as none of the rivals."""
        if not at.rivals:
            return True
        endings = self._endings(at.progress, len(at.rivals))
        if endings is None:
            return True
        seen = frozenset(self.names.sorted[i] for i in ones(at.progress.seen))
        return not endings <= {_ending(rival, seen) for rival in at.rivals}

    def _equal_for_sure(self, after: _At, name: str) -> tuple[Value, ...]:
        """Values of the member `name` with which the object could only become one of the rivals."""
        if self._endings(after.progress, len(after.rivals)) is None:
            return ()
        groups: dict[Value, list[Value]] = {}
        for rival in after.rivals:
            groups.setdefault(rival.data[name], []).append(rival)
        return tuple(value for value, group in groups.items() if not self._may_differ(after._replace(rivals=tuple(group))))

    def _endings(self, progress: Progress, cap: int) -> frozenset[Ending] | None:
        """All ways to finish the object, None when there are more than `cap`."""
        known = self._known_endings.get(progress)
        if known is None or (isinstance(known, int) and known < cap):
            cap = 1 << cap.bit_length()  # so that it is asked for again only where there are twice as many rivals
            endings = self._completion.endings(progress, cap, self._compiler.extent.finite)
            known = self._known_endings[progress] = cap if endings is None else endings
        return None if isinstance(known, int) else known


class _MemberQuestion(NamedTuple):
    """Which rivals an object still agrees with, given the value of its last member."""

    frames: ObjectFrames
    after: _At
    name: str
    unlike: tuple[Value, ...]

    def answer(self, value: Value | None) -> tuple[int, int]:
        rivals = tuple(rival for rival in self.after.rivals if rival.data[self.name] is value)
        return OBJECT_AFTER, self.frames.frame(self.after._replace(rivals=rivals))

    def candidates(self) -> Iterable[Value]:
        return (rival.data[self.name] for rival in self.after.rivals)


def _ending(rival: Value, seen: frozenset[str]) -> Ending:
    return frozenset((name, value) for name, value in rival.data.items() if name not in seen)
