"""Objects: which keys may come next, what their values must be, and when the object may close."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from ..machine import ObjectFrame, Transition
from ..machine_layout import CLASS_BASE
from ..regex import Language
from .completion import Completion
from .key_order import KeyOrder
from .keys import Keys
from .names import Names, ones
from .nodes import Node
from .shapes import ObjectShape

if TYPE_CHECKING:
    from .compile import SchemaCompiler


class _KeyStart(NamedTuple):
    """Where a key begins: a row and a trie of declared names, as in `ObjectFrame`."""

    row: int | None
    names: int | None


class _At(NamedTuple):
    """Progress through an object.

    Attributes:
        seen: bit set of the names seen, by sorted order.
        count: members so far, held at the point from which more change nothing.
        met: bit set of witnesses found.
        sequences: bit set of the orders that the names seen keep.
    """

    seen: int
    count: int
    met: int
    sequences: int


class ObjectFrames:
    """Frames of one object shape in one machine.

    Args:
        compiler: makes values of nodes.
        shape: the object shape.
        any_order: names may come in every order and every spelling, else as `KeyOrder.of_schema` says and without needless escapes.
    """

    def __init__(self, compiler: SchemaCompiler, shape: ObjectShape, *, any_order: bool):
        self._compiler = compiler
        self._shape = shape
        self._names = names = Names(compiler.expander, shape)
        self._tidy = not any_order
        self._order = KeyOrder() if any_order else KeyOrder.of_schema(names, shape)
        self._completion = Completion(compiler.expander, shape, names)
        self._frames: dict[_At, int] = {}

    @cached_property
    def _key_start(self) -> _KeyStart:
        machine, limits = self._compiler.machine, self._compiler.expander.limits
        live, classes, names = self._names.live_classes, self._names.classes, self._names.sorted
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
        keys = Keys(names, [Language.anything().automaton(limits)] if live else [])
        lowering = machine.lower(keys, json=True, tidy=self._tidy, keys=keys)
        trie = machine.new_names(names, tidy=self._tidy, escapes=lambda lo, hi, depth: lowering.escape(keys.within(lo, hi, depth)))
        return _KeyStart(others, trie)

    def start(self) -> int:
        return self._frame(_At(0, 0, 0, self._order.all_open))

    def _frame(self, at: _At) -> int:
        frame = self._frames.get(at)
        if frame is None:
            frame = self._compiler.machine.new_frame(lambda: self._make(at), lambda outcome: self._on_key(at, outcome))
            self._frames[at] = frame
        return frame

    # --- what may come ---------------------------------------------------------------------------------------------

    def _make(self, at: _At) -> ObjectFrame:
        shape = self._shape
        pending = self._completion.pending(at.seen)
        can_close = not pending and at.count >= shape.low and at.met == (1 << len(shape.witnesses)) - 1
        declared, classes = self._allowed(at, pending)
        key_row, names = self._key_start if declared or classes else _KeyStart(None, None)
        return ObjectFrame(can_close, key_row, classes, declared, len(self._names.sorted), names)

    def _allowed(self, at: _At, pending: int) -> tuple[int, int]:
        """Bit sets of the names and of the classes that may come."""
        shape, names, complete = self._shape, self._names, self._order.is_complete(at.seen)
        if shape.high is not None and at.count >= shape.high:
            return 0, 0
        declared = names.usable & ~at.seen & ~self._order.held_back(at.seen, at.sequences)
        classes = sum(1 << j for j, c in enumerate(names.classes) if complete or c.invited) & names.live_classes
        if self._completion.is_counted:
            if shape.high is not None and at.count + pending.bit_count() >= shape.high:
                return declared & pending, 0
            return declared, classes
        declared = sum(1 << i for i in ones(declared) if self._ways(at, i))
        return declared, sum(1 << j for j in ones(classes) if self._ways(at, CLASS_BASE + j))

    def _after(self, at: _At, outcome: int) -> _At:
        """Progress after a key, before witnesses are counted."""
        shape = self._shape
        limit = shape.high if shape.high is not None else shape.low
        count = min(at.count + 1, limit)
        if outcome >= CLASS_BASE:
            return at._replace(count=count)
        sequences = self._order.after(at.seen, at.sequences, outcome)
        return at._replace(seen=at.seen | 1 << outcome, count=count, sequences=sequences)

    def _ways(self, at: _At, outcome: int) -> list[tuple[Node, _At]]:
        """Value node and progress after it, for each set of witnesses that the member may stand for."""
        names, completion = self._names, self._completion
        after = self._after(at, outcome)
        missing = [i for i in range(len(self._shape.witnesses)) if not at.met >> i & 1]
        if outcome >= CLASS_BASE:
            j = outcome - CLASS_BASE
            node = names.classes[j].node
            eligible = [i for i in missing if names.witness_class(i, j)]
        else:
            node = names.node(names.sorted[outcome])
            eligible = [i for i in missing if completion.is_witness(outcome, i)]
        ways: list[tuple[Node, _At]] = []
        for size in range(len(eligible) + 1):
            for chosen in combinations(eligible, size):
                value, met = node, at.met
                for i in chosen:
                    value, met = names.witness_node(i, value), met | 1 << i
                reached = after._replace(met=met)
                inhabited = not chosen or self._compiler.expander.inhabited(value)
                if inhabited and completion.exists(reached.seen, reached.count, reached.met):
                    ways.append((value, reached))
        return ways

    def _on_key(self, at: _At, outcome: int) -> Transition:
        return [(self._compiler.value(node), self._frame(after)) for node, after in self._ways(at, outcome)]
