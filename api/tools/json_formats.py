"""Formats in which a call is a JSON object with a name and arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence as Items
from typing import ClassVar

from ...grammar.structural_tag import Node, Or, Sequence, Tag, Text, Token, TriggeredTags
from .format import CALL, ToolFormat, TriggeredFormat, WholeAnswerFormat, any_of, arguments_of, group, repeated, tokens_or_text
from .tool import Tool


class Hermes(TriggeredFormat):
    """`<tool_call>` around `{"name": ..., "arguments": ...}`: Hermes, Qwen 2.5 and 3."""

    name = "hermes"
    trigger = "<tool_call>"

    def call(self, tool: Tool) -> Tag:
        begin = f'<tool_call>\n{{"name": {json.dumps(tool.name)}, "arguments": '
        return Tag(name=CALL + tool.name, begin=begin, content=arguments_of(tool), end=("}\n</tool_call>",))

    def written(self, name: str, arguments: str) -> str:
        return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {arguments}}}\n</tool_call>'


class FunctionTag(TriggeredFormat):
    """`<function=name>` around the arguments: Llama 3.1 custom functions, and others."""

    name = "function"
    trigger = "<function="

    def call(self, tool: Tool) -> Tag:
        return Tag(name=CALL + tool.name, begin=f"<function={tool.name}>", content=arguments_of(tool), end=("</function>",))

    def written(self, name: str, arguments: str) -> str:
        return f"<function={name}>{arguments}</function>"


class _Object(WholeAnswerFormat):
    """`{"name": ..., <key>: ...}`."""

    key: ClassVar[str]

    def call(self, tool: Tool) -> Tag:
        begin = f'{{"name": {json.dumps(tool.name)}, "{self.key}": '
        return Tag(name=CALL + tool.name, begin=begin, content=arguments_of(tool), end=("}",))

    def written(self, name: str, arguments: str) -> str:
        return f'{{"name": {json.dumps(name)}, "{self.key}": {arguments}}}'

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
    """`{"name": ..., "arguments": ...}`, several as a JSON array: for models without a format of their own."""

    name = "json"
    key = "arguments"

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        one = super().calls(tools, parallel=False)
        if not parallel:
            return one
        several = repeated(any_of([self.call(tool) for tool in tools]), ", ")
        return Or(elements=(one, group(several, begin="[", end="]")))

    def written_calls(self, calls: Items[tuple[str, str]]) -> str:
        written = [self.written(name, arguments) for name, arguments in calls]
        return written[0] if len(written) == 1 else f"[{', '.join(written)}]"

    def beginnings(self, tools: Items[Tool]) -> list[str]:
        objects = super().beginnings(tools)
        return [*objects, *("[" + beginning for beginning in objects)]


class Mistral(ToolFormat):
    """`[TOOL_CALLS]` and a JSON array of calls: Mistral and Mixtral before tokenizer v11."""

    name = "mistral"
    separator = ", "
    _TRIGGER = Token(token="[TOOL_CALLS]")

    def call(self, tool: Tool) -> Tag:
        begin = f'{{"name": {json.dumps(tool.name)}, "arguments": '
        return Tag(name=CALL + tool.name, begin=begin, content=arguments_of(tool), end=("}",))

    def written(self, name: str, arguments: str) -> str:
        return f"[TOOL_CALLS][{self._object(name, arguments)}]"

    def written_calls(self, calls: Items[tuple[str, str]]) -> str:
        return f"[TOOL_CALLS][{', '.join(self._object(name, arguments) for name, arguments in calls)}]"

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Tag:
        inner = super().calls(tools, parallel=parallel)
        return group(Sequence(elements=(Text(value="["), inner, Text(value="]"))), begin=self._TRIGGER)

    def free(self, tools: Items[Tool], *, parallel: bool, but: Items[str] = ()) -> Node:
        tag = self.calls(tools, parallel=parallel)
        return TriggeredTags(triggers=(self._TRIGGER,), tags=(tag,), stop_after_first=True, excludes=tokens_or_text(but))

    @staticmethod
    def _object(name: str, arguments: str) -> str:
        return f'{{"name": {json.dumps(name)}, "arguments": {arguments}}}'
