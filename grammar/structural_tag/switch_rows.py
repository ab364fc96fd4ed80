"""Switch automata as byte rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..lead_rows import LeadRows, LeadShape
from ..limits import Limits
from ..lowering import PUBLISH, Lowering
from ..machine_layout import DEAD, F_EXPANDED, FLAGS
from ..row_store import STORE
from .free_text import SwitchAutomaton
from .symbols import TOKEN_LEAD, token_spelling

_DEAD_LINE = np.full(256, DEAD, np.int32)


class _Spelling(NamedTuple):
    """Inside the bytes of a special token: what is still to come of each, and where it leads."""

    rests: tuple[tuple[bytes, int], ...]


class SwitchRows(Lowering):
    """Byte rows of one switch automaton, for the one machine whose forks its outcomes are.

    Attributes:
        state_of: the state of each row between two symbols.
        missing: bytes between each row and the end of the character it is inside of.
    """

    def __init__(self, automaton: SwitchAutomaton, limits: Limits):
        super().__init__(automaton, json=False, limits=limits)
        self._switch = automaton
        self.state_of: dict[int, int] = {}
        self.missing: dict[int, int] = {}

    def boundary(self, q: int) -> int:
        row = super().boundary(q)
        self.state_of[row] = q
        return row

    def _row(self, key: Any) -> int:
        row = super()._row(key)
        self.missing[row] = self.missing_bytes(key)
        return row

    def _new_leads(self, shape: LeadShape, targets: tuple[int, ...]) -> LeadRows:
        leads = super()._new_leads(shape, targets)
        self.missing.update((row, middle.left) for row, middle in leads.middles())
        return leads

    def held(self, q: int) -> int:
        """How many of the bytes read last may belong to a boundary, in a state."""
        return self._switch.held(q)

    def _fill(self, row: int, key: Any) -> None:
        if not isinstance(key, _Spelling):
            super()._fill(row, key)
            return
        line = _DEAD_LINE.copy()
        self._spell(key.rests, line)
        stored = STORE.rows[row]
        stored[:256] = line
        with PUBLISH:
            stored[FLAGS] = F_EXPANDED

    @staticmethod
    def _early_flags(key: Any) -> int:
        return 0 if isinstance(key, _Spelling) else Lowering._early_flags(key)

    def _target(self, q: int) -> int:
        outcome = self._switch.outcome(q)
        return self.boundary(q) if outcome is None else self._key_end(outcome)

    def _fill_boundary(self, q: int, targets: np.ndarray) -> int:
        flags = super()._fill_boundary(q, targets)
        tokens = self._switch.tokens(q)
        if tokens:
            rests = tuple((token_spelling(token)[1:], target) for token, target in tokens)
            targets[TOKEN_LEAD] = self._row(_Spelling(rests))
        return flags

    def _spell(self, rests: tuple[tuple[bytes, int], ...], targets: np.ndarray) -> None:
        by_byte: dict[int, list[tuple[bytes, int]]] = {}
        for rest, target in rests:
            by_byte.setdefault(rest[0], []).append((rest[1:], target))
        for byte, left in by_byte.items():
            if left[0][0]:
                targets[byte] = self._row(_Spelling(tuple(left)))
            else:
                targets[byte] = self._target(left[0][1])
