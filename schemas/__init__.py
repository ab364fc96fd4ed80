"""Ready-made JSON Schemas, by name.

Each lies beside this file as `<name>.json` (draft 2020-12) and keeps to bounded strings and lists, so that an answer
of a small model ends. The command line takes them as `--json-schema formcast:<name>`.
"""

from __future__ import annotations

import difflib
import json
from importlib import resources
from typing import Any

from ..grammar.errors import FormcastError

__all__ = ["UnknownSchema", "load", "names"]

_SUFFIX = ".json"


class UnknownSchema(FormcastError, KeyError):
    """No schema of that name is shipped.

    Attributes:
        name: what was asked for.
        near: shipped names that look like it, best first.
    """

    def __init__(self, name: str, *, near: tuple[str, ...] = ()):
        self.name = name
        self.near = near
        super().__init__(self._message())

    def __str__(self) -> str:  # KeyError would show the message quoted
        return self._message()

    def _message(self) -> str:
        hint = f"did you mean {' or '.join(self.near)}?" if self.near else f"there are {', '.join(names())}"
        return f"no schema is named {self.name!r}; {hint}"


def names() -> tuple[str, ...]:
    """The names of all shipped schemas, sorted."""
    files = (entry.name for entry in resources.files(__name__).iterdir())
    return tuple(sorted(file.removesuffix(_SUFFIX) for file in files if file.endswith(_SUFFIX)))


def load(name: str) -> dict[str, Any]:
    """The schema of that name, a fresh copy that the caller may change. Raises `UnknownSchema`."""
    known = names()
    if name not in known:
        raise UnknownSchema(name, near=tuple(difflib.get_close_matches(name, known, n=3)))
    return json.loads(resources.files(__name__).joinpath(name + _SUFFIX).read_text(encoding="utf-8"))
