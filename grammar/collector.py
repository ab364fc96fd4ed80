"""Rarer garbage collections while a grammar is made.

A compilation makes thousands of small objects within a millisecond, and frees most of them by itself. Collecting every few hundred of
them finds nothing, takes a quarter of the time, and moves what is about to die into the older generations, so that collections of
everything come sooner.
"""

from __future__ import annotations

import gc
import threading

_YOUNG = 50_000  # objects between collections meanwhile: their memory is bounded, however long it takes


class _Relaxed:
    """Within `with RELAXED:`, of any number of threads and however deep, collections are rare. The thresholds are those of the process,
    so other threads profit too; whoever sets them meanwhile, or has switched the collector off, has the last word."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._before = self._raised = (0, 0, 0)

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._before = gc.get_threshold()
                young = self._before[0]
                self._raised = (max(young, _YOUNG) if young else 0, *self._before[1:])
                gc.set_threshold(*self._raised)
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and gc.get_threshold() == self._raised:
                gc.set_threshold(*self._before)


RELAXED = _Relaxed()
