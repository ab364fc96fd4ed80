"""The format of Cohere's Command models: thought, calls and content between tokens of their own."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...grammar.structural_tag import AnyText, Node, Or, Regex, Tag, Token
from ...grammar.structural_tag.spec import Boundary
from .format import FramedFormat, SectionFormat, arguments_of, group, in_order
from .labels import CALL, CONTENT
from .tool import Tool, ToolChoice

if TYPE_CHECKING:
    from ..answers.reasoning import Thought


_BEGIN, _END = Token(token="<|START_ACTION|>"), Token(token="<|END_ACTION|>")


@dataclass(frozen=True, kw_only=True)
class Cohere(FramedFormat, SectionFormat):
    """An array of `{"tool_call_id": "0", "tool_name": ..., "parameters": ...}`, or the content."""

    name: str
    content_begin: Boundary
    content_end: Boundary
    reasoning: str = "cohere_command3"
    begin: Boundary = _BEGIN
    end: Boundary = _END
    opening: str = "[\n    "
    separator: str = ",\n    "
    closing: str = "\n]"

    def call(self, tool: Tool) -> Tag:
        return Tag(name=CALL + tool.name, begin=f'{tool.name}", "parameters": ', content=arguments_of(tool), end=("}",))

    def one_of(self, tools: Items[Tool]) -> Node:
        numbered = in_order(Regex(pattern="0|[1-9][0-9]{0,4}"), '", "tool_name": "', super().one_of(tools))
        return group(numbered, begin='{"tool_call_id": "')

    def answer(
        self, tools: Items[Tool], choice: ToolChoice, final: Node | None, thought: Thought | None, *, content_is_open: bool = False
    ) -> Node:
        begin = "" if content_is_open else self.content_begin
        content = AnyText() if final is None else final
        block: Node = Tag(name=CONTENT, begin=begin, content=content, end=(self.content_end,))
        if content_is_open:
            return block
        if tools:
            calls = self.chosen(tools, choice)
            block = calls if choice.must_call else Or(elements=(calls, block))
        if thought is None:
            return block
        thinking = in_order(thought.tag(), block)
        return thinking if thought.is_open else Or(elements=(thinking, block))

    def free(self, tools: Items[Tool], *, parallel: bool, but: Items[str] = ()) -> Node:
        return FramedFormat.free(self, tools, parallel=parallel, but=but)

    def bare(self, name: str, arguments: str) -> str:
        return f'{{"tool_call_id": "0", "tool_name": "{name}", "parameters": {arguments}}}'
