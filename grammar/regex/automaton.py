"""The lazy deterministic automaton of a node."""

from __future__ import annotations

import threading
from bisect import bisect_right

from ..languages import MAX_CODE_POINT, Edge, Run
from ..limits import Limits
from .budget import Budget
from .charset import CharSet
from .counting import count_strings, tail_length_bits
from .derivative import locate, row
from .emptiness import is_live
from .nodes import ANYTHING, EMPTY, KIND_ALT, KIND_AND, KIND_CAT, KIND_CHARS, KIND_NOT, KIND_REP, KIND_STATE, Node
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
        if self._nodes[q].kind == KIND_STATE:
            recognizer, state = self._nodes[q].state
            return recognizer.run(state)
        node, longest = _within(self._nodes[q])
        runs: list[tuple[int, CharSet]] = []
        for way in node.items if node.kind == KIND_ALT else (node,):
            head, rest = (way.items[0], way.items[1].min_len) if way.kind == KIND_CAT else (way, 0)
            most = min(MAX_CODE_POINT if head.hi is None else head.hi, longest - rest)
            if way.positive and head.kind == KIND_REP and head.lo <= most:
                runs.extend([(most, body.chars) for body in _single(head.items[0])])
        if not runs:
            return None
        count, chars = max(runs, key=lambda found: found[0] * found[1].size)
        return Run(chars.ranges, count if count < MAX_CODE_POINT else None)

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


def _within(node: Node) -> tuple[Node, int]:
    """A node that has what `node` has of texts up to some length, and that length: shorter than what a complement takes away."""
    if node.kind == KIND_AND:
        wholes = [item for item in node.items if item.kind != KIND_NOT]
        removed = [item.items[0] for item in node.items if item.kind == KIND_NOT]
        if len(wholes) == 1 and not any(item.located for item in removed):
            return wholes[0], min(item.min_len for item in removed) - 1
    return node, MAX_CODE_POINT


def _single(body: Node) -> list[Node]:
    """The parts of the body of a repetition that are one character."""
    return [part for part in (body.items if body.kind == KIND_ALT else (body,)) if part.kind == KIND_CHARS]
