"""Keys of an object: declared names, and classes of undeclared names, as one automaton over decoded characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from ..languages import MAX_CODE_POINT, CharAutomaton, Edge
from ..lowering import KeyAutomaton, KeyInfo
from ..machine_layout import CLASS_BASE

_TAIL_CAP = 1_000  # undeclared keys counted exactly where only finitely many are left


class _Names(NamedTuple):
    """Sorted names [lo, hi) that share their first `depth` characters."""

    lo: int
    hi: int
    depth: int


class _State(NamedTuple):
    names: _Names | None
    classes: tuple[int | None, ...]  # state of each class automaton, None where it is dead


class Keys(KeyAutomaton):
    """Product of the declared names and the automata of the classes.

    Args:
        names: declared names, sorted by code point; outcome i is `names[i]`.
        classes: automata of disjoint classes of the other names (without declared ones, unless every string belongs to the
            class), None for one that no member may have; outcome CLASS_BASE + j is class j.
    """

    def __init__(self, names: Sequence[str], classes: Sequence[CharAutomaton | None]):
        self._sorted = names
        self._classes = classes
        self._states: list[_State] = []
        self._ids: dict[_State, int] = {}
        self._edges: dict[int, tuple[Edge, ...]] = {}
        whole = _Names(0, len(names), 0) if names else None
        self._start = self._intern(_State(whole, tuple(None if c is None else c.start for c in classes)))

    @property
    def start(self) -> int:
        return self._start

    @property
    def is_worn(self) -> bool:
        """Whether half of the budget of a class is used up."""
        return any(getattr(automaton, "is_worn", False) for automaton in self._classes)

    def _intern(self, state: _State) -> int:
        q = self._ids.get(state)
        if q is None:
            q = self._ids[state] = len(self._states)
            self._states.append(state)
        return q

    def outcome(self, q: int) -> int | None:
        names, classes = self._states[q]
        if names is not None and len(self._sorted[names.lo]) == names.depth:
            return names.lo
        for j, state in enumerate(classes):
            automaton = self._classes[j]
            if automaton is not None and state is not None and automaton.accepting(state):
                return CLASS_BASE + j
        return None

    def accepting(self, q: int) -> bool:
        return self.outcome(q) is not None

    def universal(self, q: int) -> bool:
        return False

    def tail_count(self, q: int, cap: int) -> int | None:
        return None

    def info(self, q: int) -> KeyInfo:
        names, classes = self._states[q]
        bits, tails, every, unbounded = 0, 0, False, False
        for j, state in enumerate(classes):
            automaton = self._classes[j]
            if automaton is None or state is None:
                continue
            bits |= 1 << j
            if automaton.universal(state):
                every = True
                continue
            count = automaton.tail_count(state, _TAIL_CAP)
            unbounded |= count is None
            tails += count or 0
        lo, hi = (names.lo, names.hi) if names is not None else (0, 0)
        return KeyInfo(lo, hi, bits, -1 if every else 0 if unbounded else tails)

    def within(self, lo: int, hi: int, depth: int) -> int:
        """The state in which exactly the names [lo, hi) are still open, after `depth` characters that they share; every class is
        where it began."""
        return self._intern(_State(_Names(lo, hi, depth), self._states[self._start].classes))

    def edges(self, q: int) -> tuple[Edge, ...]:
        edges = self._edges.get(q)
        if edges is None:
            edges = self._edges[q] = tuple(self._make_edges(self._states[q]))
        return edges

    def _make_edges(self, state: _State) -> Iterator[Edge]:
        chars = list(self._name_edges(state.names))
        if not self._classes:
            for code, names in chars:
                yield code, code, self._intern(_State(names, ()))
            return
        layers = [() if a is None or q is None else a.edges(q) for a, q in zip(self._classes, state.classes, strict=True)]
        cuts = {0, MAX_CODE_POINT + 1}
        for code, _ in chars:
            cuts |= {code, code + 1}
        for layer in layers:
            for lo, hi, _ in layer:
                cuts |= {lo, hi + 1}
        bounds = sorted(cuts)
        by_code = dict(chars)
        at = [0] * len(layers)
        for lo, end in pairwise(bounds):
            targets: list[int | None] = []
            for j, layer in enumerate(layers):
                while at[j] < len(layer) and layer[at[j]][1] < lo:
                    at[j] += 1
                targets.append(layer[at[j]][2] if at[j] < len(layer) and layer[at[j]][0] <= lo else None)
            names = by_code.get(lo) if end == lo + 1 else None
            if names is not None or any(t is not None for t in targets):
                yield lo, end - 1, self._intern(_State(names, tuple(targets)))

    def _name_edges(self, names: _Names | None) -> Iterator[tuple[int, _Names]]:
        if names is None:
            return
        lo, hi, depth = names
        if len(self._sorted[lo]) == depth:
            lo += 1
        if hi - lo == 1:
            yield ord(self._sorted[lo][depth]), _Names(lo, hi, depth + 1)
            return
        for char, group in groupby(range(lo, hi), key=lambda i: self._sorted[i][depth]):
            members = list(group)
            yield ord(char), _Names(members[0], members[-1] + 1, depth + 1)
