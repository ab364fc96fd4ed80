"""What masks cost, and how often they leave no choice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np


@dataclass(kw_only=True)
class MaskMeter:
    """Counts since the start.

    Attributes:
        num_masks: masks made.
        num_forced_tokens: masks that allowed exactly one token.
        mask_seconds: time spent making them.
    """

    num_masks: int = 0
    num_forced_tokens: int = 0
    mask_seconds: float = 0.0

    @contextmanager
    def measure(self, mask: np.ndarray) -> Iterator[None]:
        """Around the filling of `mask`, int32 [ceil(V / 32)]."""
        started = time.perf_counter()
        yield
        self.mask_seconds += time.perf_counter() - started
        self.num_masks += 1
        self.num_forced_tokens += _is_single(mask)


def _is_single(mask: np.ndarray) -> bool:
    words = mask[mask.nonzero()].view(np.uint32)
    return len(words) == 1 and int(words[0]).bit_count() == 1
