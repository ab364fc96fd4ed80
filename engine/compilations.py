"""Grammars that are compiled in the background, and the requests that wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Protocol


class Compiler(Protocol):
    """Compiles grammars in the background (`fsm_cache.FsmCompiler`)."""

    vocabulary: Any
    """A `core.Vocabulary`."""

    def submit(self, grammar: Any) -> Future[Any]:
        """A future of the grammar's `TokenAutomaton`. It is cancelled where nobody waits for it any more."""
        ...


class Compilations:
    """What is being compiled for whom. Those that wait cost nothing.

    Args:
        wake: called on any thread when something is ready.
    """

    def __init__(self, compiler: Compiler, wake: Callable[[], None]):
        self._compiler = compiler
        self._wake = wake
        self._futures: dict[str, Future[Any]] = {}
        self._done: SimpleQueue[str] = SimpleQueue()

    def __len__(self) -> int:
        """Requests that wait."""
        return len(self._futures)

    def start(self, request_id: str, grammar: Any) -> None:
        """Compiles the grammar of a request. Raises GrammarError if it is refused at once."""
        future = self._compiler.submit(grammar)
        self._futures[request_id] = future

        def note(_: Future[Any]) -> None:
            self._done.put(request_id)
            self._wake()

        future.add_done_callback(note)

    def ready(self) -> Iterator[tuple[str, Future[Any]]]:
        """The requests whose grammar is compiled or has failed; they wait no longer."""
        while not self._done.empty():
            request_id = self._done.get()
            future = self._futures.get(request_id)
            if future is not None and future.done():  # else it was aborted, and another may have its id
                del self._futures[request_id]
                yield request_id, future

    def cancel(self, request_id: str) -> None:
        """The request waits no longer; no effect if it did not."""
        future = self._futures.pop(request_id, None)
        if future is not None:
            future.cancel()
