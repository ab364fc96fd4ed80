"""Which values a node has, where they are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import LimitError
from .arrays import array_endings
from .completion import Completion, Progress
from .emptiness import strings_in
from .names import Names
from .nodes import Node, pointer_of
from .shapes import ArrayShape, ObjectShape
from .values import Value, Values, number_text

if TYPE_CHECKING:
    from .expand import Expander

_MAX_NESTING = 100  # of nodes whose values are counted


class Extent:
    """Counts and lists values of the nodes of one expander, each node once."""

    def __init__(self, expander: Expander):
        self._expander = expander
        self.values = Values()
        self._all: dict[Node, tuple[Value, ...]] = {}
        self._more_than: dict[Node, int] = {}  # a number that the values of the node exceed
        self._open: set[Node] = set()
        self._completions: dict[ObjectShape, Completion] = {}

    def completion(self, shape: ObjectShape) -> Completion:
        found = self._completions.get(shape)
        if found is None:
            found = self._completions[shape] = Completion(self._expander, shape, Names(self._expander, shape))
        return found

    def finite(self, node: Node, cap: int) -> tuple[Value, ...] | None:
        """All values of an inhabited node, None when there are more than `cap`.

        Raises:
            LimitError: they are too hard to count.
        """
        known = self._all.get(node)
        if known is not None:
            return known if len(known) <= cap else None
        if self._more_than.get(node, -1) >= cap or node in self._open:
            return None  # a value that may hold another one of its kind has no end
        if len(self._open) > _MAX_NESTING:
            raise LimitError("the values of the schema are nested too deep to be counted", pointer=pointer_of(node))
        self._open.add(node)
        try:
            found = self._list(node, cap)
        finally:
            self._open.discard(node)
        if found is None:
            self._more_than[node] = max(cap, self._more_than.get(node, -1))
        else:
            self._all[node] = found
        return found

    def exceeds(self, node: Node, unlike: tuple[Value, ...]) -> bool:
        """Whether an inhabited node has a value that is not one of `unlike`."""
        if not unlike:
            return True
        values = self.finite(node, 1 << len(unlike).bit_length())  # rounded, so that it is rarely counted anew
        return values is None or not set(values) <= set(unlike)

    def _list(self, node: Node, cap: int) -> tuple[Value, ...] | None:
        expander, values = self._expander, self.values
        shapes = expander.expand(node)
        if expander.has_string(shapes.string) and shapes.string.language is None and shapes.string.high != 0:
            return None
        found = {values.word(word): None for word in sorted(shapes.literals)}
        if expander.has_string(shapes.string):
            strings = strings_in(shapes.string, cap, expander.limits)
            if strings is None:
                return None
            found.update((values.string(text), None) for text in strings)
        numbers = (shapes.number.plain | shapes.number.other).values(cap)
        if numbers is None:
            return None
        found.update((values.number(number_text(number)), None) for number in numbers)
        for array in shapes.arrays:
            if not self._add_arrays(array, found, cap):
                return None
        for shape in shapes.objects:
            if not self._add_objects(shape, found, cap):
                return None
        return tuple(found) if len(found) <= cap else None

    def _add_objects(self, shape: ObjectShape, found: dict[Value, None], cap: int) -> bool:
        from .object_needs import object_needs

        if not self._has_value(object_needs(self._expander, shape)):
            return True
        endings = self.completion(shape).endings(Progress(), cap, self.finite)
        if endings is None:
            return False
        found.update((self.values.object(dict(ending)), None) for ending in endings)
        return len(found) <= cap

    def _add_arrays(self, shape: ArrayShape, found: dict[Value, None], cap: int) -> bool:
        from .arrays import array_needs

        if not self._has_value(array_needs(self._expander, shape)):
            return True
        endings = array_endings(self._expander, shape, None, (), cap)
        if endings is None:
            return False
        found.update((self.values.array(ending), None) for ending in endings)
        return len(found) <= cap

    def _has_value(self, ways: list[list[Node]]) -> bool:
        return any(all(self._expander.inhabited(need) for need in way) for way in ways)
