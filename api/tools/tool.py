"""Tools that a model may call.

ToolError       (a ValueError) a tool or a choice that is malformed; `field` says where
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Json = Any
Mode = Literal["none", "auto", "required"]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
NO_PARAMETERS: Mapping[str, Json] = {"type": "object", "properties": {}, "additionalProperties": False}


class ToolError(ValueError):
    """A tool, or a choice of one, that cannot be served.

    Attributes:
        field: where, as in the request: `tools[0].function.name`.
    """

    def __init__(self, message: str, *, field: str):
        self.field = field
        super().__init__(message)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function.

    Attributes:
        parameters: JSON Schema of its arguments; None for a function without any.
        strict: the arguments obey the schema, else they are any JSON object.
        field: where the request defines it; errors name it.
    """

    name: str
    description: str | None = None
    parameters: Mapping[str, Json] | None = None
    strict: bool = False
    field: str = "tools"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ToolError(
                f"a tool's name has 1 to 64 letters, digits, '_', '.' or '-', not {self.name[:80]!r}", field=f"{self.field}.name"
            )

    @property
    def schema(self) -> Mapping[str, Json]:
        """What its arguments obey."""
        if not self.parameters:
            return NO_PARAMETERS
        if not self.strict:
            return {"type": "object"}
        return {"type": "object", **self.parameters}

    def to_json(self) -> dict[str, Json]:
        """As chat templates read it."""
        function: dict[str, Json] = {"name": self.name, "description": self.description or ""}
        function["parameters"] = dict(self.parameters or NO_PARAMETERS)
        return {"type": "function", "function": function}


@dataclass(frozen=True, kw_only=True)
class ToolChoice:
    """What a model may do with its tools.

    Attributes:
        mode: "none": no call; "auto": calls or an answer; "required": at least one call.
        name: the only tool that may be called, exactly once.
        parallel: several calls in one answer are allowed.
        field: where the request says so.
    """

    mode: Mode = "auto"
    name: str | None = None
    parallel: bool = True
    field: str = "tool_choice"

    @property
    def must_call(self) -> bool:
        """Whether an answer has to be a call."""
        return self.name is not None or self.mode == "required"
