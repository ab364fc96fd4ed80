"""What the engine and the grammar compiler count, read when somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from ...engine.stats import STEP_SIZES, EngineStats
from ..runtime import Runtime

_LABELS = ("model_name",)


class EngineCollector(Collector):
    """Metrics without state of their own."""

    def __init__(self, runtime: Runtime, model_name: str):
        self._runtime = runtime
        self._labels = (model_name,)

    def collect(self) -> Iterable[Metric]:
        yield from self._engine()
        yield from self._compiler()

    def describe(self) -> Iterable[Metric]:
        return ()

    def _engine(self) -> Iterator[Metric]:
        stats = self._runtime.engine.stats()
        used = (stats.kv.held / stats.kv.total) if stats.kv.total else 0.0
        yield self._gauge("formcast:engine_alive", "Whether the engine accepts requests.", float(self._runtime.engine.alive))
        yield self._gauge("vllm:num_requests_running", "Requests in the batch.", stats.num_running)
        yield self._gauge("vllm:num_requests_waiting", "Requests that wait for room or for their grammar.", _waiting(stats))
        yield self._gauge("formcast:num_requests_waiting_for_grammar", "Those that wait for a grammar.", stats.num_waiting_for_grammar)
        yield self._gauge("vllm:kv_cache_usage_perc", "Share of the KV blocks that requests hold, 0 to 1.", used)
        yield self._counter("vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", stats.num_prompt_tokens)
        yield self._counter("vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.", stats.num_cached_tokens)
        yield self._counter("vllm:prompt_tokens", "Prompt tokens.", stats.num_prompt_tokens)
        yield self._counter("vllm:generation_tokens", "Generated tokens.", stats.num_generated_tokens)
        yield self._counter("vllm:num_preemptions", "Requests that had to give their blocks back for a while.", stats.num_preemptions)
        yield self._counter("formcast:engine_steps", "Batches computed.", stats.num_steps)
        yield self._step_sizes(stats)
        yield self._counter("formcast:masks", "Token masks made.", stats.num_masks)
        yield self._counter("formcast:mask_seconds", "Time spent making token masks.", stats.mask_seconds)
        yield self._counter("vllm:spec_decode_num_draft_tokens", "Tokens that were guessed and verified.", stats.num_draft_tokens)
        yield self._counter("vllm:spec_decode_num_accepted_tokens", "Those of them that were right.", stats.num_accepted_tokens)
        yield self._counter("formcast:forced_tokens", "Right guesses that the grammar forced.", stats.num_forced_tokens)

    def _compiler(self) -> Iterator[Metric]:
        if self._runtime.compiler_stats is None:
            return
        stats = self._runtime.compiler_stats()
        yield self._counter("formcast:grammar_compile_seconds", "Time spent compiling grammars.", stats.seconds)
        yield self._counter("formcast:grammar_cache_hits", "Grammars that were compiled already.", stats.hits)
        yield self._counter("formcast:grammar_cache_misses", "Grammars that had to be compiled.", stats.misses)
        yield self._counter("formcast:grammar_failures", "Grammars that were refused while compiling.", stats.failures)
        yield self._counter("formcast:grammar_cancelled", "Grammars given up because nobody waited for them any more.", stats.cancelled)
        yield self._gauge("formcast:grammar_cache_entries", "Compiled grammars kept.", stats.live)
        yield self._gauge("formcast:grammar_cache_bytes", "Memory of the compiled grammars.", stats.num_bytes)

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, text, labels=_LABELS)
        family.add_metric(self._labels, value)
        return family

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(name, text, labels=_LABELS)
        family.add_metric(self._labels, value)
        return family

    def _step_sizes(self, stats: EngineStats) -> Metric:
        bounds = (*map(floatToGoString, STEP_SIZES), "+Inf")
        family = HistogramMetricFamily("vllm:iteration_tokens_total", "Tokens computed in a batch, guesses among them.", labels=_LABELS)
        family.add_metric(self._labels, list(zip(bounds, accumulate(stats.step_sizes), strict=True)), stats.num_step_tokens)
        return family


def _waiting(stats: EngineStats) -> int:
    return stats.num_waiting + stats.num_waiting_for_grammar
