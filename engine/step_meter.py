"""Where the time of the step loop goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(kw_only=True)
class StepMeter:
    """Counts since the start, of the time in which there was work.

    Attributes:
        model_seconds: in the forward pass and the sampling kernel. On a GPU that is starting them and waiting for them.
        host_seconds: everything else on the loop's thread: scheduling, tensors of a batch, grammars, text, handing outputs over.
    """

    model_seconds: float = 0.0
    host_seconds: float = 0.0
    _mark: float | None = None

    def resume(self) -> None:
        """There is work from now on; no effect if there was."""
        if self._mark is None:
            self._mark = time.perf_counter()

    def pause(self) -> None:
        """There is nothing to do for a while."""
        self._count_host()
        self._mark = None

    @contextmanager
    def model(self) -> Iterator[None]:
        """Around a part of the model's work."""
        self._count_host()
        started = time.perf_counter()
        try:
            yield
        finally:
            self._mark = time.perf_counter()
            self.model_seconds += self._mark - started

    def _count_host(self) -> None:
        if self._mark is not None:
            self.host_seconds += time.perf_counter() - self._mark
