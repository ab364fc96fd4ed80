"""Automata over symbols that say what they read: free text up to a pattern, and one of several words.

Both are what a SWITCH node reads (see `machine_layout`): a state may have an *outcome*, the fork at which the text goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..errors import LimitError
from ..languages import MAX_CODE_POINT, CharAutomaton, Edge
from ..limits import Limits
from .symbols import Symbols, num_bytes, token_of

_SURROGATES = (0xD800, 0xDFFF)
_ROOT = 0


class SwitchAutomaton(CharAutomaton):
    """A character automaton whose ends have outcomes. It starts in the root of a trie."""

    @property
    def start(self) -> int:
        return _ROOT

    def outcome(self, q: int) -> int | None:
        """The fork that a state leads to; None where reading goes on."""
        raise NotImplementedError

    def tokens(self, q: int) -> Sequence[tuple[int, int]]:
        """`(special token, target)`, beside the edges."""
        raise NotImplementedError

    def held(self, q: int) -> int:
        """How many of the bytes read last may turn out to belong to a boundary."""
        raise NotImplementedError

    def universal(self, q: int) -> bool:
        return False

    def tail_count(self, q: int, cap: int) -> int | None:
        return None


class Words(SwitchAutomaton):
    """One of several words, none of which begins another.

    Args:
        words: with the fork that each leads to; none is empty.
        held: bytes before the words that belong to the same boundary.
    """

    def __init__(self, words: Iterable[tuple[Symbols, int]], held: int = 0):
        self._next: list[dict[int, int]] = [{}]
        self._outcomes: dict[int, int] = {}
        self._held = [held]
        for word, outcome in words:
            q = _ROOT
            for symbol in word:
                target = self._next[q].get(symbol)
                if target is None:
                    target = self._next[q][symbol] = len(self._next)
                    self._next.append({})
                    self._held.append(self._held[q] + num_bytes(symbol))
                q = target
            self._outcomes[q] = outcome

    def accepting(self, q: int) -> bool:
        return False

    def edges(self, q: int) -> tuple[Edge, ...]:
        return tuple(sorted((symbol, symbol, target) for symbol, target in self._next[q].items() if token_of(symbol) is None))

    def tokens(self, q: int) -> Sequence[tuple[int, int]]:
        found = ((token_of(symbol), target) for symbol, target in self._next[q].items())
        return [(token, target) for token, target in found if token is not None]

    def outcome(self, q: int) -> int | None:
        return self._outcomes.get(q)

    def held(self, q: int) -> int:
        return self._held[q]


class Pattern(NamedTuple):
    """What free text is watched for.

    Attributes:
        outcome: the fork it leads to; None if it may not come at all.
        is_exit: whether it leads out of the free text for good.
    """

    symbols: Symbols
    outcome: int | None
    is_exit: bool


class FreeText(SwitchAutomaton):
    """Text up to the first pattern; of several that are complete at the same place, the longest counts.

    (Aho and Corasick, "Efficient string matching", 1975.)

    Args:
        patterns: distinct and not empty. After a special token a text goes on as one of them says: the token is in no other text.
        may_end: the text may end (or something else come) everywhere, not only at an exit.
    """

    def __init__(self, patterns: Sequence[Pattern], *, may_end: bool, limits: Limits):
        self._patterns = [pattern for pattern in patterns if pattern.outcome is not None or not any(map(_is_token, pattern.symbols))]
        self._may_end = may_end
        self._next: list[dict[int, int]] = [{}]
        self._depth = [0]  # in bytes
        self._wanted = [False]  # whether a pattern with an outcome goes on from here
        self._complete: list[int | None] = [None]
        self._num_tokens = [0]  # special tokens on the way
        for index, pattern in enumerate(self._patterns):
            self._add(index, pattern)
        if len(self._next) > limits.max_states:
            raise LimitError(f"the triggers and ends of a structural tag have more than {limits.max_states} characters (max_states)")
        self._fallback = [_ROOT] * len(self._next)
        self._link()
        self.reached = frozenset(self._reach())

    def _add(self, index: int, pattern: Pattern) -> None:
        q = _ROOT
        for symbol in pattern.symbols:
            self._wanted[q] |= pattern.outcome is not None
            target = self._next[q].get(symbol)
            if target is None:
                target = self._next[q][symbol] = len(self._next)
                self._next.append({})
                self._depth.append(self._depth[q] + num_bytes(symbol))
                self._wanted.append(False)
                self._complete.append(None)
                self._num_tokens.append(self._num_tokens[q] + _is_token(symbol))
            q = target
        self._complete[q] = index

    def _link(self) -> None:
        """Sets the longest proper suffix of each state, and which pattern is complete in it."""
        queue = deque(self._next[_ROOT].values())
        while queue:
            q = queue.popleft()
            if self._complete[q] is None and self._may_drop(q):
                self._complete[q] = self._complete[self._fallback[q]]
            for symbol, target in self._next[q].items():
                self._fallback[target] = self._step(self._fallback[q], symbol)
                queue.append(target)

    def _step(self, q: int, symbol: int) -> int:
        while symbol not in self._next[q]:
            if q == _ROOT:
                return _ROOT
            q = self._fallback[q]
        return self._next[q][symbol]

    def _may_drop(self, q: int) -> bool:
        """Whether the text may go on as its longest suffix does: no special token is dropped."""
        return self._num_tokens[q] == self._num_tokens[self._fallback[q]]

    def _borders(self, q: int) -> Iterator[int]:
        """The state and its suffixes that the text may go on from, longest first, the root last."""
        while q != _ROOT:
            yield q
            if not self._may_drop(q):
                return
            q = self._fallback[q]
        yield _ROOT

    def _targets(self, q: int) -> dict[int, int]:
        """Where symbols lead that do not lead to the root."""
        targets: dict[int, int] = {}
        for border in self._borders(q):
            for symbol, target in self._next[border].items():
                targets.setdefault(symbol, target)
        return targets

    def _reach(self) -> Iterator[int]:
        """Indices of the patterns that can be complete first."""
        stack = [_ROOT]
        while stack:
            for target in self._next[stack.pop()].values():
                index = self._complete[target]
                if index is None:
                    stack.append(target)
                else:
                    yield index

    @property
    def can_leave(self) -> bool:
        """Whether the text may end everywhere, or some exit can be reached."""
        return self._may_end or any(self._patterns[index].is_exit for index in self.reached)

    def _live(self, q: int) -> bool:
        """Whether a state may come. From each that may, some character leads back to the root, patterns being few and characters many,
        or a special token was read, and what it begins has an outcome."""
        index = self._complete[q]
        return index is None or self._patterns[index].outcome is not None

    # --- as an automaton -------------------------------------------------------------------------------------------------

    def accepting(self, q: int) -> bool:
        return self._may_end and self._complete[q] is None and not self._num_tokens[q]

    def edges(self, q: int) -> tuple[Edge, ...]:
        if self._complete[q] is not None:
            return ()
        found: list[Edge] = []
        low = 0
        for symbol, target in sorted(self._targets(q).items()):
            if _is_token(symbol):
                break
            if not self._num_tokens[q]:
                found.extend(_characters(low, symbol - 1))
            if self._live(target):
                found.append((symbol, symbol, target))
            low = symbol + 1
        if not self._num_tokens[q]:
            found.extend(_characters(low, MAX_CODE_POINT))
        return tuple(found)

    def tokens(self, q: int) -> Sequence[tuple[int, int]]:
        if self._complete[q] is not None:
            return []
        found = ((token_of(symbol), target) for symbol, target in self._targets(q).items())
        return [(token, target) for token, target in found if token is not None and self._live(target)]

    def outcome(self, q: int) -> int | None:
        index = self._complete[q]
        return None if index is None else self._patterns[index].outcome

    def held(self, q: int) -> int:
        return next((self._depth[border] for border in self._borders(q) if self._wanted[border]), 0)

    def rests(self, q: int) -> Iterator[tuple[Symbols, int]]:
        """What may be missing to an exit after the text read so far, with the fork of the exit; also the whole of each."""
        words = {}
        for pattern in self._patterns:
            if pattern.is_exit and pattern.outcome is not None:
                read = _ROOT
                for at, symbol in enumerate(pattern.symbols):
                    words.setdefault(read, []).append((pattern.symbols[at:], pattern.outcome))
                    read = self._next[read][symbol]
        for border in self._borders(q):
            yield from words.get(border, ())


def _is_token(symbol: int) -> bool:
    return token_of(symbol) is not None


def _characters(low: int, high: int) -> list[Edge]:
    """Edges to the root over a range without surrogates."""
    parts = ((low, min(high, _SURROGATES[0] - 1)), (max(low, _SURROGATES[1] + 1), high))
    return [(a, b, _ROOT) for a, b in parts if a <= b]
