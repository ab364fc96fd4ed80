"""Prometheus metrics: vLLM's names where vLLM has them, `formcast:` for the rest."""

from __future__ import annotations

import time
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics, generate_latest

from ...engine.request import RequestOutput
from ..runtime import Runtime
from .engine_collector import EngineCollector

_FIRST_TOKEN_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560)
_NEXT_TOKEN_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_REQUEST_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000)
_MODEL = ("model_name",)


class Metrics:
    """All meters of one server. Thread-safe.

    Args:
        runtime: read when metrics are asked for.
        model_name: value of the label `model_name`.
    """

    def __init__(self, runtime: Runtime, model_name: str):
        disable_created_metrics()
        registry = CollectorRegistry()
        self._registry = registry
        self._model_name = model_name
        registry.register(EngineCollector(runtime, model_name))
        ProcessCollector(registry=registry)
        self._first_token = self._histogram("vllm:time_to_first_token_seconds", "From submission to the first token.", _FIRST_TOKEN_S)
        self._next_token = self._histogram("vllm:inter_token_latency_seconds", "Between tokens of one answer.", _NEXT_TOKEN_S)
        self._per_token = self._histogram(
            "vllm:request_time_per_output_token_seconds", "Mean time of a token after the first, per answer.", _NEXT_TOKEN_S
        )
        self._whole = self._histogram("vllm:e2e_request_latency_seconds", "From submission to the end of an answer.", _REQUEST_S)
        self._prompt_tokens = self._histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", _TOKENS)
        self._generated_tokens = self._histogram("vllm:request_generation_tokens", "Tokens of an answer.", _TOKENS)
        self._finished = Counter(
            "vllm:request_success", "Answers by the reason of their end.", (*_MODEL, "finished_reason"), registry=registry
        )
        self._refused = Counter("formcast:refusals", "Requests refused or failed, by error code.", (*_MODEL, "reason"), registry=registry)
        self._http = Counter("formcast:http_requests", "HTTP requests.", (*_MODEL, "path", "status"), registry=registry)

    def answer(self, *, num_prompt_tokens: int) -> AnswerMeter:
        """The meter of an answer that is submitted now."""
        self._prompt_tokens.labels(self._model_name).observe(num_prompt_tokens)
        return AnswerMeter(self)

    def http_request(self, path: str, status: int, error_code: str | None) -> None:
        """Count a request that was answered.

        Args:
            path: of the route, not of the request: a label must not take values that clients make up.
        """
        self._http.labels(self._model_name, path, str(status)).inc()
        if error_code is not None:
            self._refused.labels(self._model_name, error_code).inc()

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def token(self, *, seconds: float, is_first: bool) -> None:
        (self._first_token if is_first else self._next_token).labels(self._model_name).observe(seconds)

    def finished(self, *, reason: str, seconds: float, num_tokens: int, seconds_after_first: float) -> None:
        self._finished.labels(self._model_name, reason).inc()
        self._whole.labels(self._model_name).observe(seconds)
        self._generated_tokens.labels(self._model_name).observe(num_tokens)
        if num_tokens > 1:
            self._per_token.labels(self._model_name).observe(seconds_after_first / (num_tokens - 1))

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(name, text, _MODEL, buckets=buckets, registry=self._registry)


class AnswerMeter:
    """Times one answer. `finish` counts it once, however it ends."""

    def __init__(self, metrics: Metrics):
        self._metrics = metrics
        self._started = self._first = self._last = time.perf_counter()
        self._num_tokens = 0
        self._is_finished = False

    def add(self, output: RequestOutput) -> None:
        now = time.perf_counter()
        if output.new_token_ids:
            is_first = self._num_tokens == 0
            self._metrics.token(seconds=now - self._last, is_first=is_first)
            self._first = now if is_first else self._first
            self._num_tokens += len(output.new_token_ids)
            self._last = now
        if output.finish_reason is not None:
            self.finish(output.finish_reason)

    def finish(self, reason: str) -> None:
        if self._is_finished:
            return
        self._is_finished = True
        self._metrics.finished(
            reason=reason,
            seconds=time.perf_counter() - self._started,
            num_tokens=self._num_tokens,
            seconds_after_first=self._last - self._first,
        )
