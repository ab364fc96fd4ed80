"""Guards: sets of texts that may follow, which a lexeme leaves behind when it ends.

A name that `re.match` reads to its last letter cannot be followed by another letter: the guard after it is "no text that begins with
a letter". It is carried along until it allows everything, mostly one character later.
"""

from __future__ import annotations

from ..errors import LimitError
from ..limits import Limits
from ..regex import CharSet, nodes
from ..regex.budget import Budget
from ..regex.charset import NO_CHARS
from ..regex.derivative import locate, row
from ..regex.emptiness import is_live
from ..regex.nodes import ANYTHING, Node

FREE = 0  # the guard that allows every text
ONLY_FREE = frozenset((FREE,))


class Guards:
    """Guards by number.

    Args:
        breaks: text may end inside of a sentence, where a special token stands.
    """

    def __init__(self, limits: Limits, *, breaks: bool = False):
        self._breaks = breaks
        self._budget = Budget(limits)
        self._limits = limits
        self._nodes: list[Node] = [ANYTHING]
        self._numbers: dict[int, int] = {ANYTHING.uid: FREE}
        self._rows: dict[int, list[tuple[CharSet, int]]] = {}
        self._passing: dict[int, CharSet] = {}

    def number(self, node: Node) -> int | None:
        """The guard of a set of texts, None if the set is empty."""
        node = locate(node)
        found = self._numbers.get(node.uid)
        if found is None:
            if not is_live(node, self._budget):
                return None
            if len(self._nodes) >= self._limits.max_states:
                raise LimitError(f"the terminals of the grammar need more than {self._limits.max_states} guards (max_states)")
            found = self._numbers[node.uid] = len(self._nodes)
            self._nodes.append(node)
        return found

    def both(self, guard: int, node: Node) -> int | None:
        """The guard together with a further condition; None if they exclude each other."""
        return self.number(node if guard == FREE else nodes.conj((self._nodes[guard], node)))

    def row(self, guard: int) -> list[tuple[CharSet, int]]:
        """Disjoint `(characters, guard after one of them)`; other characters may not come."""
        found = self._rows.get(guard)
        if found is None:
            pairs = [(cell, self.number(target)) for cell, target in row(self._nodes[guard], self._budget)]
            found = self._rows[guard] = [(cell, target) for cell, target in pairs if target is not None]
        return found

    def step(self, guard: int, code_point: int) -> int | None:
        """The guard after one character, None if it may not come."""
        if guard == FREE:
            return FREE
        return next((target for cell, target in self.row(guard) if code_point in cell), None)

    def allows_end(self, guard: int) -> bool:
        """Whether the text may end here."""
        return self._nodes[guard].nullable

    def lets_pass(self, guard: int, first: CharSet) -> bool:
        """Whether the guard allows everything that begins with one of these characters, and the end of the text where that matters."""
        if guard == FREE:
            return True
        if self._breaks and not self.allows_end(guard):
            return False
        passing = self._passing.get(guard)
        if passing is None:
            passing = NO_CHARS
            for cell, target in self.row(guard):
                if target == FREE:
                    passing = passing | cell
            self._passing[guard] = passing
        return not first - passing
