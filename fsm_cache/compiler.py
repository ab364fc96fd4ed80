"""Compiles grammars off the caller's thread and shares the results by content.

Everyone who asks has a future of their own until the automaton is ready. Cancelling it takes that one out; work for which nobody waits
any more stops by itself, within milliseconds (`grammar.cancellation`).
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from ..grammar.cancellation import Cancellation, cancellable
from ..grammar.grammar import Grammar
from ..grammar.limits import Limits
from .token_fsm import TokenFSM, compile_grammar
from .vocabulary import Vocabulary

_DEFAULT_MAX_BYTES = 512 << 20
_REVIEW = 32  # automata grow while they are used: after so many requests all of them are weighed again


@dataclass(frozen=True)
class CompilerStats:
    """Attributes:
    hits: requests answered by an FSM that was ready or being made.
    misses: FSMs made.
    failures: grammars refused.
    cancelled: FSMs given up because nobody waited for them any more.
    seconds: time spent making FSMs.
    live: FSMs kept for reuse.
    num_bytes: memory of these, and of masks and tables that they share.
    mask_bytes: the part of it that masks take.
    """

    hits: int
    misses: int
    failures: int
    cancelled: int
    seconds: float
    live: int
    num_bytes: int
    mask_bytes: int


@dataclass(kw_only=True, eq=False)
class _Job:
    """One FSM in the making, or ready.

    Attributes:
        waiting: the futures of those who asked and neither got an answer nor cancelled.
        fsm: the result.
    """

    cancellation: Cancellation = field(default_factory=Cancellation)
    waiting: set[Future[TokenFSM]] = field(default_factory=set)
    fsm: TokenFSM | None = None

    def answer(self) -> Future[TokenFSM]:
        """A future that is done."""
        future: Future[TokenFSM] = Future()
        assert self.fsm is not None
        future.set_result(self.fsm)
        return future


class FsmCompiler:
    """A small thread pool in front of `compile_grammar`, with one FSM per distinct grammar.

    Args:
        vocabulary: the tokens of the model.
        limits: budgets of each grammar.
        max_workers: threads.
        max_bytes: memory of the automata kept for reuse, 512 MiB if None; the least recently used are dropped. Cursors keep theirs until
            they end.
    """

    def __init__(self, vocabulary: Vocabulary, limits: Limits | None = None, max_workers: int = 2, max_bytes: int | None = None):
        self.vocabulary = vocabulary
        self._limits = limits or Limits()
        self._max_workers = max_workers
        self._start()
        self._hits = self._misses = self._failures = self._cancelled = 0
        self._seconds = 0.0
        self._max_bytes = _DEFAULT_MAX_BYTES if max_bytes is None else max_bytes
        self._num_bytes = self._since_review = 0

    def _start(self) -> None:
        self._process = os.getpid()
        self._pool = ThreadPoolExecutor(self._max_workers, thread_name_prefix="formcast-fsm")
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, _Job] = OrderedDict()

    def submit(self, grammar: Grammar) -> Future[TokenFSM]:
        """The token FSM of `grammar`, shared with everyone who asks for an equal one, until it is full.

        The future is the caller's own: cancelling it takes nothing from others, and stops the work if there are none. It raises
        GrammarError.
        """
        if os.getpid() != self._process:
            # Forked: the threads stayed behind, and whatever they were making will never be ready here.
            self._start()
        with self._lock:
            job = self._jobs.get(grammar.key)
            self._since_review += 1
            if self._since_review >= _REVIEW:
                self._review()
            if job is not None and (job.fsm is None or not job.fsm.is_full):
                self._hits += 1
                self._jobs.move_to_end(grammar.key)
                return job.answer() if job.fsm is not None else self._wait(grammar.key, job)
            self._misses += 1
            job = _Job()
            self._pool.submit(self._make, grammar, job)
            self._jobs[grammar.key] = job
            return self._wait(grammar.key, job)

    def _wait(self, key: str, job: _Job) -> Future[TokenFSM]:
        """A future that is done when the job is. The lock is held."""
        future: Future[TokenFSM] = Future()
        job.waiting.add(future)
        future.add_done_callback(lambda future: self._leave(key, job, future) if future.cancelled() else None)
        return future

    def _leave(self, key: str, job: _Job, future: Future[TokenFSM]) -> None:
        """Somebody waits no longer."""
        with self._lock:
            job.waiting.discard(future)
            if not job.waiting and job.fsm is None:
                job.cancellation.cancel()
                self._forget(key, job)

    def _forget(self, key: str, job: _Job) -> None:
        """Whoever asks for an equal grammar from now on has it made anew."""
        if self._jobs.get(key) is job:
            del self._jobs[key]

    def _review(self) -> None:
        """Weighs all automata and drops those used longest ago while they are too heavy together."""
        self._since_review = 0
        weights = {key: job.fsm.num_bytes for key, job in self._jobs.items() if job.fsm is not None}
        own_bytes = sum(weights.values())
        for key, weight in weights.items():
            if own_bytes + self.vocabulary.shared_bytes <= self._max_bytes:
                break
            del self._jobs[key]
            own_bytes -= weight
        self._num_bytes = own_bytes + self.vocabulary.shared_bytes

    def _make(self, grammar: Grammar, job: _Job) -> None:
        started = time.perf_counter()
        fsm: TokenFSM | None = None
        error: BaseException | None = None
        if not job.cancellation.is_set:
            try:
                with cancellable(job.cancellation):
                    fsm = compile_grammar(grammar, self.vocabulary, self._limits)
            except BaseException as raised:  # whatever it is, nobody may be left waiting
                error = raised
        with self._lock:
            self._seconds += time.perf_counter() - started
            if job.cancellation.is_set:
                self._cancelled += 1
            elif error is not None:
                self._failures += 1
                self._forget(grammar.key, job)
            job.fsm = fsm
            waiting = list(job.waiting)
            job.waiting.clear()
        for future in waiting:
            if future.set_running_or_notify_cancel():  # the one moment from which on it cannot be cancelled
                if fsm is not None:
                    future.set_result(fsm)
                else:
                    future.set_exception(error)

    def stats(self) -> CompilerStats:
        with self._lock:
            self._review()
            live = len(self._jobs)
            counts = (self._hits, self._misses, self._failures, self._cancelled)
            return CompilerStats(*counts, self._seconds, live, self._num_bytes, self.vocabulary.masks.num_bytes)

    def close(self) -> None:
        """Cancels everything that is being made, and waits until it has stopped."""
        with self._lock:
            waiting = [future for job in self._jobs.values() for future in job.waiting]
        for future in waiting:
            future.cancel()
        self._pool.shutdown(wait=True)
