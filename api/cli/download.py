"""How far a download is, on stderr: a bar on a terminal, a line in a log."""

from __future__ import annotations

import sys

from ...engine.models.progress import Progress, RichProgress, SilentProgress
from . import terminal
from .sizes import human_bytes


def download_progress(model: str, *, quiet: bool = False) -> Progress:
    """What to show while `model` is fetched; nothing is shown if it is here already."""
    if quiet:
        return SilentProgress()
    return RichProgress(model) if sys.stderr.isatty() else LineProgress(model)


class LineProgress:
    """One line when a download begins."""

    def __init__(self, model: str):
        self._model = model

    def start(self, total: int | None) -> None:
        terminal.note(f"fetching {self._model}" + (f" ({human_bytes(total)})" if total else ""))

    def advance(self, num_bytes: int) -> None:
        pass

    def close(self) -> None:
        pass
