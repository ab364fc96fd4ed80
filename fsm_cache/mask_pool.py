"""Hot states of all grammars in arrays that a device can mirror: a mask row each, and where tokens lead.

A state that is *resident* has a slot, a small int that is the same for all requests. What is not resident is a fault: the host looks it up
in the automaton and enters it here. Room is bounded; what was not used for long makes place.

States keep their rows apart from their slots: a row may be gone while the slot is still there, and is then filled in again.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .mask import Mask, write_masks

if TYPE_CHECKING:
    from .token_fsm import TokenFSM

MASK, LOOP, STATE_WIDTH = range(3)  # columns of `MaskPool.states`, and their number
STATE, TOKEN, TARGET, STEP_WIDTH = range(4)  # of `MaskPool.steps`
WAYS = 16  # transitions in one bucket
NONE = -1  # no row, no state

_STATES_PER_ROW = 4
_STEPS_PER_STATE = 4
_EVICTED_SHARE = 8  # one in so many goes when there is no room
_LOW = 0xFFFFFFFF


def bucket_of(state: int, token: int, num_buckets: int) -> int:
    """Where in `MaskPool.steps` a transition is, if it is known: the upper half of a 32-bit product, modulo a power of two."""
    mixed = ((state * 0x9E3779B1) ^ (token * 0x85EBCA77)) & _LOW
    return ((mixed * 0x2C1B3C6D & _LOW) >> 12) & (num_buckets - 1)


class Resident(NamedTuple):
    """Attributes:
    state: of its automaton.
    is_end: nothing but the end may follow, see `Mask.is_end`.
    """

    state: int
    is_end: bool


class Changes(NamedTuple):
    """Indices of what was written since it was last asked, in `rows`, `states` and `steps`."""

    rows: np.ndarray
    states: np.ndarray
    buckets: np.ndarray


class Residents:
    """The slots of one automaton, by state. Does not keep the automaton alive."""

    def __init__(self, fsm: TokenFSM):
        self._fsm = weakref.ref(fsm)
        self.slots: dict[int, int] = {}

    def living(self) -> TokenFSM:
        """The automaton, which whoever uses its states holds."""
        fsm = self._fsm()
        assert fsm is not None, "a state is used without its automaton"
        return fsm


class MaskPool:
    """Resident states over one vocabulary. Not thread-safe, but automata may die in any thread.

    Args:
        row_words: words of one mask row.
        max_bytes: of rows, and of the masks that they were written from.
        min_rows: rows in any case, at least twice as many as one step uses.

    Attributes:
        rows: int32 [R, W]: masks.
        states: int32 [S, 2]: for each slot the row of its mask and the row of the tokens that lead back to it, or NONE.
        steps: int32 [B, 3, WAYS]: known transitions: slot, token and target slot, in the bucket that `bucket_of` says. Unused: slot NONE.
        num_faults: lookups in automata so far.
    """

    def __init__(self, row_words: int, *, max_bytes: int = 64 << 20, min_rows: int = 64):
        num_rows = max(max_bytes // (8 * row_words), min_rows)
        num_states = _STATES_PER_ROW * num_rows
        num_buckets = 1 << max(0, (_STEPS_PER_STATE * num_states // WAYS - 1).bit_length())
        self.rows = np.zeros((num_rows, row_words), np.int32)
        self.states = np.full((num_states, STATE_WIDTH), NONE, np.int32)
        self.steps = np.full((num_buckets, STEP_WIDTH, WAYS), NONE, np.int32)
        self.num_faults = 0
        self._residents: weakref.WeakKeyDictionary[TokenFSM, Residents] = weakref.WeakKeyDictionary()
        self._dead: deque[Residents] = deque()
        self._owners: list[tuple[Residents, Resident] | None] = [None] * num_states
        self._free_states = list(range(num_states - 1, -1, -1))
        self._masks: list[Mask | None] = [None] * num_rows
        self._row_of: dict[int, int] = {}  # by identity of the mask, which is held
        self._free_rows = list(range(num_rows - 1, -1, -1))
        self._clock = 1
        self._states_used = np.zeros(num_states, np.int64)
        self._rows_used = np.zeros(num_rows, np.int64)
        self._is_new = tuple(np.zeros(size, np.bool_) for size in (num_rows, num_states, num_buckets))

    @property
    def num_states(self) -> int:
        """Resident states."""
        return len(self._owners) - len(self._free_states)

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return len(self._masks) - len(self._free_rows)

    def tick(self) -> None:
        """A new step begins: what was used in earlier ones may be evicted."""
        self._clock += 1
        while self._dead:
            self._drop_states(list(self._dead.popleft().slots.values()))

    def residents(self, fsm: TokenFSM) -> Residents:
        """What is resident of an automaton, and will be. It is dropped some time after the automaton."""
        residents = self._residents.get(fsm)
        if residents is None:
            residents = self._residents[fsm] = Residents(fsm)
            weakref.finalize(fsm, self._dead.append, residents).atexit = False
        return residents

    def enter(self, residents: Residents, state: int) -> int:
        """The slot of a state for this step. Its rows are filled in if it was not resident; they may be gone since. Raises LimitError."""
        slot = residents.slots.get(state)
        if slot is None:
            self.num_faults += 1
            fsm = residents.living()
            mask = fsm.mask(state)
            slot = self._allocate_state()
            self._owners[slot] = residents, Resident(state, mask.is_end)
            residents.slots[state] = slot
            self._write(slot, mask, fsm.loop(state))
        self.use(slot)
        return slot

    def resident(self, slot: int) -> Resident:
        """The state in a slot."""
        return self._owner(slot)[1]

    def use(self, slot: int) -> None:
        """The state in a slot is needed in this step."""
        self._states_used[slot] = self._clock

    def use_all(self, slots: Sequence[int]) -> None:
        """So are those in several."""
        self._states_used[slots] = self._clock

    def fill(self, slot: int) -> None:
        """Fills in the rows of a state, which were evicted. Raises LimitError."""
        residents, resident = self._owner(slot)
        fsm = residents.living()
        self.num_faults += 1
        self._write(slot, fsm.mask(resident.state), fsm.loop(resident.state))

    def learn(self, slot: int, token: int, target: int) -> None:
        """Remembers that a token leads from one resident state to another."""
        loop = int(self.states[slot, LOOP])
        if loop != NONE and self.rows[loop, token >> 5] >> (token & 31) & 1:
            return
        index = bucket_of(slot, token, len(self.steps))
        bucket = self.steps[index]
        ways = np.flatnonzero((bucket[STATE] == slot) & (bucket[TOKEN] == token))
        if not len(ways):
            ways = np.flatnonzero(bucket[STATE] == NONE)
        way = int(ways[0]) if len(ways) else self._clock % WAYS
        bucket[:, way] = slot, token, target
        self._is_new[2][index] = True

    def row(self, mask: Mask) -> int:
        """The row that holds a mask, in this step."""
        row = self._row_of.get(id(mask))
        if row is None:
            row = self._allocate_row()
            write_masks([mask], self.rows[row : row + 1])
            self._masks[row] = mask
            self._row_of[id(mask)] = row
            self._is_new[0][row] = True
        self._rows_used[row] = self._clock
        return row

    def changes(self) -> Changes:
        """What has been written since the last call."""
        found = Changes(*(np.flatnonzero(marks) for marks in self._is_new))
        for marks in self._is_new:
            marks[:] = False
        return found

    # --- room ------------------------------------------------------------------------------------------------------

    def _owner(self, slot: int) -> tuple[Residents, Resident]:
        owner = self._owners[slot]
        assert owner is not None, f"no state is resident in {slot}"
        return owner

    def _write(self, slot: int, mask: Mask, loop: Mask | None) -> None:
        self._states_used[slot] = self._clock
        self.states[slot] = self.row(mask), NONE if loop is None else self.row(loop)
        self._is_new[1][slot] = True

    def _allocate_state(self) -> int:
        if not self._free_states:
            self._drop_states(self._oldest(self._states_used))
        return self._free_states.pop()

    def _allocate_row(self) -> int:
        if not self._free_rows:
            self._drop_rows(self._oldest(self._row_uses()))
        return self._free_rows.pop()

    def _row_uses(self) -> np.ndarray:
        """When each row was used last, be it by a state."""
        uses = self._rows_used.copy()
        for column in self.states.T:
            has_row = column != NONE
            np.maximum.at(uses, column[has_row], self._states_used[has_row])
        return uses

    def _oldest(self, used: np.ndarray) -> list[int]:
        """The indices that were used longest ago, none of this step."""
        count = max(1, len(used) // _EVICTED_SHARE)
        oldest = np.argpartition(used, count - 1)[:count]
        oldest = oldest[used[oldest] < self._clock]
        assert len(oldest), "one step uses more than the pool holds"
        return oldest.tolist()

    def _drop_rows(self, rows: list[int]) -> None:
        is_gone = np.zeros(len(self.rows) + 1, np.bool_)  # the last one is NONE
        is_gone[rows] = True
        lost = is_gone[self.states]
        self.states[lost] = NONE
        self._is_new[1][lost.any(1)] = True
        for row in rows:
            self._row_of.pop(id(self._masks[row]), None)
            self._masks[row] = None
            self._free_rows.append(row)

    def _drop_states(self, slots: list[int]) -> None:
        """Frees slots and the rows that no other state has."""
        is_gone = np.zeros(len(self.states) + 1, np.bool_)  # the last one is NONE
        is_gone[slots] = True
        lost = is_gone[self.steps[:, STATE]] | is_gone[self.steps[:, TARGET]]
        self.steps.transpose(0, 2, 1)[lost] = NONE
        self._is_new[2][lost.any(1)] = True
        rows = np.unique(self.states[slots])
        for slot in slots:
            residents, resident = self._owner(slot)
            residents.slots.pop(resident.state, None)
            self._owners[slot] = None
            self._free_states.append(slot)
        self.states[slots] = NONE
        self._is_new[1][slots] = True
        unused = np.setdiff1d(rows[rows != NONE], np.unique(self.states))
        self._drop_rows(unused[self._rows_used[unused] < self._clock].tolist())
