"""An engine on a thread of its own."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from ..grammar.errors import FormcastError
from .core import EngineCore, EngineStats
from .request import EngineOverloaded, EngineStopped, GenerationError, InvalidRequest, Request, RequestOutput

OnOutput = Callable[[RequestOutput], None]

_log = logging.getLogger(__name__)


class EngineClient:
    """Runs a core. All methods may be called from any thread.

    Every request that `submit` accepts gets exactly one output with a finish reason: from its answer, from `abort`, from
    `close`, or because the engine failed.
    """

    def __init__(self, core: EngineCore):
        self._core = core
        self._process = os.getpid()
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._callbacks: dict[str, OnOutput] = {}
        self._lock = Lock()
        self._stopped: EngineStopped | None = None
        self._stats = core.stats
        self._thread = Thread(target=self._run, name="formcast-engine", daemon=True)
        self._thread.start()

    def submit(self, request: Request, on_output: OnOutput) -> None:
        """Queues a request. `on_output` is called on the engine's thread and should return quickly.

        Raises:
            InvalidRequest: it can never be served, or its id is in use.
            EngineOverloaded: too many requests are open.
            EngineStopped: the engine was closed or has failed.
        """
        if os.getpid() != self._process:  # before the lock, which may have been held when the process was forked
            raise EngineStopped("the engine runs in another process, from which this one was forked")
        self._core.validate(request)
        limits = self._core.limits
        with self._lock:
            if self._stopped is not None:
                raise EngineStopped(*self._stopped.args)
            if request.request_id in self._callbacks:
                raise InvalidRequest(f"request id {request.request_id!r} is in use", param="request_id")
            if len(self._callbacks) >= limits.max_num_seqs + limits.max_waiting:
                raise EngineOverloaded(f"{len(self._callbacks)} requests are open already")
            self._callbacks[request.request_id] = on_output
            self._commands.put(lambda: self._add(request))
        self._core.wake()

    def abort(self, request_id: str) -> None:
        """Ends a request; no effect on one that is unknown or has ended."""
        if os.getpid() != self._process:
            return
        self._command(lambda: self._deliver(self._core.abort(request_id)))

    @property
    def alive(self) -> bool:
        """Whether requests are accepted: neither closed nor failed."""
        return self._stopped is None and self._thread.is_alive()

    def stats(self) -> EngineStats:
        """The state after the last step."""
        return self._stats

    def close(self) -> None:
        """Ends all open requests with "abort", and the thread. May be called twice. In a forked process it has no effect."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._stopped is None:
                self._stopped = EngineStopped("the engine is closed")
        self._command(lambda: None)
        self._thread.join()

    def _command(self, command: Callable[[], None]) -> None:
        self._commands.put(command)
        self._core.wake()

    def _run(self) -> None:
        try:
            while self._stopped is None:
                self._run_commands()
                if self._core.has_work:
                    self._deliver(self._core.step())
                self._stats = self._core.stats
        except Exception as error:
            _log.exception("the engine failed")
            self._stop(GenerationError(f"the engine failed: {type(error).__name__}"))
        else:
            self._stop(None)

    def _run_commands(self) -> None:
        """All queued commands; waits for one when there is nothing else to do."""
        if not self._core.has_work:
            self._commands.get()()
        try:
            while True:
                self._commands.get_nowait()()
        except Empty:
            return

    def _add(self, request: Request) -> None:
        try:
            self._core.add(request)
        except FormcastError as error:
            self._deliver([_last(request.request_id, error)])
        except Exception as error:
            _log.exception("a request could not be added")
            self._deliver([_last(request.request_id, GenerationError(f"the engine failed: {type(error).__name__}"))])

    def _deliver(self, outputs: Iterable[RequestOutput]) -> None:
        for output in outputs:
            with self._lock:
                table = self._callbacks
                callback = table.pop(output.request_id, None) if output.finished else table.get(output.request_id)
            if callback is not None:
                self._call(callback, output)

    def _call(self, callback: OnOutput, output: RequestOutput) -> None:
        """A callback that raises loses its request, nothing else."""
        try:
            callback(output)
        except Exception:
            _log.exception("the receiver of request %s failed", output.request_id)
            if not output.finished:
                with self._lock:
                    self._callbacks.pop(output.request_id, None)
                self._core.abort(output.request_id)

    def _stop(self, error: GenerationError | None) -> None:
        """Every open request gets its last output, also those that never reached the core."""
        with self._lock:
            if self._stopped is None:
                self._stopped = EngineStopped("the engine has failed")
            open_ids = list(self._callbacks)
        self._deliver([_last(request_id, error) for request_id in open_ids])


def _last(request_id: str, error: FormcastError | None) -> RequestOutput:
    return RequestOutput(request_id=request_id, finish_reason="abort" if error is None else "error", error=error)
