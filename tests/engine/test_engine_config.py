from __future__ import annotations

import pytest

from formcast.engine.config import DeviceMemory, EngineConfig, resolve
from formcast.engine.request import InvalidRequest

GIB = 1 << 30
MEMORY = DeviceMemory(total_bytes=16 * GIB, free_bytes=8 * GIB)


def settle(*, model_max_len=1024, block_bytes=GIB // 64, on_gpu=False, memory=MEMORY, **config):
    return resolve(EngineConfig(**config), model_max_len=model_max_len, block_bytes=block_bytes, on_gpu=on_gpu, memory=memory)


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("dtype", "int8"),
        ("max_model_len", 0),
        ("max_num_seqs", 0),
        ("max_num_batched_tokens", -1),
        ("kv_cache_memory_bytes", 0),
        ("block_size", 0),
        ("max_waiting", 0),
        ("gpu_memory_utilization", 0.0),
        ("gpu_memory_utilization", 1.5),
    ],
)
def test_a_bad_setting_is_named(param, value):
    with pytest.raises(InvalidRequest) as caught:
        EngineConfig(**{param: value})
    assert caught.value.param == param


def test_defaults_depend_on_the_device():
    cpu, gpu = settle(), settle(on_gpu=True)
    assert (cpu.max_num_seqs, cpu.max_num_batched_tokens) == (32, 512)
    assert (gpu.max_num_seqs, gpu.max_num_batched_tokens) == (64, 2048)


def test_a_cpu_takes_a_quarter_of_the_free_memory_at_most():
    assert settle().num_blocks == 2 * 64


def test_a_cpu_takes_no_more_than_all_requests_can_fill():
    limits = settle(block_bytes=1, max_num_seqs=2, model_max_len=100)
    assert limits.num_blocks == 2 * 7


def test_a_gpu_takes_its_share_less_what_is_in_use():
    limits = settle(on_gpu=True, gpu_memory_utilization=0.75)
    assert limits.num_blocks == (12 - 8) * 64


def test_the_context_shrinks_to_the_cache_unless_it_was_asked_for():
    assert settle(kv_cache_memory_bytes=GIB // 64 * 10).max_model_len == 160
    with pytest.raises(InvalidRequest, match="max_model_len"):
        settle(kv_cache_memory_bytes=GIB // 64 * 10, max_model_len=161)


@pytest.mark.parametrize(
    "config",
    [{"max_model_len": 1025}, {"max_num_seqs": 8, "max_num_batched_tokens": 7}, {"kv_cache_memory_bytes": 1}],
    ids=["beyond the model", "budget below the requests", "no block fits"],
)
def test_contradictions_are_refused(config):
    with pytest.raises(InvalidRequest):
        settle(**config)
