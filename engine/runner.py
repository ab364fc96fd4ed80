"""The model on its device: weights, KV cache, and one method that turns a batch into logits."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import torch

from .attention import AttentionStep, LayerShape, PagedStep, ShapeProbe, attending, check_layers, windowed_layers
from .batch import Batch, build
from .config import DeviceMemory, EngineConfig
from .errors import UnsupportedModel
from .kernels.paged_attention import LayerCache
from .request import InvalidRequest
from .step_plan import Chunk, StepPlan

_WARM_UP_TOKENS = 16
"""Enough for the kernels of long chunks."""


class Model(Protocol):
    """What the engine needs of a loaded model (`engine.models.loader.LoadedModel`)."""

    @property
    def name(self) -> str: ...
    @property
    def module(self) -> torch.nn.Module: ...
    @property
    def config(self) -> Any: ...
    @property
    def tokenizer(self) -> Any: ...
    @property
    def eos_token_ids(self) -> frozenset[int]: ...
    @property
    def max_model_len(self) -> int: ...
    @property
    def vocab_size(self) -> int: ...


class Runner:
    """Executes batches on a causal language model of `transformers` that was loaded with our attention.

    The KV cache does not exist before `allocate`, since its size depends on what the model leaves free.
    """

    def __init__(self, model: Model):
        self._module = model.module.eval()
        self._name = model.name
        weight = next(self._module.parameters())
        self.device = weight.device
        self._kv_dtype = _kv_dtype(weight)
        config = model.config.get_text_config(decoder=True)
        check_layers(config)
        self._shapes = self._probe(config)
        self._caches: tuple[LayerCache, ...] = ()

    @property
    def on_gpu(self) -> bool:
        return self.device.type != "cpu"

    def block_bytes(self, block_size: int) -> int:
        """Bytes of one KV block over all layers."""
        return sum(shape.elements(block_size) for shape in self._shapes) * self._kv_dtype.itemsize

    def memory(self) -> DeviceMemory:
        """Memory of the device as it is now."""
        if self.on_gpu:
            free_bytes, total_bytes = torch.cuda.mem_get_info(self.device)
            return DeviceMemory(total_bytes=total_bytes, free_bytes=free_bytes)
        return _host_memory()

    def allocate(self, num_blocks: int, block_size: int) -> None:
        """Makes the KV cache. On a CPU, memory is taken only as blocks are first written."""
        self._caches = tuple(self._layer_cache(shape, num_blocks, block_size) for shape in self._shapes)

    def warm_up(self) -> torch.Tensor:
        """Logits [1, V] of a step with a short and a long chunk, so that kernels are compiled or loaded before the first request.

        What it leaves in the cache is written over before it is read.
        """
        cache = self._caches[0]
        num_tokens = min(_WARM_UP_TOKENS, cache.keys.shape[0] * cache.block_size)
        blocks = tuple(range(-(-num_tokens // cache.block_size)))
        short = Chunk(request_id="short", token_ids=(0,), start=0, block_ids=blocks, samples=True)
        long = Chunk(request_id="long", token_ids=(0,) * num_tokens, start=0, block_ids=blocks, samples=False)
        return self.forward(build(StepPlan(chunks=(short, long)), self.device))

    def forward(self, batch: Batch) -> torch.Tensor:
        """The logits of the rows that sample: [R, V] float32, contiguous, owned by the caller."""
        if batch.copies is not None:
            for cache in self._caches:
                cache.copy(batch.copies)
        step = PagedStep(caches=self._caches, batch=batch.attention, sample_rows=batch.sample_rows)
        return self._logits(batch.token_ids, batch.positions, batch.sample_rows, step)

    @torch.inference_mode()
    def _logits(self, token_ids: torch.Tensor, positions: torch.Tensor, rows: torch.Tensor, step: AttentionStep) -> torch.Tensor:
        with attending(step):
            output = self._module(input_ids=token_ids, position_ids=positions, use_cache=False, logits_to_keep=rows, return_dict=True)
        return output.logits[0].float().contiguous()

    def _probe(self, config: Any) -> tuple[LayerShape, ...]:
        """The shape of each layer's keys and values, found by a pass over one token."""
        probe = ShapeProbe()
        zero = torch.zeros(1, 1, dtype=torch.int64, device=self.device)
        self._logits(zero, zero, zero[0], probe)
        layers = range(config.num_hidden_layers)
        if missing := sorted(set(layers) - set(probe.shapes)):
            raise UnsupportedModel(f"{self._name}: layers {missing} do not attend through the attention interface")
        if unbounded := sorted(windowed_layers(config) - probe.windowed):
            raise UnsupportedModel(f"{self._name}: layers {unbounded} do not say how wide their sliding window is")
        return tuple(probe.shapes[layer] for layer in layers)

    def _layer_cache(self, shape: LayerShape, num_blocks: int, block_size: int) -> LayerCache:
        def blocks(dim: int) -> torch.Tensor:
            return torch.empty(num_blocks, shape.num_kv_heads, block_size, dim, dtype=self._kv_dtype, device=self.device)

        return LayerCache(keys=blocks(shape.key_dim), values=blocks(shape.value_dim))


def _kv_dtype(weight: torch.Tensor) -> torch.dtype:
    if weight.device.type == "cpu":
        return torch.bfloat16 if weight.dtype == torch.bfloat16 else torch.float32
    return weight.dtype


def _host_memory() -> DeviceMemory:
    """Memory of this machine, within the limit of its control group where there is one."""
    total_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    free_bytes = _field("/proc/meminfo", "MemAvailable:", unit=1024, default=total_bytes)
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        in_use = int((group / "memory.current").read_text()) - _field(str(group / "memory.stat"), "file ", unit=1, default=0)
        total_bytes, free_bytes = min(total_bytes, limit), min(free_bytes, limit - in_use)
    return DeviceMemory(total_bytes=total_bytes, free_bytes=max(0, free_bytes))


def _field(path: str, prefix: str, *, unit: int, default: int) -> int:
    """The number after a prefix in a file of the kernel's, in bytes."""
    with suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(prefix):
                return int(line[len(prefix) :].split()[0]) * unit
    return default


def pick_device(config: EngineConfig) -> torch.device:
    """The device a configuration asks for: by default the first GPU, else the CPU.

    Raises:
        InvalidRequest: there is no such device.
    """
    name = config.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise InvalidRequest(f"device {name!r} cannot be used: {error}".splitlines()[0], param="device") from error


def pick_dtype(config: EngineConfig, device: torch.device) -> torch.dtype:
    """The type of weights and activations: by default bfloat16 on a GPU and float32 on a CPU."""
    if config.dtype == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[config.dtype]
