"""Progress of a batch: on stderr, or in a notebook under its cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
Report = Callable[[int], None]


@contextmanager
def batch_progress(progress: bool | Progress, *, total: int) -> Iterator[Report]:
    """What to call with the number of finished requests: nothing, the caller's function, or a bar."""
    if progress is False:
        yield lambda num_finished: None
    elif progress is True:
        with _bar(total) as report:
            yield report
    else:
        yield lambda num_finished: progress(num_finished, total)


@contextmanager
def _bar(total: int) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if console.is_jupyter:
        yield _notebook_bar(total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as shown:
        task = shown.add_task("answers", total=total)
        yield lambda num_finished: shown.update(task, completed=num_finished)


def _notebook_bar(total: int) -> Report:
    """IPython's own bar, which every notebook shows; rich's needs ipywidgets."""
    from IPython.display import ProgressBar  # pyright: ignore[reportMissingImports]  where there is a notebook, there is IPython

    bar = ProgressBar(total)
    bar.display()
    return lambda num_finished: setattr(bar, "progress", num_finished)
