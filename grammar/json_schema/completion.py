"""How an object that is begun can go on, and whether it can still be finished."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from ..errors import LimitError
from ..lazily import lazy
from ..machine_layout import CLASS_BASE
from .dependencies import Dependencies
from .names import Names, ones
from .nodes import Node
from .object_needs import MAX_CHOICES, Fresh
from .shapes import ObjectShape
from .values import Value

if TYPE_CHECKING:
    from .expand import Expander


Ending = frozenset[tuple[str, Value]]  # members that finish an object


class Progress(NamedTuple):
    """Where an object stands, its members being in any order.

    Attributes:
        seen: bit set of the names seen, by sorted order.
        count: members so far, held at the point from which more change nothing.
        met: bit set of witnesses found.
    """

    seen: int = 0
    count: int = 0
    met: int = 0


class Completion:
    """Decides for one object shape, exactly. Sets of names are bit sets by sorted order; an outcome is a name, or CLASS_BASE and a
    class."""

    def __init__(self, expander: Expander, shape: ObjectShape, names: Names):
        self._expander = expander
        self._shape = shape
        self._names = names
        self._dependencies = Dependencies(names, shape)
        self._required = names.bits(shape.required)
        self._witness_names = [names.bits(names.witness_names(i)) for i in range(len(shape.witnesses))]
        self._all_met = (1 << len(shape.witnesses)) - 1
        # only the number of members is left to decide: any usable name may come, one as well as another
        self._is_counted = not shape.witnesses and not shape.dependencies
        self._is_free = self._is_counted and shape.low == 0 and shape.high is None
        self._most = shape.low if shape.high is None else shape.high  # members from which on more change nothing

    def pending(self, seen: int) -> int:
        """Names that must still come."""
        if self._dependencies:
            return self._dependencies.closure(self._required | seen) & ~seen
        return self._required & ~seen

    def is_complete(self, at: Progress) -> bool:
        """Whether the object may close."""
        return at.count >= self._shape.low and at.met == self._all_met and not self.pending(at.seen)

    def outcomes(self, at: Progress) -> tuple[int, int]:
        """Bit sets of the names and of the classes that may come."""
        high, names = self._shape.high, self._names
        if high is not None and at.count >= high:
            return 0, 0
        declared, classes = names.usable & ~at.seen, names.live_classes
        if self._is_counted:
            if high is None:
                return declared, classes
            pending = self.pending(at.seen)
            if at.count + pending.bit_count() >= high:
                return declared & pending, 0
            return declared, classes
        declared = sum(1 << i for i in ones(declared) if self.ways(at, i))
        return declared, sum(1 << j for j in ones(classes) if self.ways(at, CLASS_BASE + j))

    def ways(self, at: Progress, outcome: int) -> list[tuple[Node, Progress]]:
        """Value node and progress behind a member, for each set of witnesses that it may stand for."""
        names = self._names
        if outcome >= CLASS_BASE:
            j, seen = outcome - CLASS_BASE, at.seen
            node = names.classes[j].node
        else:
            j, seen = -1, at.seen | 1 << outcome
            node = names.node(names.sorted[outcome])
        count = min(at.count + 1, self._most)
        if self._is_counted:
            after = Progress(seen, count)
            return [(node, after)] if self._is_free or self.exists(after) else []
        missing = [i for i in range(len(self._shape.witnesses)) if not at.met >> i & 1]
        eligible = [i for i in missing if (names.witness_class(i, j) if j >= 0 else self._witness_names[i] >> outcome & 1)]
        ways: list[tuple[Node, Progress]] = []
        for size in range(len(eligible) + 1):
            for chosen in combinations(eligible, size):
                value, met = node, at.met
                for i in chosen:
                    value, met = names.witness_node(i, value), met | 1 << i
                after = Progress(seen, count, met)
                if (not chosen or self._expander.inhabited(value)) and self.exists(after):
                    ways.append((value, after))
        return ways

    def endings(self, at: Progress, cap: int, finite: Callable[[Node, int], tuple[Value, ...] | None]) -> frozenset[Ending] | None:
        """All ways to finish the object; None when there are more than `cap`.

        Args:
            finite: all values of a node, None when there are more than a number.

        Raises:
            LimitError: too many steps find too few of them.
        """
        found: set[Ending] = set()
        stack: list[tuple[Progress, int, Ending]] = [(at, -1, frozenset())]
        steps = 0
        while stack:
            at, last, members = stack.pop()
            if self.is_complete(at):
                found.add(members)
                if len(found) > cap:
                    return None
            declared, classes = self.outcomes(at)
            if classes:
                return None
            pending = self.pending(at.seen)
            for i in ones(declared >> (last + 1) << (last + 1)):  # each set of names in one order
                for node, after in self.ways(at, i):
                    values = finite(node, cap)
                    if values is None:
                        return None
                    stack.extend((after, i, members | {(self._names.sorted[i], value)}) for value in values)
                    steps += len(values)
                if pending >> i & 1:
                    break
            if steps > MAX_CHOICES + 20 * cap:
                raise LimitError("the values that an object can still have are too many to be told apart", pointer=self._shape.pointer)
        return frozenset(found)

    def exists(self, at: Progress) -> bool:
        """Whether members can be added so that the object may close.

        Raises:
            LimitError: there are too many ways to choose them.
        """
        seen = at.seen
        present = seen | self.pending(seen)
        if present & ~seen & ~self._names.usable:
            return False
        missing = [i for i in range(len(self._shape.witnesses)) if not at.met >> i & 1]
        if missing:
            return self._meets(seen, present, at.count, missing)
        return self._fits(present, at.count + (present & ~seen).bit_count())

    # --- number of members -----------------------------------------------------------------------------------------

    @lazy
    def _addable(self) -> int:
        """Names that can come together with all that they bring along."""
        usable = self._names.usable
        if not self._dependencies:
            return usable
        return self._names.bits(self._names.sorted[i] for i in ones(usable) if not self._dependencies.closure(1 << i) & ~usable)

    def _fits(self, present: int, size: int) -> bool:
        """Whether the `size` members, with the names `present`, can be filled up to a number of members that is allowed."""
        low, high = self._shape.low, self._shape.high
        if high is not None and size > high:
            return False
        if size >= low or self._names.live_classes:
            return True
        free = self._addable & ~present
        if high is None or not self._dependencies:
            return size + free.bit_count() >= low
        return self._fills(present, size, free, high)

    def _fills(self, present: int, size: int, free: int, high: int) -> bool:
        """Whether some of the names `free`, with what they bring along, make the number of members right."""
        seen, stack = {present}, [(present, size)]
        while stack:
            present, size = stack.pop()
            for i in ones(free & ~present):
                more = self._dependencies.closure(1 << i) & ~present
                reached, total = present | more, size + more.bit_count()
                if self._shape.low <= total <= high:
                    return True
                if total < self._shape.low and reached not in seen:
                    seen.add(reached)
                    stack.append((reached, total))
                    self._check_steps(len(seen))
        return False

    def _check_steps(self, steps: int) -> None:
        if steps > MAX_CHOICES:
            raise LimitError("the members that the object needs can be chosen in too many ways", pointer=self._shape.pointer)

    # --- witnesses -------------------------------------------------------------------------------------------------

    def _meets(self, seen: int, present: int, count: int, missing: list[int]) -> bool:
        """Whether the witnesses `missing` can be met. Tries the ways to share members depth first; at most one new member per witness
        is ever needed, and what it brings along."""
        stack: list[tuple[int, dict[int | Fresh, Node], int]] = [(0, {}, present)]
        steps = 0
        while stack:
            k, taken, present = stack.pop()
            steps += 1
            self._check_steps(steps)
            size = count + (present & ~seen).bit_count() + sum(isinstance(member, Fresh) for member in taken)
            if self._shape.high is not None and size > self._shape.high:
                continue
            if k == len(missing):
                if self._fits(present, size):
                    return True
                continue
            for member, node in self._places(seen, missing[k], taken):
                if self._expander.inhabited(node):
                    more = self._dependencies.closure(1 << member) if isinstance(member, int) else 0
                    stack.append((k + 1, {**taken, member: node}, present | more))
        return False

    def _places(self, seen: int, witness: int, taken: dict[int | Fresh, Node]) -> list[tuple[int | Fresh, Node]]:
        """Members that may be the witness, with what their value must then be; the most promising last."""
        names = self._names
        places: list[tuple[int | Fresh, Node]] = []
        for i in ones(self._witness_names[witness] & self._addable & ~seen):
            places.append((i, names.witness_node(witness, taken.get(i, names.node(names.sorted[i])))))
        for j, c in enumerate(names.classes):
            if names.witness_class(witness, j):
                used = [m for m in taken if isinstance(m, Fresh) and m.class_index == j]
                members = [Fresh(j, len(used)), *used]
                places.extend((m, names.witness_node(witness, taken.get(m, c.node))) for m in members)
        return places
