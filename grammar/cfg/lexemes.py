"""What a terminal reads under a guard, and which guard it leaves behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property

from ..errors import GrammarError, LimitError
from ..languages import CharAutomaton, Edge
from ..limits import Limits
from ..regex import CharSet, Language
from ..regex.charset import NO_CHARS
from ..regex.nodes import ANYTHING, Node
from .extents import extent_of
from .guards import FREE, ONLY_FREE, Guards
from .ir import Lexeme, Terminal
from .ordered import OrderedMatcher, check_never_empty, parse_ordered


class Reader(ABC):
    """Reads one terminal.

    Attributes:
        word: the text of the terminal, if it is just one.
    """

    word: str | None = None

    def settle(self, following: Iterable[CharSet]) -> None:  # noqa: B027 (most readers need not know)
        """Tells which characters can come right after the terminal: where none of them makes a match longer, no guard is needed."""

    @abstractmethod
    def outcomes(self, guard: int) -> frozenset[int]:
        """Guards after the terminal, if `guard` holds before it; none if it cannot be read."""

    @abstractmethod
    def first(self) -> CharSet:
        """Characters that the terminal may begin with."""

    @abstractmethod
    def texts(self, guard: int, ends: frozenset[int]) -> Language | CharAutomaton:
        """What may be read after `guard` such that one of `ends` is left behind."""


def reader_of(terminal: Terminal | Lexeme, guards: Guards, limits: Limits) -> Reader:
    """The reader of one terminal.

    Raises:
        GrammarError: at the terminal, if its pattern is malformed or not supported.
    """
    if isinstance(terminal, Terminal):
        return _FreeReader(terminal)
    if terminal.literal is not None:
        return _LiteralReader(terminal.literal, guards)
    return _PatternReader(terminal, guards, limits)


class _FreeReader(Reader):
    """A terminal that may end wherever it likes. It never stands beside lexemes, so that no guard ever holds before it."""

    def __init__(self, terminal: Terminal):
        self.word = terminal.literal
        self._language = terminal.language

    def outcomes(self, guard: int) -> frozenset[int]:
        return ONLY_FREE

    def first(self) -> CharSet:
        return NO_CHARS

    def texts(self, guard: int, ends: frozenset[int]) -> Language:
        return self._language


class _LiteralReader(Reader):
    def __init__(self, word: str, guards: Guards):
        self.word = word
        self._word = word
        self._guards = guards

    def outcomes(self, guard: int) -> frozenset[int]:
        after: int | None = guard
        if guard == FREE:
            return ONLY_FREE
        for char in self._word:
            if after is None:
                return frozenset()
            after = self._guards.step(after, ord(char))
        return frozenset() if after is None else frozenset((after,))

    def first(self) -> CharSet:
        return CharSet.single(ord(self._word[0]))

    def texts(self, guard: int, ends: frozenset[int]) -> Language:
        return Language.literal(self._word)


class _PatternReader(Reader):
    """The automaton of a pattern beside a guard: a state is a state of each. What follows a match must satisfy both."""

    def __init__(self, lexeme: Lexeme, guards: Guards, limits: Limits):
        self._lexeme = lexeme
        self._guards = guards
        self._limits = limits
        self._is_settled = False  # the terminal may be read like any regular language
        try:
            self._item = parse_ordered(lexeme.pattern, limits)
            check_never_empty(self._item)
            self._extent = extent_of(self._item)
            self._own_matcher = OrderedMatcher(self._item, limits) if self._extent is None else None
        except GrammarError as error:
            raise self._at_lexeme(error) from error
        self._numbers: dict[tuple[int, int], int] = {}
        self._pairs: list[tuple[int, int]] = []
        self._edges: list[list[tuple[CharSet, int]]] = []
        self._ends: list[int | None] = []
        self._outcomes: dict[int, frozenset[int]] = {}

    @property
    def _matcher(self) -> OrderedMatcher:
        if self._own_matcher is None:
            self._own_matcher = OrderedMatcher(self._item, self._limits)
        return self._own_matcher

    @cached_property
    def _language(self) -> Language:
        return Language.pattern(self._lexeme.pattern, "python", "full", self._limits)

    def first(self) -> CharSet:
        if self._extent is not None:
            return self._extent.first
        result = NO_CHARS
        for cell, _ in self._matcher.row(self._matcher.start):
            result = result | cell
        return result

    def settle(self, following: Iterable[CharSet]) -> None:
        extent = self._extent
        self._is_settled = extent is not None and not any(extent.extending & chars for chars in following)

    def outcomes(self, guard: int) -> frozenset[int]:
        if guard == FREE and self._is_settled:
            return ONLY_FREE
        found = self._outcomes.get(guard)
        if found is None:
            reached = self._reached(guard)
            ends = {self._ends[state] for state in reached}
            found = self._outcomes[guard] = frozenset(end for end in ends if end is not None)
        return found

    def texts(self, guard: int, ends: frozenset[int]) -> Language | CharAutomaton:
        if guard == FREE and self._is_settled:
            return self._language
        reached = self._reached(guard)
        sources: dict[int, list[int]] = {}
        for state in reached:
            for _, target in self._edges[state]:
                sources.setdefault(target, []).append(state)
        live = {state for state in reached if self._ends[state] in ends}
        todo = list(live)
        while todo:
            for source in sources.get(todo.pop(), ()):
                if source not in live:
                    live.add(source)
                    todo.append(source)
        edges = {state: [(cell, target) for cell, target in self._edges[state] if target in live] for state in live}
        return _LexemeAutomaton(reached[0], edges, frozenset(state for state in live if self._ends[state] in ends))

    def _reached(self, guard: int) -> list[int]:
        """States from the start under a guard, the start first, all with edges."""
        try:
            start = self._state(self._matcher.start, guard)
            order = [start]
            seen = {start}
            for state in order:
                for _, target in self._edges_of(state):
                    if target not in seen:
                        seen.add(target)
                        order.append(target)
        except GrammarError as error:
            raise self._at_lexeme(error) from error
        return order

    def _state(self, matcher_state: int, guard: int) -> int:
        key = (matcher_state, guard)
        found = self._numbers.get(key)
        if found is None:
            if len(self._pairs) >= self._limits.max_states:
                raise LimitError(f"the terminal {self._lexeme.name} needs more than {self._limits.max_states} states (max_states)")
            found = self._numbers[key] = len(self._pairs)
            self._pairs.append(key)
            self._edges.append([])
            condition = self._condition(matcher_state)
            self._ends.append(None if condition is None else self._guards.both(guard, condition))
        return found

    def _condition(self, matcher_state: int) -> Node | None:
        """Texts that may follow if the match ends here; None if it cannot."""
        if not self._is_settled:
            return self._matcher.condition(matcher_state)
        return ANYTHING if self._matcher.matches(matcher_state) else None

    def _edges_of(self, state: int) -> list[tuple[CharSet, int]]:
        if not self._edges[state]:
            matcher_state, guard = self._pairs[state]
            edges: dict[int, CharSet] = {}
            for cell, target in self._matcher.row(matcher_state):
                for part, after in [(cell, FREE)] if guard == FREE else self._split(cell, guard):
                    number = self._state(target, after)
                    edges[number] = edges[number] | part if number in edges else part
            self._edges[state] = [(cell, target) for target, cell in edges.items()]
        return self._edges[state]

    def _split(self, cell: CharSet, guard: int) -> list[tuple[CharSet, int]]:
        parts = [(cell & allowed, after) for allowed, after in self._guards.row(guard)]
        return [(part, after) for part, after in parts if part]

    def _at_lexeme(self, error: GrammarError) -> GrammarError:
        return type(error)(f"{error.reason} (terminal {self._lexeme.name})", position=self._lexeme.position)


class _LexemeAutomaton(CharAutomaton):
    """A finite automaton that is already trimmed."""

    def __init__(self, start: int, edges: dict[int, list[tuple[CharSet, int]]], ends: frozenset[int]):
        self._start = start
        self._edges = edges
        self._ends = ends
        self._flat: dict[int, tuple[Edge, ...]] = {}

    @property
    def start(self) -> int:
        return self._start

    def accepting(self, q: int) -> bool:
        return q in self._ends

    def edges(self, q: int) -> tuple[Edge, ...]:
        found = self._flat.get(q)
        if found is None:
            flat = [(low, high, target) for cell, target in self._edges.get(q, ()) for low, high in cell.ranges]
            found = self._flat[q] = tuple(sorted(flat))
        return found

    def universal(self, q: int) -> bool:
        return False

    def tail_count(self, q: int, cap: int) -> int | None:
        return None
