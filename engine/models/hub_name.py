"""Names of models on the Hugging Face hub."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SEGMENT = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?"
_NAME = re.compile(rf"(?P<owner>{_SEGMENT})/(?P<repository>{_SEGMENT})(?::(?P<file>{_SEGMENT}\.gguf))?")


@dataclass(frozen=True, kw_only=True)
class HubName:
    """`owner/repository`, or `owner/repository:file.gguf`.

    Attributes:
        repo_id: `owner/repository`.
        file: one GGUF file of the repository, or None for the model the repository holds.
    """

    repo_id: str
    file: str | None

    @classmethod
    def parse(cls, text: str) -> HubName | None:
        """The name in `text`; None if it is not one. Nothing that could leave a folder is a name."""
        match = _NAME.fullmatch(text)
        if match is None or ".." in text or "--" in text.partition(":")[0]:
            return None
        return cls(repo_id=f"{match['owner']}/{match['repository']}", file=match["file"])

    @property
    def slug(self) -> str:
        """A folder name that no other model has: the hub allows no `--` in names."""
        slug = self.repo_id.replace("/", "--")
        return slug if self.file is None else f"{slug}--{self.file}"

    def __str__(self) -> str:
        return self.repo_id if self.file is None else f"{self.repo_id}:{self.file}"
