"""Loading a model for a command: progress on stderr, a clean end whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..runtime import Runtime, RuntimeOptions, open_runtime
from . import interrupt, terminal
from .download import download_progress


@contextmanager
def load(options: RuntimeOptions, *, quiet: bool = False) -> Iterator[Runtime]:
    """A runtime that is closed when the block ends."""
    from ...engine.models.store import ModelStore

    # Fetched first: a terminal shows one moving thing at a time.
    ModelStore().resolve(options.model, progress=download_progress(options.model, quiet=quiet))
    with terminal.status(f"loading {options.model}", quiet=quiet):
        runtime = open_runtime(options)
    try:
        interrupt.check()
        yield runtime
    finally:
        runtime.close()
