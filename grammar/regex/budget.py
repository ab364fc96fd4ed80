"""How much work and how many states an automaton may take."""

from __future__ import annotations

from ..cancellation import check
from ..errors import LimitError
from ..limits import Limits

# Prices in units of `Limits.max_steps`, in proportion to the time (about 2 us a unit on common hardware).
ROW_PRICE = 4
NODE_PRICE = 4
PART_PRICE = 1
# What a new state earns: as much as most need. All of them together earn five times `max_steps`, which is about 500 MB at worst.
STATE_SHARE = 50


class Budget:
    """Work units and states left for one pattern or one automaton.

    A token bucket: it holds `max_steps` units at most, and a new state adds `STATE_SHARE`. So a text may lead through any number of cheap
    states up to `max_states`, while what lies between two of them is bounded, and with it all work and memory there ever is.

    `spend` and `add_state` raise `LimitError` when nothing is left; the object stays usable, so that what was already
    built can still be read.
    """

    __slots__ = ("limits", "states_left", "steps_left")

    def __init__(self, limits: Limits):
        self.limits = limits
        self.steps_left = limits.max_steps
        self.states_left = limits.max_states

    @property
    def is_half_spent(self) -> bool:
        return 2 * self.steps_left < self.limits.max_steps or 2 * self.states_left < self.limits.max_states

    def spend(self, steps: int) -> None:
        check()
        self.steps_left -= steps
        if self.steps_left < 0:
            self.steps_left = 0
            raise LimitError(f"a part of the pattern needs more than {self.limits.max_steps} steps of work (max_steps)")

    def add_state(self) -> None:
        if self.states_left <= 0:
            raise LimitError(f"the pattern needs more than {self.limits.max_states} states (max_states)")
        self.states_left -= 1
        self.steps_left = min(self.limits.max_steps, self.steps_left + STATE_SHARE)
