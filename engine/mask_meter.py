"""What masks cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(kw_only=True)
class MaskMeter:
    """Counts since the start.

    Attributes:
        num_masks: masks made.
        mask_seconds: time spent making them.
    """

    num_masks: int = 0
    mask_seconds: float = 0.0

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Around the filling of one mask."""
        started = time.perf_counter()
        yield
        self.mask_seconds += time.perf_counter() - started
        self.num_masks += 1
