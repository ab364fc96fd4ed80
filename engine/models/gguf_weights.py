"""A transformers module with the weights of a GGUF file.

The file's tensors are checked against the module's parameters by name and shape before any of them is unpacked.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from ..errors import UnsupportedModel
from .gguf_architectures import Architecture, architecture_of
from .gguf_file import GgufFile, GgufTensor
from .gguf_quants import dequantize
from .quiet import one_line, without_progress_bars

_ROPE_FACTORS = "rope_freqs.weight"


def build_config(file: GgufFile) -> Any:
    """The transformers configuration a GGUF file describes.

    Raises:
        UnsupportedModel: the architecture is not supported, or the values contradict each other.
    """
    if file.get("split.count", int, 1) > 1:
        raise UnsupportedModel(f"{file.path} is one part of a model that is split over several files")
    architecture = architecture_of(file)
    arguments = architecture.config(file)
    try:
        return AutoConfig.for_model(architecture.model_type, **arguments)
    except Exception as error:  # each configuration class checks its values in its own way
        raise UnsupportedModel(f"{file.path} describes an impossible model: {one_line(error)}") from error


def build_module(file: GgufFile, config: Any, *, dtype: torch.dtype, attn_implementation: str) -> PreTrainedModel:
    """The module of `config` holding the file's weights in `dtype`, on the CPU, in eval mode, without gradients.

    Raises:
        UnsupportedModel: the file's tensors are not exactly those of the architecture, or of a type that cannot be read.
    """
    architecture = architecture_of(file)
    sources = _match(file, architecture, _parameter_shapes(config))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        weights = {name: _read(file, tensor, architecture, config, dtype, pool) for name, tensor in sources.items()}
    model_class = type(_meta_module(config))
    with without_progress_bars():
        module = model_class.from_pretrained(None, config=config, state_dict=weights, dtype=dtype, attn_implementation=attn_implementation)
    if _ROPE_FACTORS in file.tensors:
        _scale_rotary(module, file)
    return module.eval().requires_grad_(False)


def _meta_module(config: Any) -> PreTrainedModel:
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def _parameter_shapes(config: Any) -> dict[str, tuple[int, ...]]:
    """Parameters by name, tied ones once."""
    return {name: tuple(parameter.shape) for name, parameter in _meta_module(config).named_parameters()}


def _match(file: GgufFile, architecture: Architecture, shapes: dict[str, tuple[int, ...]]) -> dict[str, GgufTensor]:
    """The tensor of each parameter."""
    sources: dict[str, GgufTensor] = {}
    for tensor in file.tensors.values():
        if tensor.name == _ROPE_FACTORS:
            continue
        name = architecture.parameter_name(tensor.name)
        if name not in shapes:
            raise UnsupportedModel(f"{file.path}: tensor {tensor.name!r} has no place in a {file.architecture} model")
        if tensor.shape != shapes[name]:
            raise UnsupportedModel(f"{file.path}: tensor {tensor.name!r} has shape {tensor.shape}, expected {shapes[name]}")
        sources[name] = tensor
    missing = sorted(shapes.keys() - sources.keys())
    if missing:
        raise UnsupportedModel(f"{file.path} lacks {len(missing)} tensors, the first for {missing[0]}")
    return sources


def _read(
    file: GgufFile, tensor: GgufTensor, architecture: Architecture, config: Any, dtype: torch.dtype, pool: ThreadPoolExecutor
) -> torch.Tensor:
    values = _values(file, tensor, pool)
    transform = architecture.transform(tensor.name)
    if transform is not None:
        values = transform(values, config)
    return torch.from_numpy(values).to(dtype)


def _values(file: GgufFile, tensor: GgufTensor, pool: ThreadPoolExecutor | None = None) -> np.ndarray:
    values = np.empty(tensor.shape, np.float32)
    dequantize(file.raw(tensor), tensor.type, values, pool)
    return values


def _scale_rotary(module: PreTrainedModel, file: GgufFile) -> None:
    """Divide the rotary frequencies by the factors of the file, which is how GGUF stores Llama 3's long-context scaling."""
    factors = torch.from_numpy(_values(file, file.tensors[_ROPE_FACTORS]))
    buffers = [buffer for name, buffer in module.named_buffers() if name.endswith("inv_freq")]
    if not buffers or any(buffer.shape != factors.shape for buffer in buffers):
        raise UnsupportedModel(f"{file.path}: the rotary factors do not fit the architecture {file.architecture}")
    for buffer in buffers:
        buffer.div_(factors)
