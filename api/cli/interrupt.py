"""Ctrl-C that cannot get lost.

Python raises `KeyboardInterrupt` wherever the main thread happens to be. Inside a callback of compiled code that is the end of it: the
exception is reported as ignored and dropped. So it is noted too, and commands look at the note where they begin something new.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_noted = False


@contextmanager
def heeded() -> Iterator[None]:
    """Note every Ctrl-C inside the block. Where something else handles or ignores it, that stays so."""
    global _noted
    _noted = False
    own = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not own:
        yield
        return
    report = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if lost.exc_type is KeyboardInterrupt else report(lost)
    signal.signal(signal.SIGINT, _note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = report


def check() -> None:
    """Raise KeyboardInterrupt if one was noted and not obeyed."""
    if _noted:
        raise KeyboardInterrupt


def obeyed() -> None:
    """What was noted is done with."""
    global _noted
    _noted = False


def _note(number: int, frame: Any) -> None:
    global _noted
    _noted = True
    raise KeyboardInterrupt
