"""Keeping transformers' habits away from our users: its progress bars and its many-line errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """transformers without progress bars: the standard streams belong to the caller."""
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


def one_line(error: BaseException) -> str:
    """The message of an error without line breaks, or its type if it has none."""
    return " ".join(str(error).split()) or type(error).__name__
