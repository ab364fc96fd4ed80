"""Whether an object that is begun can still be finished."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..errors import LimitError
from .dependencies import Dependencies
from .names import Names, ones
from .nodes import Node
from .object_needs import MAX_CHOICES, Fresh
from .shapes import ObjectShape

if TYPE_CHECKING:
    from .expand import Expander


class Completion:
    """Decides for one object shape, exactly. Sets of names are bit sets by sorted order."""

    def __init__(self, expander: Expander, shape: ObjectShape, names: Names):
        self._expander = expander
        self._shape = shape
        self._names = names
        self._dependencies = Dependencies(names, shape)
        self._required = names.bits(shape.required)
        self._witness_names = [names.bits(names.witness_names(i)) for i in range(len(shape.witnesses))]

    @property
    def is_counted(self) -> bool:
        """Whether only the number of members is left to decide: any usable name may come, one as well as another."""
        return not self._shape.witnesses and not self._dependencies

    def pending(self, seen: int) -> int:
        """Names that must still come."""
        present = self._required | seen
        return (self._dependencies.closure(present) if self._dependencies else present) & ~seen

    def is_witness(self, name: int, witness: int) -> bool:
        return bool(self._witness_names[witness] >> name & 1)

    def exists(self, seen: int, count: int, met: int) -> bool:
        """Whether members can be added to `count` ones, with the names `seen` among them and the witnesses `met`, so that the
        object may close.

        Raises:
            LimitError: there are too many ways to choose them.
        """
        present = seen | self.pending(seen)
        if present & ~seen & ~self._names.usable:
            return False
        missing = [i for i in range(len(self._shape.witnesses)) if not met >> i & 1]
        if missing:
            return self._meets(seen, present, count, missing)
        return self._fits(present, count + (present & ~seen).bit_count())

    # --- number of members -----------------------------------------------------------------------------------------

    @cached_property
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
