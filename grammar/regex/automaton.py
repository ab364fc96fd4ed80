"""The lazy deterministic automaton of a node."""

from __future__ import annotations

import threading
from bisect import bisect_right

from ..languages import Edge, Run
from ..limits import Limits
from .budget import Budget
from .charset import CharSet
from .counting import count_strings, tail_length_bits
from .derivative import locate, row
from .emptiness import is_live
from .nodes import ANYTHING, EMPTY, Node
from .runs import ahead, run_of
from .shortest import shortest


class RegexAutomaton:
    """A `CharAutomaton` whose states are the derivatives of one node, numbered as they are met.

    Trimmed: only states from which some string is accepted get an edge. Making it costs nothing; every method may raise
    `LimitError` once its budget (`max_states` states, `max_steps` units of derivation) is used up. Thread-safe.
    """

    def __init__(self, node: Node, limits: Limits):
        self._budget = Budget(limits)
        self._lock = threading.Lock()
        self._numbers: dict[int, int] = {}
        self._nodes: list[Node] = []
        self._classes: list[tuple[tuple[CharSet, int], ...] | None] = []
        self._edges: list[tuple[Edge, ...] | None] = []
        self._lows: list[list[int] | None] = []
        start = locate(node)
        self.start = self._number(start if is_live(start, self._budget) else EMPTY)

    @property
    def num_states(self) -> int:
        """How many states have been met so far."""
        return len(self._nodes)

    @property
    def is_worn(self) -> bool:
        """Whether half of its budget is used up, so that others should rather have a new one."""
        return self._budget.is_half_spent

    def accepting(self, q: int) -> bool:
        return self._nodes[q].nullable

    def universal(self, q: int) -> bool:
        return self._nodes[q] is ANYTHING

    def classes(self, q: int) -> tuple[tuple[CharSet, int], ...]:
        """Live edges of `q` as disjoint character sets, one for each target, in no particular order."""
        known = self._classes[q]
        if known is None:
            budget = self._budget
            found: dict[int, CharSet] = {}
            for cell, target in row(self._nodes[q], budget):
                target = locate(target)
                if is_live(target, budget):
                    number = self._number(target)
                    found[number] = found[number] | cell if number in found else cell
            known = self._classes[q] = tuple([(cell, number) for number, cell in found.items()])
        return known

    def edges(self, q: int) -> tuple[Edge, ...]:
        known = self._edges[q]
        if known is None:
            flat = [(low, high, target) for cell, target in self.classes(q) for low, high in cell.ranges]
            flat.sort()
            known = self._edges[q] = tuple(flat)
        return known

    def step(self, q: int, code_point: int) -> int | None:
        """The state after one more character, None if no string goes on that way."""
        edges = self.edges(q)
        lows = self._lows[q]
        if lows is None:
            lows = self._lows[q] = [edge[0] for edge in edges]
        index = bisect_right(lows, code_point) - 1
        if index < 0 or code_point > edges[index][1]:
            return None
        return edges[index][2]

    def run(self, q: int) -> Run | None:
        return run_of(self._nodes[q], self._budget)

    def ahead(self, q: int, count: int) -> int:
        """The state after any `count` characters of the even run at `q`."""
        return self._number(ahead(self._nodes[q], count, self._budget))

    def tail_count(self, q: int, cap: int) -> int | None:
        return count_strings(self._nodes[q], cap, self._budget)

    def tail_lengths(self, q: int, cap: int) -> int:
        """Lengths, up to `cap` code points, of the strings accepted from `q`: bit n is set if one has length n."""
        return tail_length_bits(self._nodes[q], cap, self._budget)

    def min_length(self, q: int) -> int | None:
        """Length in code points of a shortest string accepted from `q`; None if none is."""
        return shortest(self._nodes[q], self._budget)

    def _number(self, node: Node) -> int:
        number = self._numbers.get(node.uid)
        if number is not None:
            return number
        with self._lock:
            number = self._numbers.get(node.uid)
            if number is None:
                self._budget.add_state()
                number = len(self._nodes)
                self._nodes.append(node)
                self._classes.append(None)
                self._edges.append(None)
                self._lows.append(None)
                self._numbers[node.uid] = number
            return number
