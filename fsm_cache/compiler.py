"""Compiles grammars off the caller's thread and shares the results by content."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

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
    seconds: time spent making FSMs.
    live: FSMs kept for reuse.
    num_bytes: memory of these.
    mask_bytes: the part of it that remembered masks take.
    """

    hits: int
    misses: int
    failures: int
    seconds: float
    live: int
    num_bytes: int
    mask_bytes: int


class FsmCompiler:
    """A small thread pool in front of `compile_grammar`, with one FSM per distinct grammar.

    Args:
        vocabulary: the tokens of the model.
        limits: budgets of each grammar.
        max_workers: threads.
        max_bytes: memory of the automata kept for reuse; the least recently used are dropped. Cursors keep theirs until they end.
    """

    def __init__(self, vocabulary: Vocabulary, limits: Limits | None = None, max_workers: int = 2, max_bytes: int = _DEFAULT_MAX_BYTES):
        self.vocabulary = vocabulary
        self._limits = limits or Limits()
        self._max_workers = max_workers
        self._start()
        self._hits = self._misses = self._failures = 0
        self._seconds = 0.0
        self._max_bytes = max_bytes
        self._num_bytes = self._since_review = 0

    def _start(self) -> None:
        self._process = os.getpid()
        self._pool = ThreadPoolExecutor(self._max_workers, thread_name_prefix="formcast-fsm")
        self._lock = threading.Lock()
        self._futures: OrderedDict[str, Future[TokenFSM]] = OrderedDict()

    def submit(self, grammar: Grammar) -> Future[TokenFSM]:
        """The token FSM of `grammar`, shared with everyone who asks for an equal one, until it is full. The future raises
        GrammarError."""
        if os.getpid() != self._process:
            # Forked: the threads stayed behind, and whatever they were making will never be ready here.
            self._start()
        with self._lock:
            future = self._futures.get(grammar.key)
            self._since_review += 1
            if self._since_review >= _REVIEW:
                self._review()
            if future is not None and _is_full(future):
                future = None
            if future is not None:
                self._hits += 1
                self._futures.move_to_end(grammar.key)
                return future
            self._misses += 1
            future = self._futures[grammar.key] = self._pool.submit(self._make, grammar)
            return future

    def _review(self) -> None:
        """Weighs all automata and drops those used longest ago while they are too heavy together."""
        self._since_review = 0
        weights = {key: future.result().num_bytes for key, future in self._futures.items() if _is_ready(future)}
        self._num_bytes = sum(weights.values())
        for key, weight in weights.items():
            if self._num_bytes <= self._max_bytes:
                break
            del self._futures[key]
            self._num_bytes -= weight

    def _make(self, grammar: Grammar) -> TokenFSM:
        started = time.perf_counter()
        try:
            return compile_grammar(grammar, self.vocabulary, self._limits)
        except Exception:
            with self._lock:
                self._failures += 1
                self._futures.pop(grammar.key, None)
            raise
        finally:
            with self._lock:
                self._seconds += time.perf_counter() - started

    def stats(self) -> CompilerStats:
        with self._lock:
            self._review()
            mask_bytes = sum(future.result().mask_bytes for future in self._futures.values() if _is_ready(future))
            live = len(self._futures)
            return CompilerStats(self._hits, self._misses, self._failures, self._seconds, live, self._num_bytes, mask_bytes)

    def close(self) -> None:
        """Cancels what has not started and waits for the rest."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _is_ready(future: Future[TokenFSM]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _is_full(future: Future[TokenFSM]) -> bool:
    """Whether new texts should not begin with this automaton: its budgets are half used up by earlier ones."""
    return _is_ready(future) and future.result().is_full
