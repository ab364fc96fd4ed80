"""The countdown of work that everything built for one schema shares."""

from __future__ import annotations

from ..cancellation import check
from ..errors import LimitError
from ..limits import Limits


class Steps:
    """Counts `Limits.max_steps` down. A step is about 2 µs."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self._left = limits.max_steps

    def renew(self) -> None:
        self._left = self._limits.max_steps

    def spend(self, steps: int) -> None:
        """Raises LimitError when nothing is left, Cancelled when nobody waits for the rest."""
        check()
        self._left -= steps
        if self._left < 0:
            raise LimitError(f"the schema takes more than {self._limits.max_steps} steps to expand (max_steps)")
