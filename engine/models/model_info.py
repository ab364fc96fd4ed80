"""What can be said about a model without loading its weights."""

from __future__ import annotations

import json
import struct
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from gguf.constants import LlamaFileType

from ..errors import UnsupportedModel
from .gguf_file import GgufFile
from .model_files import ModelFiles

_MAX_HEADER_BYTES = 100 << 20
_ROPE_FACTORS = "rope_freqs.weight"


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """Facts about a model; None where its files do not tell.

    Attributes:
        architecture: as the files name it, for example `llama`.
        num_parameters: weights, tied ones once.
        context_length: longest sequence in tokens.
        num_bytes: size on disk.
        quantisation: how the weights are stored, for example `Q4_K_M` or `BF16`.
        licence: SPDX identifier, or the name of the terms.
        path: the file or folder.
    """

    name: str
    architecture: str | None
    num_parameters: int | None
    context_length: int | None
    num_bytes: int
    quantisation: str | None
    licence: str | None
    path: Path


def read_model_info(files: ModelFiles, *, licence: str | None = None) -> ModelInfo:
    """Facts about a model, from the headers of its files; `licence` where they do not state one.

    Raises:
        UnsupportedModel: the files are malformed.
    """
    return _gguf_info(files, licence) if files.gguf is not None else _folder_info(files, licence)


def _gguf_info(files: ModelFiles, licence: str | None) -> ModelInfo:
    file = GgufFile(files.path)
    return ModelInfo(
        name=files.name,
        architecture=file.architecture,
        num_parameters=sum(tensor.num_elements for tensor in file.tensors.values() if tensor.name != _ROPE_FACTORS),
        context_length=file.get(f"{file.architecture}.context_length", int),
        num_bytes=files.num_bytes,
        quantisation=_gguf_quantisation(file),
        licence=file.get("general.license", str) or licence,
        path=files.path,
    )


def _gguf_quantisation(file: GgufFile) -> str | None:
    """The file's declared type, or the type that most of its values have."""
    code = file.get("general.file_type", int)
    if code in set(LlamaFileType):
        return LlamaFileType(code).name.removeprefix("MOSTLY_").removeprefix("ALL_")
    return _most_common(_weights_by_type(file))


def _weights_by_type(file: GgufFile) -> Counter[str]:
    counts: Counter[str] = Counter()
    for tensor in file.tensors.values():
        counts[tensor.type.name] += tensor.num_elements
    return counts


def _most_common(counts: Counter[str]) -> str | None:
    return max(counts, key=lambda name: counts[name]) if counts else None


def _folder_info(files: ModelFiles, licence: str | None) -> ModelInfo:
    config = _read_config(files.path)
    text_config = config.get("text_config")
    length = (text_config if isinstance(text_config, dict) else config).get("max_position_embeddings")
    model_type = config.get("model_type")
    counts: Counter[str] = Counter()
    for path in files.path.glob("*.safetensors"):
        counts.update(_safetensors_weights(path))
    return ModelInfo(
        name=files.name,
        architecture=model_type if isinstance(model_type, str) else None,
        num_parameters=sum(counts.values()),
        context_length=length if isinstance(length, int) else None,
        num_bytes=files.num_bytes,
        quantisation=_most_common(counts),
        licence=licence,
        path=files.path,
    )


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (ValueError, RecursionError) as error:
        raise UnsupportedModel(f"{folder / 'config.json'} is not valid JSON") from error
    if not isinstance(config, dict):
        raise UnsupportedModel(f"{folder / 'config.json'} is not a JSON object")
    return config


def _safetensors_weights(path: Path) -> Counter[str]:
    """Values by type, from the header: 8 bytes of length, then JSON (https://huggingface.co/docs/safetensors)."""
    counts: Counter[str] = Counter()
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _MAX_HEADER_BYTES:
                raise UnsupportedModel(f"{path} has a header that is too large")
            header = json.loads(file.read(length))
        for name, entry in header.items():
            if name != "__metadata__":
                counts[str(entry["dtype"])] += prod(entry["shape"])
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise UnsupportedModel(f"{path} is not a safetensors file") from error
    return counts
