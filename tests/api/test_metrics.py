"""Metrics: what is counted, and that the dashboard asks for nothing else."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_fakes import echoes, fails, fake_runtime, hangs, says
from api_processes import API_KEY, Server
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.jobs import Job
from formcast.api.prompts import Prompt
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app
from formcast.api.server.metrics import Metrics
from formcast.api.server.settings import ServerSettings
from formcast.engine.request import RequestOutput, SamplingParams
from formcast.fsm_cache.compiler import CompilerStats
from formcast.grammar.errors import GrammarError

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "grafana" / "formcast.json"
DOCUMENT = DASHBOARD.parents[1] / "server.md"
METRIC = re.compile(r"(?:vllm|formcast):\w+")
CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
Samples = dict[tuple[str, ...], float]


def client(runtime: Runtime, **settings: Any) -> TestClient:
    return TestClient(
        create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",), **settings)), raise_server_exceptions=False
    )


def samples(text: str) -> Samples:
    """Name and label values (but the model's) -> value."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "model_name"}
            found[(sample.name, *labels.values())] = sample.value
    return found


def scrape(api: TestClient) -> Samples:
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return samples(answer.text)


def test_what_the_engine_counts():
    found = scrape(client(fake_runtime(echoes)))
    assert found[("vllm:num_requests_running",)] == 0
    assert found[("vllm:num_requests_waiting",)] == 3
    assert found[("vllm:kv_cache_usage_perc",)] == pytest.approx(0.1)
    assert found[("vllm:prompt_tokens_total",)] == 50
    assert found[("vllm:generation_tokens_total",)] == 30
    assert found[("vllm:prefix_cache_queries_total",)] == 50
    assert found[("vllm:prefix_cache_hits_total",)] == 20
    assert found[("vllm:num_preemptions_total",)] == 2
    assert found[("formcast:mask_seconds_total",)] == 0.25
    assert found[("formcast:forced_tokens_total",)] == 3
    assert found[("formcast:engine_alive",)] == 1


def test_what_grammars_cost():
    stats = CompilerStats(hits=3, misses=2, failures=1, cancelled=4, seconds=0.5, live=2, num_bytes=4096, mask_bytes=1024)
    runtime = fake_runtime(echoes)
    object.__setattr__(runtime, "compiler_stats", lambda: stats)
    found = scrape(client(runtime))
    assert found[("formcast:grammar_compile_seconds_total",)] == 0.5
    assert found[("formcast:grammar_cache_hits_total",)] == 3
    assert found[("formcast:grammar_cache_misses_total",)] == 2
    assert found[("formcast:grammar_failures_total",)] == 1
    assert found[("formcast:grammar_cancelled_total",)] == 4
    assert found[("formcast:grammar_cache_bytes",)] == 4096


@pytest.mark.parametrize("stream", [False, True])
def test_answers_are_timed_and_counted(stream: bool):
    api = client(fake_runtime(says("abc", finish_reason="length")))
    api.post(CHAT, json=HELLO | {"n": 2, "stream": stream})
    found = scrape(api)
    assert found[("vllm:request_success_total", "length")] == 2
    assert found[("vllm:time_to_first_token_seconds_count",)] == 2
    assert found[("vllm:inter_token_latency_seconds_count",)] == 4
    assert found[("vllm:e2e_request_latency_seconds_count",)] == 2
    assert found[("vllm:request_generation_tokens_sum",)] == 6
    assert found[("vllm:request_prompt_tokens_sum",)] == 2 * len("user: hello\nassistant:")
    assert found[("vllm:request_max_num_generation_tokens_sum",)] == 3
    assert (found[("vllm:request_params_n_sum",)], found[("vllm:request_params_n_count",)]) == (2, 1)
    assert found[("vllm:request_params_max_tokens_count",)] == 0
    assert found[("formcast:http_requests_total", CHAT, "200")] == 1


def test_every_meter_is_there_from_the_start():
    found = scrape(client(fake_runtime(echoes)))
    assert all(found[("vllm:request_success_total", reason)] == 0 for reason in ("stop", "length", "abort", "error"))
    assert found[("vllm:e2e_request_latency_seconds_bucket", "0.3")] == 0
    lengths = [float(key[1]) for key in found if key[0] == "vllm:request_prompt_tokens_bucket"]
    assert lengths == [1, 2, 5, 10, 20, 50, 100, 200, float("inf")], "up to the context of 256"


def test_batches_are_counted_by_size():
    found = scrape(client(fake_runtime(echoes)))
    sizes = {key[1]: value for key, value in found.items() if key[0] == "vllm:iteration_tokens_total_bucket"}
    assert list(sizes)[:4] == ["1.0", "8.0", "16.0", "32.0"] and list(sizes)[-2:] == ["16384.0", "+Inf"]
    assert (sizes["1.0"], sizes["8.0"], sizes["16.0"], sizes["16384.0"], sizes["+Inf"]) == (1, 1, 3, 3, 4)
    assert (found[("vllm:iteration_tokens_total_sum",)], found[("vllm:iteration_tokens_total_count",)]) == (80, 4)


def test_the_time_of_an_answer_has_parts():
    """An answer that was in the queue for 2 s, and one that never left it."""
    clock = time.monotonic()
    started = RequestOutput(request_id="", new_token_ids=(97, 98), scheduled_time=clock + 2, num_prompt_tokens=50, num_cached_tokens=30)
    metrics = Metrics(fake_runtime(echoes), "fake")
    prompt = Prompt(text="x", token_ids=(1,) * 50, source="prompt")
    for outputs in ([started], []):
        meter = metrics.job(Job(prompt=prompt, params=SamplingParams(max_tokens=20)))
        for output in outputs:
            meter.answers[0].add(output)
        meter.finish(is_over=False)
    found = samples(metrics.render().decode())
    assert found[("vllm:request_queue_time_seconds_sum",)] == pytest.approx(2, abs=0.5)
    assert found[("vllm:request_prefill_kv_computed_tokens_sum",)] == 20
    assert found[("vllm:request_params_max_tokens_sum",)] == 40
    counts = {key[0].removeprefix("vllm:request_"): value for key, value in found.items() if key[0].endswith("_seconds_count")}
    parts = ("queue", "prefill", "decode", "inference")
    assert [counts[f"{part}_time_seconds_count"] for part in parts] == [1, 1, 1, 1], "none is made up for what did not happen"
    assert found[("vllm:e2e_request_latency_seconds_count",)] == 2


@pytest.mark.parametrize(
    ("body", "reason", "status"),
    [
        ({"zzz": 1}, "unknown_parameter", 400),
        ({"max_tokens": 1000}, "context_length_exceeded", 400),
        ({"regex": "("}, "invalid_grammar", 400),
        ({"model": "other"}, "model_not_found", 404),
    ],
)
def test_refusals_are_counted_by_reason(body: dict[str, Any], reason: str, status: int):
    api = client(fake_runtime(echoes))
    api.post(CHAT, json=HELLO | body)
    found = scrape(api)
    assert found[("formcast:refusals_total", reason)] == 1
    assert found[("formcast:http_requests_total", CHAT, str(status))] == 1


def test_failures_strangers_and_full_queues_are_counted():
    api = client(fake_runtime(fails(GrammarError("no"))), api_keys=("k",))
    api.headers["authorization"] = "Bearer k"
    api.post(CHAT, json=HELLO | {"regex": "a"})
    api.get("/metrics", headers={"authorization": "Bearer wrong"})
    found = scrape(api)
    assert found[("vllm:request_success_total", "error")] == 1
    assert found[("formcast:refusals_total", "invalid_grammar")] == 1
    assert found[("formcast:refusals_total", "invalid_api_key")] == 1
    full = client(fake_runtime(hangs(), max_live=0))
    full.post(CHAT, json=HELLO)
    assert scrape(full)[("formcast:refusals_total", "engine_overloaded")] == 1


def test_made_up_paths_make_no_labels():
    api = client(fake_runtime(echoes))
    api.get("/v1/models/fake")
    for number in range(3):
        api.get(f"/made/up/{number}")
    found = scrape(api)
    assert found[("formcast:http_requests_total", "(other)", "404")] == 3
    assert found[("formcast:http_requests_total", "/v1/models/{name:path}", "200")] == 1


def test_a_real_server_counts(server: Server):
    with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {API_KEY}"}, timeout=120) as real:
        before = samples(real.get("/metrics").text)
        body = HELLO | {"max_tokens": 30, "structured_outputs": {"regex": "forced text"}}
        for _ in range(2):
            assert real.post(CHAT, json=body).status_code == 200
        after = samples(real.get("/metrics").text)

    def grown(*key: str) -> float:
        return after[key] - before.get(key, 0.0)

    assert grown("vllm:request_success_total", "stop") == 2
    assert grown("vllm:generation_tokens_total") >= 2
    assert grown("vllm:iteration_tokens_total_sum") >= grown("vllm:request_prefill_kv_computed_tokens_sum") > 0
    whole, queued, inference = (f"vllm:{name}_seconds_sum" for name in ("e2e_request_latency", "request_queue_time", "request_inference_time"))
    assert min(grown(queued), grown(inference)) > 0
    assert grown(queued) + grown(inference) <= grown(whole)
    assert grown("vllm:request_prefill_time_seconds_sum") + grown("vllm:request_decode_time_seconds_sum") == pytest.approx(grown(inference))
    assert grown("vllm:prompt_tokens_total") > 0
    assert grown("formcast:masks_total") > 0
    assert grown("formcast:mask_seconds_total") > 0
    assert grown("formcast:grammar_cache_misses_total") == 1
    assert grown("formcast:grammar_cache_hits_total") == 1
    assert grown("formcast:grammar_compile_seconds_total") > 0
    assert after[("formcast:grammar_cache_bytes",)] > 0
    assert after[("process_resident_memory_bytes",)] > 0


def known_names() -> set[str]:
    """All metrics, histograms by their bare name."""
    runtime = fake_runtime(says("ab"))
    stats = CompilerStats(hits=0, misses=0, failures=0, cancelled=0, seconds=0, live=0, num_bytes=0, mask_bytes=0)
    object.__setattr__(runtime, "compiler_stats", lambda: stats)
    api = client(runtime)
    api.post(CHAT, json=HELLO)
    api.post(CHAT, json=HELLO | {"zzz": 1})
    names = {name for name, *_ in samples(api.get("/metrics").text) if name.startswith(("vllm:", "formcast:"))}
    return set(map(bare, names))


def bare(name: str) -> str:
    return re.sub("_(bucket|sum|count)$", "", name)


def test_the_dashboard_shows_metrics_that_exist():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = {name for panel in panels for target in panel["targets"] for name in METRIC.findall(target["expr"])}
    assert {bare(name) for name in asked} - known_names() == set()


def test_the_metrics_are_documented_as_they_are():
    table = DOCUMENT.read_text(encoding="utf-8").partition("## Metrics")[2].partition("##")[0]
    assert set(METRIC.findall(table)) == known_names()
