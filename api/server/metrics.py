"""Prometheus metrics: vLLM's names where vLLM has them, `formcast:` for the rest."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics, generate_latest

from ...engine.request import FinishReason, RequestOutput
from ..jobs import Job
from ..runtime import Runtime
from .engine_collector import EngineCollector

_FIRST_TOKEN_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560)
_NEXT_TOKEN_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_REQUEST_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_ANSWERS = (1, 2, 5, 10, 20)
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
        self._queued = self._histogram("vllm:request_queue_time_seconds", "From submission to the first step.", _REQUEST_S)
        self._prefill = self._histogram("vllm:request_prefill_time_seconds", "From the first step to the first token.", _REQUEST_S)
        self._decode = self._histogram("vllm:request_decode_time_seconds", "From the first token to the last.", _REQUEST_S)
        self._inference = self._histogram("vllm:request_inference_time_seconds", "From the first step to the last token.", _REQUEST_S)
        lengths = _round_numbers(runtime.max_model_len)
        self._prompt_tokens = self._histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", lengths)
        self._computed_tokens = self._histogram(
            "vllm:request_prefill_kv_computed_tokens", "Tokens of a prompt that were not in the prefix cache.", lengths
        )
        self._generated_tokens = self._histogram("vllm:request_generation_tokens", "Tokens of an answer.", lengths)
        self._longest = self._histogram("vllm:request_max_num_generation_tokens", "Tokens of the longest answer to a prompt.", lengths)
        self._max_tokens = self._histogram("vllm:request_params_max_tokens", "The parameter max_tokens, where it is given.", lengths)
        self._n = self._histogram("vllm:request_params_n", "Answers asked for a prompt.", _ANSWERS)
        self._finished = Counter(
            "vllm:request_success", "Answers by the reason of their end.", (*_MODEL, "finished_reason"), registry=registry
        )
        for reason in get_args(FinishReason):
            self._finished.labels(model_name, reason)
        self._refused = Counter("formcast:refusals", "Requests refused or failed, by error code.", (*_MODEL, "reason"), registry=registry)
        self._http = Counter("formcast:http_requests", "HTTP requests.", (*_MODEL, "path", "status"), registry=registry)

    def job(self, job: Job) -> JobMeter:
        """The meter of a job that is submitted now."""
        self._n.observe(job.params.n)
        if job.params.max_tokens is not None:
            self._max_tokens.observe(job.params.max_tokens)
        for _ in range(job.params.n):
            self._prompt_tokens.observe(len(job.prompt.token_ids))
        return JobMeter(self, job.params.n)

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
        (self._first_token if is_first else self._next_token).observe(seconds)

    def finished(self, times: AnswerTimes, *, reason: str, num_tokens: int, num_computed: int) -> None:
        """An answer has ended. What it never came to is not observed."""
        self._finished.labels(self._model_name, reason).inc()
        self._whole.observe(times.ended - times.submitted)
        self._generated_tokens.observe(num_tokens)
        if times.scheduled is not None:
            self._queued.observe(times.scheduled - times.submitted)
        if times.first_token is None or times.last_token is None:
            return
        self._computed_tokens.observe(num_computed)
        self._decode.observe(times.last_token - times.first_token)
        if num_tokens > 1:
            self._per_token.observe((times.last_token - times.first_token) / (num_tokens - 1))
        if times.scheduled is not None:
            self._prefill.observe(times.first_token - times.scheduled)
            self._inference.observe(times.last_token - times.scheduled)

    def job_finished(self, *, longest: int) -> None:
        """All answers of a job have ended; the longest has so many tokens."""
        self._longest.observe(longest)

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(name, text, _MODEL, buckets=buckets, registry=self._registry).labels(self._model_name)


@dataclass(kw_only=True)
class AnswerTimes:
    """When things happened to one answer, in seconds on the monotonic clock; None where they did not.

    Attributes:
        scheduled: it first took part in a step.
        first_token, last_token: they were received.
    """

    submitted: float
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    ended: float = math.inf


class AnswerMeter:
    """Times one answer. `finish` counts it once, however it ends.

    Attributes:
        num_tokens: of the answer so far.
    """

    def __init__(self, metrics: Metrics):
        self.num_tokens = 0
        self._metrics = metrics
        self._times = AnswerTimes(submitted=time.monotonic())
        self._num_computed = 0
        self._is_finished = False

    def add(self, output: RequestOutput) -> None:
        times, now = self._times, time.monotonic()
        times.scheduled = output.scheduled_time
        self._num_computed = output.num_prompt_tokens - output.num_cached_tokens
        if output.new_token_ids:
            self._metrics.token(seconds=now - (times.last_token or times.submitted), is_first=times.first_token is None)
            times.first_token, times.last_token = times.first_token or now, now
            self.num_tokens += len(output.new_token_ids)
        if output.finish_reason is not None:
            self.finish(output.finish_reason)

    def finish(self, reason: str) -> None:
        if self._is_finished:
            return
        self._is_finished = True
        self._times.ended = time.monotonic()
        self._metrics.finished(self._times, reason=reason, num_tokens=self.num_tokens, num_computed=self._num_computed)


class JobMeter:
    """Attributes:
    answers: the meters of its answers.
    """

    def __init__(self, metrics: Metrics, num_answers: int):
        self.answers = [AnswerMeter(metrics) for _ in range(num_answers)]
        self._metrics = metrics

    def finish(self, *, is_over: bool) -> None:
        """Nothing more will come.

        Args:
            is_over: nothing was missing, so an answer without an end is one that a beam search did not find. Otherwise it was aborted.
        """
        for answer in () if is_over else self.answers:
            answer.finish("abort")
        self._metrics.job_finished(longest=max(answer.num_tokens for answer in self.answers))


def _round_numbers(largest: int) -> list[int]:
    """1, 2, 5, 10, 20, 50 and so on, up to `largest`."""
    return [number for exponent in range(len(str(largest))) for step in (1, 2, 5) if (number := step * 10**exponent) <= largest]
