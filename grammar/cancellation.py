"""How work that nobody waits for any more is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Cancelled(Exception):
    """The work was told to stop. Whatever it shares with others is as good as before."""


class Cancellation:
    """A flag that any thread may set."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False

    def cancel(self) -> None:
        self.is_set = True


class _Current(threading.local):
    cancellation: Cancellation | None = None


_current = _Current()


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    """Within it, `check` of the same thread raises once the flag is set."""
    before = _current.cancellation
    _current.cancellation = cancellation
    try:
        yield
    finally:
        _current.cancellation = before


def check() -> None:
    """Asks whether to go on; costs a tenth of a microsecond. Work that takes long calls it every millisecond or sooner.

    Raises:
        Cancelled: no.
    """
    cancellation = _current.cancellation
    if cancellation is not None and cancellation.is_set:
        raise Cancelled
