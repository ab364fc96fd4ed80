"""How a left corner grows into its goal: what it becomes by reading nothing, and which guards the goal leaves behind."""

from __future__ import annotations

from .corners import Corners
from .guards import ONLY_FREE
from .numbered import NumberedGrammar
from .outcomes import Outcomes

_Node = tuple[int, int]  # symbol, guard after it


class Growths:
    """The growths of one goal.

    Attributes:
        corners: the left edge of the goal.
    """

    def __init__(self, grammar: NumberedGrammar, outcomes: Outcomes, goal: int):
        self.corners = Corners(grammar, goal)
        self._grammar = grammar
        self._outcomes = outcomes
        self._goal = goal
        self._heads: dict[int, tuple[int, ...]] = {}
        self._sources: dict[_Node, list[_Node]] = {}
        self._ends: dict[_Node, set[int]] = {}

    def heads(self, symbol: int) -> tuple[int, ...]:
        """What a symbol becomes by reading nothing, itself included."""
        found = self._heads.get(symbol)
        if found is None:
            heads = dict.fromkeys((symbol,))
            todo = [symbol]
            while todo:
                for parent in self.corners.parents(todo.pop()):
                    if parent.head not in heads and all(self._grammar.nullable(part) for part in parent.rest):
                        heads[parent.head] = None
                        todo.append(parent.head)
            found = self._heads[symbol] = tuple(heads)
        return found

    def ends(self, symbol: int, guard: int) -> frozenset[int]:
        """Guards that may hold when `symbol`, with `guard` after it, has grown into the goal."""
        if self._outcomes.unguarded:
            return ONLY_FREE
        if (symbol, guard) not in self._ends:
            self._explore((symbol, guard))
        return frozenset(self._ends[symbol, guard])

    def _explore(self, start: _Node) -> None:
        """Adds what a node leads to, then carries the guards of the goal back along all edges."""
        self._ends[start] = set()
        todo = [start]
        reached: list[_Node] = []
        while todo:
            node = todo.pop()
            if node[0] == self._goal:
                reached.append(node)
            for parent in self.corners.parents(node[0]):
                for after in self._outcomes.of_sequence(parent.rest, node[1]):
                    target = (parent.head, after)
                    self._sources.setdefault(target, []).append(node)
                    if target not in self._ends:
                        self._ends[target] = set()
                        todo.append(target)
                    elif self._ends[target]:
                        reached.append(target)
        for node in reached:
            self._carry_back(node)

    def _carry_back(self, node: _Node) -> None:
        if node[0] == self._goal:
            self._ends[node].add(node[1])
        todo = [node]
        while todo:
            target = todo.pop()
            for source in self._sources.get(target, ()):
                if not self._ends[target] <= self._ends[source]:
                    self._ends[source] |= self._ends[target]
                    todo.append(source)
