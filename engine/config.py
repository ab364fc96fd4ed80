"""Configuration of an engine: what a user may set, and the one function that settles the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from .request import InvalidRequest

DType = Literal["auto", "float32", "bfloat16", "float16"]
Quantization = Literal["int8", "none"]

_DTYPES = ("auto", "float32", "bfloat16", "float16")
_QUANTIZATIONS = (None, "int8", "none")
_MAX_SPECULATION = 15
_CPU_KV_SHARE = 0.25
"""Share of the free memory that the KV cache may take on a CPU, where other programs live too."""


@dataclass(frozen=True, kw_only=True)
class SpeculativeConfig:
    """Prompt lookup: tokens that stood behind the last few ones earlier in prompt or answer are drafts, verified in one pass.

    Pays where answers repeat their prompts, such as code edits and quotations. Names follow vLLM.

    Attributes:
        num_speculative_tokens: most drafts of a request in one step.
        prompt_lookup_max, prompt_lookup_min: sizes of the n-grams that are looked up, longest first.
    """

    method: Literal["ngram"] = "ngram"
    num_speculative_tokens: int = 5
    prompt_lookup_max: int = 4
    prompt_lookup_min: int = 2

    def __post_init__(self) -> None:
        if self.method != "ngram":
            raise _speculative(f"method must be 'ngram', not {self.method!r}")
        for name in ("num_speculative_tokens", "prompt_lookup_max", "prompt_lookup_min"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_SPECULATION:
                raise _speculative(f"{name} must be an integer from 1 to {_MAX_SPECULATION}, not {value!r}")
        if self.prompt_lookup_min > self.prompt_lookup_max:
            raise _speculative("prompt_lookup_min must not be above prompt_lookup_max")

    @staticmethod
    def of(settings: Mapping[str, Any]) -> SpeculativeConfig:
        """From settings as users write them.

        Raises:
            InvalidRequest: a setting is unknown or out of range.
        """
        unknown = sorted(set(settings) - {field.name for field in fields(SpeculativeConfig)})
        if unknown:
            raise _speculative(f"unknown setting {unknown[0]!r}")
        return SpeculativeConfig(**settings)


def _speculative(message: str) -> InvalidRequest:
    return InvalidRequest(f"speculative_config: {message}", param="speculative_config")


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """Settings of an engine. Names follow vLLM; None means "settle it for this model and device".

    Attributes:
        model: alias, folder, file or Hugging Face id.
        dtype: of weights and activations; "auto" is what suits the device.
        quantization: "int8" multiplies with 8-bit weights on a CPU: faster, in a quarter of the memory, with slightly other
            results; "none" computes with the weights as they are. None is "int8" for weights that are stored in 8 bits or fewer, unless
            `dtype` names a type.
        fuse: replace the modules of known architectures by lean ones on a CPU. Results differ by rounding only.
        max_model_len: most tokens of prompt and answer together.
        max_num_seqs: most requests that run at the same time (64, on a CPU 32).
        max_num_batched_tokens: most tokens computed in one step (2048, on a CPU 512); longer prompts are computed
            in chunks beside the answers that are already running.
        block_size: tokens per block of the KV cache.
        kv_cache_memory_bytes: size of the KV cache.
        gpu_memory_utilization: share of a GPU's memory that the engine may use altogether.
        enable_prefix_caching: keep the KV blocks of finished requests and share them by equal prefixes.
        async_scheduling: launch a step before text, stop strings and masks of the last one are made; None does on a GPU. On a CPU the host
            has no time to itself, and answers only come a step later.
        resident_masks: keep masks and transitions of grammars beside the logits (`fsm_cache.mask_pool`), so that only places that were
            not met before are looked up. None does on a GPU. On a CPU it saves copying a row, which is 2 us.
        draft_from_grammar: draft what a grammar forces, and what came at the same place of earlier answers to it. Answers are the same
            as without, in fewer steps.
        speculative: draft by prompt lookup; None does not.
        max_waiting: requests that may wait; the next one is refused with `EngineOverloaded`.
        seed: base of the seeds of requests that bring none. None takes one from the operating system.
        device: a torch device; None takes a GPU when there is one.
    """

    model: str = ""
    dtype: DType = "auto"
    quantization: Quantization | None = None
    fuse: bool = True
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int = 16
    kv_cache_memory_bytes: int | None = None
    gpu_memory_utilization: float = 0.9
    enable_prefix_caching: bool = True
    async_scheduling: bool | None = None
    resident_masks: bool | None = None
    draft_from_grammar: bool = True
    speculative: SpeculativeConfig | None = None
    max_waiting: int = 1024
    seed: int | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES:
            raise InvalidRequest(f"dtype must be one of {', '.join(_DTYPES)}, not {self.dtype!r}", param="dtype")
        if self.quantization not in _QUANTIZATIONS:
            raise InvalidRequest(f"quantization must be 'int8' or 'none', not {self.quantization!r}", param="quantization")
        if self.quantization == "int8" and not self.fuse:
            raise InvalidRequest("quantization needs fused layers: fuse must not be off", param="quantization")
        for name in ("max_model_len", "max_num_seqs", "max_num_batched_tokens", "kv_cache_memory_bytes", "block_size", "max_waiting"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidRequest(f"{name} must be at least 1, not {value}", param=name)
        if not 0 < self.gpu_memory_utilization <= 1:
            message = f"gpu_memory_utilization must be in (0, 1], not {self.gpu_memory_utilization}"
            raise InvalidRequest(message, param="gpu_memory_utilization")


@dataclass(frozen=True, kw_only=True)
class DeviceMemory:
    """Memory of the device once the model is loaded, in bytes."""

    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, kw_only=True)
class EngineLimits:
    """The settled sizes of a running engine: an `EngineConfig` with nothing left open.

    Attributes:
        num_blocks: KV blocks, each of `block_size` tokens over all layers.
    """

    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int
    num_blocks: int
    max_waiting: int
    enable_prefix_caching: bool


def resolve(config: EngineConfig, *, model_max_len: int, block_bytes: int, on_gpu: bool, memory: DeviceMemory) -> EngineLimits:
    """Settle every size of an engine.

    Args:
        model_max_len: longest context the model was made for, in tokens.
        block_bytes: bytes of one KV block over all layers.
        on_gpu: whether the device is a GPU.
        memory: of that device, with the model already loaded.

    Raises:
        InvalidRequest: the settings contradict each other or do not fit into memory.
    """
    if config.max_model_len is not None and config.max_model_len > model_max_len:
        message = f"max_model_len ({config.max_model_len}) is beyond the model's context of {model_max_len}"
        raise InvalidRequest(message, param="max_model_len")
    max_model_len = config.max_model_len or model_max_len
    max_num_seqs = config.max_num_seqs or (64 if on_gpu else 32)
    max_num_batched_tokens = config.max_num_batched_tokens or max(2048 if on_gpu else 512, max_num_seqs)
    if max_num_batched_tokens < max_num_seqs:
        raise InvalidRequest(
            f"max_num_batched_tokens ({max_num_batched_tokens}) is below max_num_seqs ({max_num_seqs})", param="max_num_batched_tokens"
        )
    num_blocks = _num_blocks(config, max_model_len, max_num_seqs, block_bytes, on_gpu, memory)
    if num_blocks * config.block_size < max_model_len:
        if config.max_model_len is not None or num_blocks == 0:
            message = f"the KV cache holds {num_blocks * config.block_size} tokens, fewer than max_model_len ({max_model_len})"
            raise InvalidRequest(message, param="max_model_len")
        max_model_len = num_blocks * config.block_size
    return EngineLimits(
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        block_size=config.block_size,
        num_blocks=num_blocks,
        max_waiting=config.max_waiting,
        enable_prefix_caching=config.enable_prefix_caching,
    )


def _num_blocks(config: EngineConfig, max_model_len: int, max_num_seqs: int, block_bytes: int, on_gpu: bool, memory: DeviceMemory) -> int:
    if config.kv_cache_memory_bytes is not None:
        return config.kv_cache_memory_bytes // block_bytes
    if on_gpu:
        used_bytes = memory.total_bytes - memory.free_bytes
        return max(0, int(memory.total_bytes * config.gpu_memory_utilization) - used_bytes) // block_bytes
    enough = max_num_seqs * -(-max_model_len // config.block_size)
    return min(enough, int(memory.free_bytes * _CPU_KV_SHARE) // block_bytes)
