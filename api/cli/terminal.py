"""The two channels of a command: the answer on stdout, everything else on stderr."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


def write_answer(text: str) -> None:
    """Put a piece of an answer on stdout at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def use_utf8() -> None:
    """Models write any character, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


class AnswerPrinter:
    """Puts the content of one answer on stdout and the thought before it on stderr, dimmed on a terminal and set off by an empty line.

    Used as a context manager, so that a terminal is not left dimmed, whatever ends the answer.
    """

    def __init__(self, *, shows_thoughts: bool):
        self._shows_thoughts = shows_thoughts
        self._dims = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._in_thought = False

    def think(self, text: str) -> None:
        if self._shows_thoughts:
            self._begin_thought()
            print(text, end="", file=sys.stderr, flush=True)

    def write(self, text: str) -> None:
        self._end_thought()
        write_answer(text)

    def _begin_thought(self) -> None:
        if not self._in_thought and self._dims:
            print(_DIM, end="", file=sys.stderr)
        self._in_thought = True

    def _end_thought(self) -> None:
        if self._in_thought:
            print(f"{_PLAIN if self._dims else ''}\n", file=sys.stderr, flush=True)
        self._in_thought = False

    def __enter__(self) -> AnswerPrinter:
        return self

    def __exit__(self, *error: object) -> None:
        self._end_thought()


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
