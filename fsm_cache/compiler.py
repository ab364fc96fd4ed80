"""Compiles grammars off the caller's thread and shares the results by content."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from ..grammar.grammar import Grammar
from ..grammar.limits import Limits
from .token_fsm import TokenFSM, compile_grammar
from .vocabulary import Vocabulary

_MAX_LIVE = 512  # token FSMs kept for reuse


@dataclass(frozen=True)
class CompilerStats:
    """Attributes:
    hits: requests answered by an FSM that was ready or being made.
    misses: FSMs made.
    failures: grammars refused.
    seconds: time spent making FSMs.
    live: FSMs kept.
    """

    hits: int
    misses: int
    failures: int
    seconds: float
    live: int


class FsmCompiler:
    """A small thread pool in front of `compile_grammar`, with one FSM per distinct grammar.

    Args:
        vocabulary: the tokens of the model.
        limits: budgets of each grammar.
        max_workers: threads.
    """

    def __init__(self, vocabulary: Vocabulary, limits: Limits | None = None, max_workers: int = 2):
        self.vocabulary = vocabulary
        self._limits = limits or Limits()
        self._pool = ThreadPoolExecutor(max_workers, thread_name_prefix="formcast-fsm")
        self._lock = threading.Lock()
        self._futures: OrderedDict[str, Future[TokenFSM]] = OrderedDict()
        self._hits = self._misses = self._failures = 0
        self._seconds = 0.0

    def submit(self, grammar: Grammar) -> Future[TokenFSM]:
        """The token FSM of `grammar`, shared with everyone who asks for an equal one, until it is worn. The future raises
        GrammarError."""
        with self._lock:
            future = self._futures.get(grammar.key)
            if future is not None and not _is_worn(future):
                self._hits += 1
                self._futures.move_to_end(grammar.key)
                return future
            self._misses += 1
            future = self._futures[grammar.key] = self._pool.submit(self._make, grammar)
            while len(self._futures) > _MAX_LIVE:
                self._futures.popitem(last=False)
            return future

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
            return CompilerStats(self._hits, self._misses, self._failures, self._seconds, len(self._futures))

    def close(self) -> None:
        """Cancels what has not started and waits for the rest."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _is_worn(future: Future[TokenFSM]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None and future.result().is_worn
