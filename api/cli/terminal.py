"""The two channels of a command: the answer on stdout, everything else on stderr."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def write_answer(text: str) -> None:
    """Put a piece of an answer on stdout at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def use_utf8() -> None:
    """Models write any character, whatever the locale says."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")


def note(message: str) -> None:
    """A line for the person on stderr."""
    print(f"formcast: {message}", file=sys.stderr)


@contextmanager
def status(message: str, *, quiet: bool = False) -> Iterator[None]:
    """Show that something takes a while: a spinner on a terminal, nothing where stderr is not one."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(message):
        yield
