"""What Ollama's clients want to know about a model."""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...engine.models.model_info import ModelInfo

_UNKNOWN_TIME = "1970-01-01T00:00:00Z"


def details(info: ModelInfo) -> dict[str, Any]:
    family = info.architecture or ""
    return {
        "parent_model": "",
        "format": "gguf" if info.path.suffix == ".gguf" else "safetensors",
        "family": family,
        "families": [family] if family else [],
        "parameter_size": "" if info.num_parameters is None else f"{info.num_parameters / 1e6:.2f}M",
        "quantization_level": info.quantisation or "",
    }


def card(name: str, info: ModelInfo | None) -> dict[str, Any]:
    """An entry of `/api/tags`. The digest is that of name and size: files are not read through for it."""
    if info is None:
        return {"name": name, "model": name, "modified_at": _UNKNOWN_TIME, "size": 0, "digest": "", "details": {}}
    return {
        "name": name,
        "model": name,
        "modified_at": modified_at(info),
        "size": info.num_bytes,
        "digest": hashlib.sha256(f"{info.name}:{info.num_bytes}".encode()).hexdigest(),
        "details": details(info),
    }


def description(info: ModelInfo | None, template: str, *, thinks: bool) -> dict[str, Any]:
    """The answer of `/api/show`. Any model with a chat template can be told about tools.

    Args:
        thinks: the model thinks before it answers.
    """
    capabilities = ["completion", *(["tools"] if template else []), *(["thinking"] if thinks else [])]
    if info is None:
        return {"template": template, "details": {}, "model_info": {}, "capabilities": capabilities, "modified_at": _UNKNOWN_TIME}
    architecture = info.architecture or "unknown"
    return {
        "license": info.licence or "",
        "modelfile": "",
        "parameters": "",
        "template": template,
        "details": details(info),
        "model_info": {
            "general.architecture": architecture,
            "general.parameter_count": info.num_parameters,
            f"{architecture}.context_length": info.context_length,
        },
        "capabilities": capabilities,
        "modified_at": modified_at(info),
    }


def modified_at(info: ModelInfo) -> str:
    """RFC 3339."""
    return datetime.fromtimestamp(info.path.stat().st_mtime, timezone.utc).isoformat().replace("+00:00", "Z")
