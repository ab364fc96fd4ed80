"""Left corners: with which terminals a nonterminal can begin, and how what was read so far grows into it.

For a goal nonterminal, `starts` lists the productions that begin with a terminal (after symbols that derive the empty text), and
`parents(x)` the productions that begin with x. A goal is then read from the bottom up along its left edge and from the top down
everywhere else (Rosenkrantz and Lewis, "Deterministic left corner parsing", 1970), so that left recursion in every form is plain
iteration.
"""

from __future__ import annotations

from typing import NamedTuple

from .numbered import NumberedGrammar, Production


class Start(NamedTuple):
    """A production of `head` that begins with `terminal` and goes on with `rest`."""

    terminal: int
    head: int
    rest: Production


class Parent(NamedTuple):
    """A production of `head` that begins with the symbol in question and goes on with `rest`."""

    head: int
    rest: Production


class Corners:
    """The left edge of one goal."""

    def __init__(self, grammar: NumberedGrammar, goal: int):
        self.goal = goal
        self.starts: list[Start] = []
        self._parents: dict[int, list[Parent]] = {}
        self._explore(grammar)
        # A symbol that only grows into another one, adding nothing, is as good as that one.
        self._alias: dict[int, int] = {}

    @property
    def recursive(self) -> bool:
        """Whether the goal can begin with itself."""
        return bool(self._parents.get(self.goal))

    def parents(self, symbol: int) -> list[Parent]:
        return self._parents.get(symbol, [])

    def same_as(self, symbol: int) -> int:
        """The symbol that stands for `symbol` as the part of the goal that was read."""
        passed: list[int] = []
        while symbol != self.goal and symbol not in self._alias and symbol not in passed:
            parents = self.parents(symbol)
            if len(parents) != 1 or parents[0].rest:
                break
            passed.append(symbol)
            symbol = parents[0].head
        symbol = self._alias.get(symbol, symbol)
        for one in passed:
            self._alias[one] = symbol
        return symbol

    def _explore(self, grammar: NumberedGrammar) -> None:
        parents: dict[int, dict[Parent, None]] = {}
        starts: dict[Start, None] = {}
        seen = {self.goal}
        todo = [self.goal]
        while todo:
            head = todo.pop()
            for production in grammar.productions(head):
                for at, symbol in enumerate(production):
                    rest = production[at + 1 :]
                    if symbol < 0:
                        starts[Start(symbol, head, rest)] = None
                    else:
                        if symbol != head or rest:
                            parents.setdefault(symbol, {})[Parent(head, rest)] = None
                        if symbol not in seen:
                            seen.add(symbol)
                            todo.append(symbol)
                    # A round that reads nothing is a round less: the rest of a repetition is no further beginning.
                    if grammar.is_repetition(head) or not grammar.nullable(symbol):
                        break
        self.starts = list(starts)
        self._parents = {symbol: list(found) for symbol, found in parents.items()}
