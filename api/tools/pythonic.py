"""Calls as Python writes them: `[get_weather(city="Rome", days=3)]`. Values are JSON; `True`, `False` and `None` are understood where
they are all of an argument.

Each argument is a tag of its own, in the order of the schema; see `grammar.structural_tag.parameters`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Any

from ...grammar.structural_tag import JsonSchema, Node, Or, Tag, Token
from ...grammar.structural_tag.spec import Boundary
from .format import SectionFormat, ToolFormat, WholeAnswerFormat, group, repeated
from .labels import NAMED_CALL
from .tool import Tool, ToolError

Json = Any


class _PythonicCall(ToolFormat):
    def call(self, tool: Tool) -> Tag:
        if not tool.name.isidentifier():
            raise ToolError(f"the format {self.name!r} needs a name that Python takes, not {tool.name!r}", field=f"{tool.field}.name")
        return Tag(
            name=NAMED_CALL + tool.name, begin=f"{tool.name}(", content=JsonSchema(json_schema=_schema_of(tool), style="python"), end=(")",)
        )

    def bare(self, name: str, arguments: str) -> str:
        values = json.loads(arguments)
        return f"{name}({', '.join(f'{key}={_value(value)}' for key, value in values.items())})"


class Pythonic(_PythonicCall, WholeAnswerFormat):
    """Calls in square brackets, which are the whole answer: Llama 3.2."""

    name = "pythonic"
    separator = ", "

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        one = self.one_of(tools)
        return group(repeated(one, self.separator) if parallel else one, begin="[", end="]")

    def written(self, name: str, arguments: str) -> str:
        return self.written_calls([(name, arguments)])

    def written_calls(self, calls: Items[tuple[str, str]]) -> str:
        return f"[{', '.join(self.bare(name, arguments) for name, arguments in calls)}]"

    def beginnings(self, tools: Items[Tool]) -> list[str]:
        return [f"[{name}(" for name in sorted({tool.name for tool in tools})]


class Llama4Pythonic(Pythonic):
    """The same, maybe between `<|python_start|>` and `<|python_end|>`: Llama 4."""

    name = "llama4_pythonic"
    _START, _END = "<|python_start|>", "<|python_end|>"

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        plain = super().calls(tools, parallel=parallel)
        return Or(elements=(group(plain, begin=Token(token=self._START), end=Token(token=self._END)), plain))

    def beginnings(self, tools: Items[Tool]) -> list[str]:
        return [*super().beginnings(tools), self._START]


@dataclass(frozen=True, kw_only=True)
class PythonicSection(_PythonicCall, SectionFormat):
    """Calls in a section: OLMo 3, LFM 2."""

    name: str
    begin: Boundary
    end: Boundary
    opening: str = ""
    closing: str = ""
    separator: str = ", "


def _schema_of(tool: Tool) -> Mapping[str, Json]:
    """What the arguments obey: of a tool that is not strict the names."""
    if tool.strict or not tool.parameters:
        return tool.schema
    declared = tool.parameters.get("properties")
    loose = dict.fromkeys(declared, True) if isinstance(declared, Mapping) else {}
    return {"type": "object", "properties": loose, "required": [name for name in tool.parameters.get("required") or () if name in loose]}


def _value(value: Json) -> str:
    return repr(value) if value is None or isinstance(value, bool) else json.dumps(value, ensure_ascii=False)
