"""Which guards each symbol can leave behind: the grammar's derivations multiplied with its guards.

(Bar-Hillel, Perles and Shamir, 1961, tabulated on demand as in Reps, Horwitz and Sagiv, 1995.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import LimitError
from ..limits import Limits
from .guards import FREE, ONLY_FREE
from .lexemes import Reader
from .numbered import NumberedGrammar, Production

_STEP_PRICE = 4  # in units of `Limits.max_steps`, in proportion to the time


@dataclass(eq=False)
class _Call:
    """A nonterminal that begins under a guard."""

    ends: set[int] = field(default_factory=set)
    callers: list[tuple[_Call, Production, int]] = field(default_factory=list)
    seen: set[tuple[Production, int, int]] = field(default_factory=set)


class Outcomes:
    """Guards after symbols and sequences, by the guard before them.

    Attributes:
        unguarded: no terminal leaves a guard behind, so that each outcome is FREE.
    """

    def __init__(self, grammar: NumberedGrammar, readers: Sequence[Reader], limits: Limits):
        self._grammar = grammar
        self._readers = readers
        self._limits = limits
        self._steps_left = limits.max_steps
        self._calls: dict[tuple[int, int], _Call] = {}
        self._agenda: list[tuple[_Call, Production, int, int]] = []
        self._sequences: dict[tuple[Production, int], frozenset[int]] = {}
        self.unguarded = all(reader.outcomes(FREE) == ONLY_FREE for reader in readers)

    def of_symbol(self, symbol: int, guard: int) -> frozenset[int]:
        """Guards that a symbol can leave behind; empty if it derives nothing there."""
        if self.unguarded:
            return ONLY_FREE
        if symbol < 0:
            ends = self._readers[~symbol].outcomes(guard)
            return ends | {guard} if self._grammar.nullable(symbol) else ends
        call = self._call(symbol, guard)
        self._finish()
        return frozenset(call.ends)

    def of_sequence(self, symbols: Production, guard: int) -> frozenset[int]:
        """Guards that symbols one after another can leave behind."""
        if self.unguarded:
            return ONLY_FREE
        key = (symbols, guard)
        found = self._sequences.get(key)
        if found is None:
            ends = frozenset((guard,))
            for symbol in symbols:
                ends = frozenset(after for before in ends for after in self.of_symbol(symbol, before))
            found = self._sequences[key] = ends
        return found

    def _call(self, symbol: int, guard: int) -> _Call:
        call = self._calls.get((symbol, guard))
        if call is None:
            call = self._calls[symbol, guard] = _Call()
            for production in self._grammar.productions(symbol):
                self._go(call, production, 0, guard)
        return call

    def _go(self, call: _Call, production: Production, at: int, guard: int) -> None:
        """Notes that `production` can be read up to `at`, with this guard after it."""
        key = (production, at, guard)
        if key not in call.seen:
            call.seen.add(key)
            self._agenda.append((call, production, at, guard))

    def _finish(self) -> None:
        while self._agenda:
            self._steps_left -= _STEP_PRICE
            if self._steps_left < 0:
                raise LimitError(f"the grammar needs more than {self._limits.max_steps} steps of work (max_steps)")
            call, production, at, guard = self._agenda.pop()
            if at == len(production):
                if guard not in call.ends:
                    call.ends.add(guard)
                    for caller, where, after in call.callers:
                        self._go(caller, where, after, guard)
                continue
            symbol = production[at]
            if symbol < 0:
                for end in self.of_symbol(symbol, guard):
                    self._go(call, production, at + 1, end)
                continue
            called = self._call(symbol, guard)
            called.callers.append((call, production, at + 1))
            for end in tuple(called.ends):
                self._go(call, production, at + 1, end)
