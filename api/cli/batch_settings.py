"""What decides the answers of a batch besides its lines, as digests: a run that was cut goes on only as it began."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..constraints import Constraint
from ..runtime import RuntimeOptions
from .asker import Manner

Settings = Mapping[str, str]
"""Name of an aspect, as messages call it -> its digest."""


def settings_of(options: RuntimeOptions, manner: Manner, constraint: Constraint | None) -> Settings:
    """The digests of one command line.

    A model that lies in files of the user's own is known by their names, sizes and times: reading weights would take too long.
    """
    how = asdict(manner)
    aspects = {
        "model": [options.model, _own_files(options.model), options.dtype, options.quantization, options.max_model_len],
        "constraint": None if constraint is None else [constraint.grammar.key, constraint.parse is not None],
        "sampling": how.pop("params"),
        "prompt": how,
    }
    return {name: digest(json.dumps(value, sort_keys=True).encode(), length=8) for name, value in aspects.items()}


def digest(data: bytes, *, length: int) -> str:
    """`length` hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:length]


def _own_files(model: str) -> list[Any]:
    path = Path(model).expanduser()
    files = sorted(path.iterdir()) if path.is_dir() else [path] if path.is_file() else []
    return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
