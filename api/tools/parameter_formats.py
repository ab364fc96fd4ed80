"""Formats in which each argument stands between texts of its own, strings as they are and other values as JSON.

Arguments come in the order of the schema, and only those that it declares; see `grammar.structural_tag.parameters`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...grammar.structural_tag import JsonSchema, Tag
from ...grammar.structural_tag.parameter_styles import STYLES
from ...grammar.structural_tag.spec import Boundary, joined
from .format import SectionFormat, ToolFormat, TriggeredFormat, spelled
from .labels import NAMED_CALL
from .tool import Tool

Json = Any


class _ParameterCall(ToolFormat):
    """Attributes:
    style: of the arguments.
    before: comes before the name of the tool.
    after: comes after the name of the tool.
    last: ends a call.
    """

    style: str
    before: Boundary
    after: str
    last: Boundary

    def call(self, tool: Tool) -> Tag:
        content = JsonSchema(json_schema=_schema_of(tool), style=self.style)
        return Tag(name=NAMED_CALL + tool.name, begin=joined(self.before, tool.name, self.after), content=content, end=(self.last,))

    def bare(self, name: str, arguments: str) -> str:
        style = STYLES[self.style]
        line = "\n" if style.is_padded else ""
        written = ""
        for key, value in json.loads(arguments).items():
            is_text = isinstance(value, str)
            text = value if is_text else json.dumps(value, ensure_ascii=False)
            written += spelled(joined(style.whole_begin(key, is_text=is_text), f"{line}{text}{line}", style.end, "\n"))
        return spelled(joined(self.before, f"{name}{self.after}\n{written}", self.last))

    def written(self, name: str, arguments: str) -> str:
        return self.bare(name, arguments)


@dataclass(frozen=True, kw_only=True)
class ParameterCalls(_ParameterCall, TriggeredFormat):
    """Calls anywhere in free text: Qwen3-Coder, GLM 4.5, Seed-OSS, and others."""

    name: str
    trigger: Boundary
    style: str
    before: Boundary
    after: str
    last: Boundary


@dataclass(frozen=True, kw_only=True)
class ParameterSection(_ParameterCall, SectionFormat):
    """Calls in a section: MiniMax M2, DeepSeek V3.2 and V4, Step 3, Hunyuan 3."""

    name: str
    begin: Boundary
    end: Boundary
    style: str
    before: Boundary
    after: str
    last: Boundary
    separator: str = "\n"

    def written(self, name: str, arguments: str) -> str:
        return SectionFormat.written(self, name, arguments)


def _schema_of(tool: Tool) -> Mapping[str, Json]:
    """What the arguments obey: of a tool that is not strict the names, and which of them are strings."""
    if tool.strict or not tool.parameters:
        return tool.schema
    declared = tool.parameters.get("properties")
    properties = declared if isinstance(declared, Mapping) else {}
    loose = {name: {"type": "string"} if _is_text(schema) else {} for name, schema in properties.items()}
    required = [name for name in tool.parameters.get("required") or () if name in loose]
    return {"type": "object", "properties": loose, "required": required}


def _is_text(schema: Json) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "string"
