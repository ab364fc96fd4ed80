"""Metrics: what is counted, and that the dashboard asks for nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_fakes import echoes, fails, fake_runtime, hangs, says
from api_processes import API_KEY, Server
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings
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
    assert found[("formcast:http_requests_total", CHAT, "200")] == 1


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
    return {re.sub("_(bucket|sum|count)$", "", name) for name in names}


def test_the_dashboard_shows_metrics_that_exist():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = {name for panel in panels for target in panel["targets"] for name in METRIC.findall(target["expr"])}
    assert {name.removesuffix("_bucket") for name in asked} - known_names() == set()


def test_the_metrics_are_documented_as_they_are():
    table = DOCUMENT.read_text(encoding="utf-8").partition("## Metrics")[2].partition("##")[0]
    assert set(METRIC.findall(table)) == known_names()
