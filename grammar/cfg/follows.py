"""What can come after each terminal of a grammar: FIRST and FOLLOW sets (Aho, Sethi and Ullman, 1986), as bit sets of terminals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..cancellation import check
from .numbered import NumberedGrammar, Production

_STEPS_PER_SYMBOL = 64  # work allowed, in proportion to the size of the grammar


def following_terminals(grammar: NumberedGrammar) -> list[int] | None:
    """For each terminal the bit set of the terminals that some sentence has right after it; None if that takes too much work."""
    return _Follows(grammar).run()


class _Follows:
    def __init__(self, grammar: NumberedGrammar):
        self._grammar = grammar
        self._rules = list(grammar.rules())
        self._first = [0] * grammar.num_symbols
        self._follow = [0] * grammar.num_symbols
        self._after = [0] * len(grammar.terminals)
        self._work = 1_000 + _STEPS_PER_SYMBOL * sum(len(body) + 1 for _, body, _ in self._rules)

    def run(self) -> list[int] | None:
        upwards = self._rules[::-1]  # what a rule uses mostly comes after it
        return self._after if self._until_stable(self._find_first, upwards) and self._until_stable(self._find_follow, self._rules) else None

    def _until_stable(self, visit: Callable[[int, Production, bool], bool], rules: list[tuple[int, Production, bool]]) -> bool:
        changed = True
        while changed:
            changed = False
            for head, body, repeated in rules:
                check()
                self._work -= len(body) + 1
                changed |= visit(head, body, repeated)
            if self._work < 0:
                return False
        return True

    def _first_of(self, symbol: int) -> int:
        return 1 << ~symbol if symbol < 0 else self._first[symbol]

    def _first_of_all(self, symbols: Sequence[int]) -> tuple[int, bool]:
        """Terminals that symbols one after another can begin with, and whether they may be nothing."""
        found = 0
        for symbol in symbols:
            found |= self._first_of(symbol)
            if not self._grammar.nullable(symbol):
                return found, False
        return found, True

    def _find_first(self, head: int, body: Production, repeated: bool) -> bool:
        found = self._first[head] | self._first_of_all(body)[0]
        changed = found != self._first[head]
        self._first[head] = found
        return changed

    def _find_follow(self, head: int, body: Production, repeated: bool) -> bool:
        after = self._follow[head]
        if repeated:
            after |= self._first_of_all(body)[0]
        changed = False
        for symbol in reversed(body):
            follows, index = (self._after, ~symbol) if symbol < 0 else (self._follow, symbol)
            if after | follows[index] != follows[index]:
                follows[index] |= after
                changed = True
            after = self._first_of(symbol) | (after if self._grammar.nullable(symbol) else 0)
        return changed
