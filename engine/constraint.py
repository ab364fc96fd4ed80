"""One answer's place in its grammar, and what may come next there."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from ..fsm_cache.mask import Mask
from ..fsm_cache.mask_pool import MaskPool
from .mask_meter import MaskMeter
from .request import GenerationError


class Cursor(Protocol):
    """A place in a token automaton (`fsm_cache.cursor`)."""

    @property
    def finished(self) -> bool: ...
    @property
    def place(self) -> Hashable: ...
    def mask(self) -> Mask: ...
    def advance(self, token_id: int) -> bool: ...
    def rollback(self, n: int) -> None: ...
    def fork(self) -> Cursor: ...
    def forced_tokens(self, max_bytes: int) -> list[int]: ...


class TokenAutomaton(Protocol):
    """A compiled grammar (`fsm_cache.token_fsm`)."""

    def cursor(self) -> Any:
        """A `Cursor`."""
        ...


class Allowed(NamedTuple):
    """What may come in one row: the tokens of a mask, or those of a state that is resident (`MaskPool`). Neither: any token."""

    mask: Mask | None = None
    state: int | None = None


class Constraint:
    """Looks each mask up in the automaton.

    Attributes:
        cursor: behind the last token that was taken.

    Raises:
        GrammarError: the grammar's budget is used up; so do the methods that make masks.
    """

    def __init__(self, automaton: TokenAutomaton, meter: MaskMeter):
        self.cursor = automaton.cursor()
        self._meter = meter
        self._ahead: deque[tuple[int, Mask]] = deque()  # drafts, and the masks behind them
        self._mask: Mask | None = self.mask()  # of the next token, where it is known

    def fork(self) -> Constraint:
        """Another answer at the same place, without drafts."""
        twin = copy.copy(self)
        twin.cursor = self.cursor.fork()
        twin._ahead = deque()
        return twin

    def go_ahead(self, drafts: Sequence[int]) -> None:
        """Makes the masks behind some tokens that the grammar allows one after the other."""
        num_taken = 0
        try:
            for token_id in drafts:
                num_taken += self.cursor.advance(token_id)
                self._ahead.append((token_id, self.mask()))
        finally:
            self.cursor.rollback(num_taken)

    def forget_ahead(self) -> None:
        """There are no drafts any more."""
        self._ahead.clear()

    def allowed(self, index: int) -> Allowed:
        """What may come next (0), or behind so many drafts."""
        return Allowed(mask=self._ahead[index - 1][1] if index else self._mask)

    def mask(self) -> Mask:
        """What the cursor allows."""
        with self._meter.measure():
            return self.cursor.mask()

    def take(self, token_id: int, target: int | None) -> bool | None:
        """Moves behind a token.

        Args:
            target: the resident state that it leads to, where that is known.

        Returns:
            Whether nothing but the end is left, or None where only `settle` can tell.

        Raises:
            GenerationError: the grammar refuses the token.
        """
        if not self.cursor.advance(token_id):
            raise GenerationError(f"the grammar refused token {token_id}, which its mask allowed")
        if self.cursor.finished:
            return True
        self._mask = self._pass_draft(token_id)
        return None if self._mask is None else self._mask.is_end

    def settle(self) -> bool:
        """Makes what was not known ahead; whether nothing but the end is left."""
        self._mask = self.mask()
        return self._mask.is_end

    def _pass_draft(self, token_id: int) -> Mask | None:
        """The mask behind a token, if that was the next draft."""
        if self._ahead and self._ahead[0][0] == token_id:
            return self._ahead.popleft()[1]
        self._ahead.clear()
        return None


class ResidentConstraint(Constraint):
    """Follows resident states, and looks up only what is not resident. For automata of `fsm_cache`."""

    def __init__(self, automaton: Any, meter: MaskMeter, pool: MaskPool):
        self._pool = pool
        self._residents = pool.residents(automaton)
        self._taken: tuple[int, int] | None = None  # a transition to be remembered: the state before, and the token
        super().__init__(automaton, meter)

    def allowed(self, index: int) -> Allowed:
        return super().allowed(index) if index else Allowed(state=self._enter(self.cursor.state))

    def take(self, token_id: int, target: int | None) -> bool | None:
        if target is None:
            self._taken = self.cursor.state, token_id
            return super().take(token_id, None)
        resident = self._pool.resident(target)
        self._pass_draft(token_id)
        self._taken = None
        self.cursor.follow(token_id, resident.state)
        return resident.is_end

    def settle(self) -> bool:
        slot = self._enter(self.cursor.state)
        if self._taken is not None:
            state, token_id = self._taken
            self._pool.learn(self._enter(state), token_id, slot)
            self._taken = None
        return self._pool.resident(slot).is_end

    def _enter(self, state: int) -> int:
        with self._meter.measure():
            return self._pool.enter(self._residents, state)
