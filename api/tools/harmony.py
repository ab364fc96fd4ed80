"""The harmony format of gpt-oss: an answer is messages, each in a channel of its own.

`analysis` holds thoughts, `commentary` calls and what is said before them, `final` the answer. A call names its recipient before or
after its channel (https://cookbook.openai.com/articles/openai-harmony).
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import TYPE_CHECKING

from ...grammar.structural_tag import AnyText, Node, Optional, Or, Repeat, Sequence, Tag, Text, Token, TriggeredTags
from ...grammar.structural_tag.spec import Boundary, joined
from .format import FramedFormat, any_of, arguments_of, group, in_order, repeated, spelled
from .labels import ARGUMENTS, GROUP, HEADED_CALL, MESSAGE
from .tool import Tool, ToolChoice

if TYPE_CHECKING:
    from ..answers.reasoning import Thought

START, END, CHANNEL, CONSTRAIN, BODY, CALL = (
    Token(token=f"<|{name}|>") for name in ("start", "end", "channel", "constrain", "message", "call")
)
ANALYSIS = (CHANNEL, "analysis", BODY)
NEXT = (END, START, "assistant")  # between two messages of one answer
_AFTER_CALL = (CALL, START, "assistant")


class Harmony(FramedFormat):
    """`<|channel|>commentary to=functions.name <|constrain|>json<|message|>{...}<|call|>`."""

    name = "harmony"
    separator = spelled(_AFTER_CALL)
    reasoning = "openai_gptoss"
    content_begin = (CHANNEL, "final", BODY)

    def call(self, tool: Tool) -> Tag:
        return self._call(tool, _KINDS)

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        named_after = group(any_of([self.call(tool) for tool in tools]), begin=(CHANNEL, "commentary to=functions."))
        kinds = tuple(joined(CHANNEL, "commentary", kind) for kind in _KINDS)
        named_before = group(any_of([self._call(tool, kinds) for tool in tools]), begin=" to=functions.")
        one = Or(elements=(named_after, named_before))
        return group(in_order(repeated(one, _AFTER_CALL) if parallel else one, Optional(content=CALL)))

    def answer(
        self, tools: Items[Tool], choice: ToolChoice, final: Node | None, thought: Thought | None, *, content_is_open: bool = False
    ) -> Node:
        content = AnyText() if final is None else final
        if content_is_open:
            return content
        last: Node = in_order(_HEADER, content)
        if tools:
            calls = self.chosen(tools, choice)
            last = calls if choice.must_call else Or(elements=(calls, last))
        says_more = bool(tools) and not choice.must_call and final is None
        return Sequence(elements=(*_before(thought, says_more=says_more), last))

    def written(self, name: str, arguments: str) -> str:
        return f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}"

    def _call(self, tool: Tool, kinds: tuple[Boundary, ...]) -> Tag:
        """A call whose name is followed by one of `kinds`."""
        header = Tag(name=GROUP, begin="", content=Text(value=""), end=kinds)
        arguments = Tag(name=ARGUMENTS, begin="", content=arguments_of(tool), end=("",))
        return Tag(name=HEADED_CALL + tool.name, begin=tool.name, content=in_order(header, arguments), end=("",))


# What a message says of its content, up to where that begins.
_KINDS: tuple[Boundary, ...] = (BODY, (" ", CONSTRAIN, "json", BODY), (CONSTRAIN, "json", BODY), (" json", BODY))
_HEADER = Tag(name=MESSAGE, begin=(CHANNEL, "final"), content=Text(value=""), end=_KINDS)
_PREAMBLE = in_order(
    Tag(name=MESSAGE, begin=(CHANNEL, "commentary", BODY), content=Text(value=""), end=("",)),
    TriggeredTags(
        triggers=(NEXT,),
        tags=(Tag(name=GROUP, begin=NEXT, content=Text(value=""), end=("",)),),
        at_least_one=True,
        stop_after_first=True,
    ),
)


def _before(thought: Thought | None, *, says_more: bool) -> list[Node]:
    """Messages before the last one. A thought with a budget is one message."""
    preamble = (_PREAMBLE,) if says_more else ()
    if thought is None or thought.max_tokens == 0:
        opened = [thought.tag()] if thought is not None and thought.is_open else []
        return [*opened, *map(_any_number_of, preamble)]
    tag = thought.tag()
    first: list[Node] = [tag] if thought.is_open else []
    if thought.max_tokens is not None:
        return [*(first or [Optional(content=tag)]), *map(_any_number_of, preamble)]
    return [*first, _any_number_of(any_of([thought.as_begun_by_model().tag(), *preamble]))]


def _any_number_of(node: Node) -> Node:
    return Repeat(content=node)
