"""How a download shows how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told about one pull, from one thread: `start`, then `advance` any number of times, then `close`, also on failure."""

    def start(self, total: int | None) -> None:
        """A pull begins; `total` bytes are to come, None if that is not known."""
        ...

    def advance(self, num_bytes: int) -> None:
        """So many bytes more are here. Negative when a part has to be fetched again."""
        ...

    def close(self) -> None:
        """The pull ended, well or not."""
        ...


class SilentProgress:
    """Shows nothing."""

    def start(self, total: int | None) -> None:
        pass

    def advance(self, num_bytes: int) -> None:
        pass

    def close(self) -> None:
        pass


class RichProgress:
    """A progress bar on standard error."""

    def __init__(self, label: str):
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as Bars

        self._label = label
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bars.add_task(label, total=None, visible=False)

    def start(self, total: int | None) -> None:
        self._bars.update(self._task, total=total, visible=True)
        self._bars.start()

    def advance(self, num_bytes: int) -> None:
        self._bars.advance(self._task, num_bytes)

    def close(self) -> None:
        self._bars.stop()
