"""Formats in which the name of a tool stands before the JSON text of its arguments, with special tokens around both."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass

from ...grammar.structural_tag import Node, Regex, Sequence, Tag, Text, Token
from .format import SectionFormat, TriggeredFormat, arguments_of, group, spelled
from .labels import ARGUMENTS, CALL, CALL_ID, HEADED_CALL, IDENTIFIED_CALL
from .tool import Tool


def _arguments(tool: Tool, begin: Token) -> Tag:
    return Tag(name=ARGUMENTS, begin=begin, content=arguments_of(tool), end=("",))


_TOOL_CALLS = Token(token="[TOOL_CALLS]")


@dataclass(frozen=True, kw_only=True)
class MistralCalls(TriggeredFormat):
    """`[TOOL_CALLS]name[ARGS]{...}`: Mistral from tokenizer v11 on.

    Attributes:
        with_id: `[CALL_ID]` and an id of nine characters stand after the name, as in v11.
    """

    name: str
    with_id: bool
    separator: str = ""
    trigger: Token = _TOOL_CALLS

    def call(self, tool: Tool) -> Tag:
        arguments = _arguments(tool, Token(token="[ARGS]"))
        call_id = Tag(name=CALL_ID, begin="", content=Regex(pattern="[a-zA-Z0-9]{9}"), end=("",))
        content = Sequence(elements=(Token(token="[CALL_ID]"), call_id, arguments)) if self.with_id else arguments
        return Tag(name=HEADED_CALL + tool.name, begin=tool.name, content=content, end=("",))

    def one_of(self, tools: Items[Tool]) -> Tag:
        return group(super().one_of(tools), begin=self.trigger)

    def tags(self, tools: Items[Tool]) -> tuple[Tag, ...]:
        return (self.one_of(tools),)

    def written(self, name: str, arguments: str) -> str:
        call_id = "[CALL_ID]000000000" if self.with_id else ""
        return f"[TOOL_CALLS]{name}{call_id}[ARGS]{arguments}"


class _TokenSection(SectionFormat):
    """Calls between two special tokens each.

    Attributes:
        call_begin, call_end: the tokens.
    """

    call_begin: Token
    call_end: Token

    def one_of(self, tools: Items[Tool]) -> Node:
        return group(self.inside(super().one_of(tools)), begin=self.call_begin, end=self.call_end)

    def inside(self, call: Node) -> Node:
        """What stands between the tokens."""
        return call


_DEEPSEEK = {
    name: Token(token=f"<\uff5ctool\u2581{name}\uff5c>")
    for name in ("calls\u2581begin", "call\u2581begin", "sep", "call\u2581end", "calls\u2581end")
}
_CALLS_BEGIN, _CALL_BEGIN, _SEP, _CALL_END, _CALLS_END = _DEEPSEEK.values()


class DeepSeekV3(_TokenSection):
    """`function`, a separator, the name, and the arguments in a fenced block: DeepSeek V3 and R1."""

    name = "deepseek_v3"
    begin, end = _CALLS_BEGIN, _CALLS_END
    call_begin, call_end = _CALL_BEGIN, _CALL_END

    def inside(self, call: Node) -> Node:
        return Sequence(elements=(Text(value="function"), group(call, begin=_SEP)))

    def call(self, tool: Tool) -> Tag:
        begin, end = f"{tool.name}\n```json\n", "\n```"
        return Tag(name=CALL + tool.name, begin=begin, content=arguments_of(tool), end=(end,))

    def bare(self, name: str, arguments: str) -> str:
        return f"{spelled(_CALL_BEGIN)}function{spelled(_SEP)}{name}\n```json\n{arguments}\n```{spelled(_CALL_END)}"


class DeepSeekV31(_TokenSection):
    """The name, a separator, and the arguments: DeepSeek V3.1."""

    name = "deepseek_v31"
    begin, end = _CALLS_BEGIN, _CALLS_END
    call_begin, call_end = _CALL_BEGIN, _CALL_END
    separator = ""

    def call(self, tool: Tool) -> Tag:
        return Tag(name=HEADED_CALL + tool.name, begin=tool.name, content=_arguments(tool, _SEP), end=("",))

    def bare(self, name: str, arguments: str) -> str:
        return f"{spelled(_CALL_BEGIN)}{name}{spelled(_SEP)}{arguments}{spelled(_CALL_END)}"


class KimiK2(_TokenSection):
    """`functions.name:0`, which is the id of the call, and the arguments: Kimi K2."""

    name = "kimi_k2"
    begin, end = Token(token="<|tool_calls_section_begin|>"), Token(token="<|tool_calls_section_end|>")
    call_begin, call_end = Token(token="<|tool_call_begin|>"), Token(token="<|tool_call_end|>")
    separator = ""
    _ARGUMENTS = Token(token="<|tool_call_argument_begin|>")

    def call(self, tool: Tool) -> Tag:
        number = Regex(pattern="0|[1-9][0-9]{0,4}")
        content = Sequence(elements=(number, _arguments(tool, self._ARGUMENTS)))
        return Tag(name=IDENTIFIED_CALL + tool.name, begin=f"functions.{tool.name}:", content=content, end=("",))

    def written_calls(self, calls: Items[tuple[str, str]]) -> str:
        numbered = [(f"functions.{name}:{number}", arguments) for number, (name, arguments) in enumerate(calls)]
        return super().written_calls(numbered)

    def bare(self, name: str, arguments: str) -> str:
        return f"{spelled(self.call_begin)}{name}{spelled(self._ARGUMENTS)}{arguments}{spelled(self.call_end)}"
