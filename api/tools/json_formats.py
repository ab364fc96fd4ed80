"""Formats in which a call is a JSON object with a name and arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence as Items
from dataclasses import dataclass

from ...grammar.structural_tag import Node, Or, Tag, Token
from ...grammar.structural_tag.spec import Boundary, joined
from .format import SectionFormat, ToolFormat, TriggeredFormat, WholeAnswerFormat, any_of, arguments_of, group, repeated, spelled
from .labels import CALL
from .tool import Tool


class JsonCall(ToolFormat):
    """A call is `{"name": ..., "arguments": ...}` between two texts.

    Attributes:
        key: of the arguments.
        before, after: the texts.
    """

    key: str = "arguments"
    before: Boundary = ""
    after: Boundary = ""

    def call(self, tool: Tool) -> Tag:
        return Tag(name=CALL + tool.name, begin=self._begin(tool.name), content=arguments_of(tool), end=(joined("}", self.after),))

    def bare(self, name: str, arguments: str) -> str:
        return spelled(joined(self._begin(name), arguments, "}", self.after))

    def written(self, name: str, arguments: str) -> str:
        return self.bare(name, arguments)

    def _begin(self, name: str) -> Boundary:
        return joined(self.before, f'{{"name": {json.dumps(name)}, "{self.key}": ')


@dataclass(frozen=True, kw_only=True)
class WrappedJson(JsonCall, TriggeredFormat):
    """Objects between two texts, anywhere in free text: `<tool_call>` around each (Hermes, Qwen 2.5 and 3), and its like."""

    name: str
    trigger: Boundary
    before: Boundary
    after: Boundary
    key: str = "arguments"
    separator: str = "\n"


@dataclass(frozen=True, kw_only=True)
class JsonSection(JsonCall, SectionFormat):
    """Objects in a section, most often as an array: Mistral before tokenizer v11, Granite 3, and others."""

    name: str
    begin: Boundary
    opening: str = ""
    closing: str = ""
    end: Boundary = ""
    separator: str = ", "
    key: str = "arguments"

    def written(self, name: str, arguments: str) -> str:
        return SectionFormat.written(self, name, arguments)


class KeyedJson(SectionFormat):
    """Objects of one member, called after the tool, in an array: Apertus."""

    name = "apertus"
    begin, end = Token(token="<|tools_prefix|>"), Token(token="<|tools_suffix|>")
    opening, closing = "[", "]"
    separator = ", "

    def call(self, tool: Tool) -> Tag:
        return Tag(name=CALL + tool.name, begin=f"{{{json.dumps(tool.name)}: ", content=arguments_of(tool), end=("}",))

    def bare(self, name: str, arguments: str) -> str:
        return f"{{{json.dumps(name)}: {arguments}}}"


class FunctionTag(TriggeredFormat):
    """`<function=name>` around the arguments: Llama 3.1 custom functions, and others."""

    name = "function"
    trigger = "<function="

    def call(self, tool: Tool) -> Tag:
        return Tag(name=CALL + tool.name, begin=f"<function={tool.name}>", content=arguments_of(tool), end=("</function>",))

    def written(self, name: str, arguments: str) -> str:
        return f"<function={name}>{arguments}</function>"


class _Object(JsonCall, WholeAnswerFormat):
    """`{"name": ..., <key>: ...}` as the answer."""

    def beginnings(self, tools: Items[Tool]) -> list[str]:
        return ['{"name": "' + name for name in sorted({tool.name for tool in tools})]


class Llama3Json(_Object):
    """`{"name": ..., "parameters": ...}`, maybe after `<|python_tag|>`: Llama 3.1 and later. Several calls are separated by `; `."""

    name = "llama3_json"
    key = "parameters"
    separator = "; "
    _TAG = "<|python_tag|>"

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        plain = super().calls(tools, parallel=parallel)
        return Or(elements=(group(plain, begin=Token(token=self._TAG)), plain))

    def beginnings(self, tools: Items[Tool]) -> list[str]:
        return [*super().beginnings(tools), self._TAG]


class PlainJson(_Object):
    """`{"name": ..., "arguments": ...}`, several as a JSON array: for models without a format of their own, and xLAM."""

    name = "json"

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        one = super().calls(tools, parallel=False)
        several = repeated(any_of([self.call(tool) for tool in tools]), ", ")
        return Or(elements=(one, group(several, begin="[", end="]"))) if parallel else one

    def written_calls(self, calls: Items[tuple[str, str]]) -> str:
        written = [self.written(name, arguments) for name, arguments in calls]
        return written[0] if len(written) == 1 else f"[{', '.join(written)}]"

    def beginnings(self, tools: Items[Tool]) -> list[str]:
        objects = super().beginnings(tools)
        return [*objects, *("[" + beginning for beginning in objects)]
