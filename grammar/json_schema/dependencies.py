"""Names that bring other names along: `dependentRequired`, transitively closed."""

from __future__ import annotations

from ..lazily import lazy
from .names import Names, ones
from .shapes import ObjectShape


class Dependencies:
    """The dependencies of one shape over bit sets of its names."""

    def __init__(self, names: Names, shape: ObjectShape):
        self._names = names
        self._shape = shape

    def __bool__(self) -> bool:
        return bool(self._shape.dependencies)

    @lazy
    def _needed(self) -> dict[int, int]:
        needed: dict[int, int] = {}
        for name, others in self._shape.dependencies:
            i = self._names.index[name]
            needed[i] = needed.get(i, 0) | self._names.bits(others)
        return needed

    @lazy
    def _triggers(self) -> int:
        return self._names.bits(name for name, _ in self._shape.dependencies)

    @lazy
    def _brings(self) -> dict[int, int]:
        """What each name brings along, itself included: a strongly connected component at a time, those it leads to first (Tarjan)."""
        brings: dict[int, int] = {}
        for root in self._needed:
            if root not in brings:
                self._visit(root, brings)
        return brings

    def _visit(self, root: int, brings: dict[int, int]) -> None:
        depth: dict[int, int] = {root: 0}  # names not in `brings` yet
        lowest: dict[int, int] = {root: 0}
        unassigned, stack = [root], [(root, self._next_triggers(root))]
        while stack:
            i, waiting = stack[-1]
            if waiting:
                j = waiting.pop()
                if j in brings:
                    continue
                if j in depth:
                    lowest[i] = min(lowest[i], depth[j])
                else:
                    depth[j] = lowest[j] = len(depth)
                    unassigned.append(j)
                    stack.append((j, self._next_triggers(j)))
                continue
            stack.pop()
            if stack:
                above = stack[-1][0]
                lowest[above] = min(lowest[above], lowest[i])
            if lowest[i] == depth[i]:
                component = [unassigned.pop()]
                while component[-1] != i:
                    component.append(unassigned.pop())
                self._assign(component, brings)

    def _next_triggers(self, i: int) -> list[int]:
        return list(ones(self._needed[i] & self._triggers))

    def _assign(self, component: list[int], brings: dict[int, int]) -> None:
        bits = 0
        for i in component:
            bits |= 1 << i | self._needed[i]
        for j in ones(bits & self._triggers):
            bits |= brings.get(j, 0)
        brings.update(dict.fromkeys(component, bits))

    def closure(self, present: int) -> int:
        """Names that must be present once `present` are."""
        for i in ones(present & self._triggers):
            present |= self._brings[i]
        return present
