"""The files of a model on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import UnsupportedModel


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """Where a model is.

    Attributes:
        name: the name it was asked for, or of its file or folder.
        path: the `.gguf` file, or the folder in Hugging Face's layout.
        gguf: the `.gguf` file, None for a folder of safetensors.
    """

    name: str
    path: Path
    gguf: Path | None

    @property
    def num_bytes(self) -> int:
        """Size on disk."""
        files = [self.path] if self.path.is_file() else [file for file in self.path.rglob("*") if file.is_file()]
        return sum(file.stat().st_size for file in files)


def find_model_files(path: Path, *, name: str | None = None) -> ModelFiles:
    """The model at a path: a GGUF file, a folder with safetensors, or a folder with exactly one GGUF file.

    Raises:
        UnsupportedModel: the folder holds no model, or several.
    """
    if path.is_file():
        return ModelFiles(name=name or path.stem, path=path, gguf=path)
    label = name or path.resolve().name
    if (path / "config.json").is_file() and next(path.glob("*.safetensors"), None) is not None:
        return ModelFiles(name=label, path=path, gguf=None)
    candidates = sorted(path.glob("*.gguf"))
    if len(candidates) == 1:
        return ModelFiles(name=label, path=candidates[0], gguf=candidates[0])
    if candidates:
        names = ", ".join(candidate.name for candidate in candidates)
        raise UnsupportedModel(f"{path} holds several models, name one of {names}")
    raise UnsupportedModel(f"{path} holds neither safetensors with a config.json nor a GGUF file")
