"""The requests of one synchronous call: outputs cross from the engine's thread to the caller's, and nothing outlives the call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Generic, TypeVar

from ..engine.request import Request, RequestOutput
from .ports import Engine

Tag = TypeVar("Tag")


class Session(Generic[Tag]):
    """Submits requests under a tag of the caller's choice and hands out their outputs in order of arrival.

    Used as a context manager: whatever is still running when the block ends, also by Ctrl-C, is aborted.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._outputs: SimpleQueue[tuple[Tag, RequestOutput]] = SimpleQueue()
        self._live: set[str] = set()

    @property
    def num_live(self) -> int:
        """Requests that have not finished."""
        return len(self._live)

    def submit(self, request: Request, tag: Tag) -> None:
        """Queue a request; raises what `Engine.submit` raises."""
        deliver: Callable[[RequestOutput], None] = partial(self._deliver, tag)
        self._engine.submit(request, deliver)
        self._live.add(request.request_id)

    def next(self) -> tuple[Tag, RequestOutput]:
        """The next output of any live request; waits for it."""
        tag, output = self._outputs.get()
        if output.finished:
            self._live.discard(output.request_id)
        return tag, output

    def _deliver(self, tag: Tag, output: RequestOutput) -> None:
        self._outputs.put((tag, output))

    def __enter__(self) -> Session[Tag]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for request_id in self._live:
            self._engine.abort(request_id)
        self._live.clear()
