"""What a format of tool calls is: the tree of an answer, and how calls are written where a chat template knows none.

What the tags of a tree are called says what they are, see `labels`.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence as Items
from typing import TYPE_CHECKING, Any

from ...grammar.structural_tag import JsonSchema, Node, Or, Regex, Repeat, Sequence, Tag, Text, Token, TriggeredTags
from ...grammar.structural_tag.spec import Boundary, pieces, reading
from .labels import GROUP
from .tool import Tool, ToolChoice

if TYPE_CHECKING:
    from ..answers.reasoning import Thought

Json = Any


class ToolFormat(ABC):
    """One way to write calls.

    Attributes:
        name: what `--tool-call-format` calls it.
        separator: between several calls.
    """

    name: str
    separator: str = "\n"

    @abstractmethod
    def call(self, tool: Tool) -> Tag:
        """The tag of a call."""

    def one_of(self, tools: Items[Tool]) -> Node:
        """One call of some tools."""
        return any_of([self.call(tool) for tool in tools])

    @abstractmethod
    def written(self, name: str, arguments: str) -> str:
        """A call as the model would have written it.

        Args:
            arguments: JSON text of an object.
        """

    def written_calls(self, calls: Items[tuple[str, str]]) -> str:
        """Several calls of one answer."""
        return self.separator.join(self.written(name, arguments) for name, arguments in calls)

    def instructions(self, tools: Items[Tool]) -> str:
        """What tells a model about its tools if its chat template does not."""
        listed = "\n".join(json.dumps(tool.to_json()["function"], ensure_ascii=False) for tool in tools)
        example = self.written("name_of_the_function", '{"argument": "value"}')
        return (
            f"You can call these functions:\n{listed}\n\n"
            f"To call one, answer with nothing but this, with its name and its arguments as JSON:\n{example}\n"
            "If no function helps, answer in plain words."
        )

    def tree(self, tools: Items[Tool], choice: ToolChoice, final: Node | None = None, *, but: Items[str] = ()) -> Node:
        """The tree of an answer.

        Args:
            tools: at least one.
            choice: not "none".
            final: what an answer without calls has to be; None for free text.
            but: what an answer of free text may not begin with.
        """
        if choice.must_call or final is not None:
            calls = self.chosen(tools, choice)
            return calls if choice.must_call or final is None else Or(elements=(calls, final))
        return self.free(tools, parallel=choice.parallel, but=but)

    def chosen(self, tools: Items[Tool], choice: ToolChoice) -> Node:
        """The calls of an answer that may have some."""
        if choice.name is not None:
            return self.calls([tool for tool in tools if tool.name == choice.name], parallel=False)
        return self.calls(tools, parallel=choice.parallel)

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        """An answer that is one call or, if `parallel`, several."""
        one = self.one_of(tools)
        return group(repeated(one, self.separator) if parallel else one)

    @abstractmethod
    def free(self, tools: Items[Tool], *, parallel: bool, but: Items[str] = ()) -> Node:
        """An answer that is free text, or calls.

        Args:
            but: what it may not begin with. Where calls come after free text, that text holds it nowhere.
        """


class TriggeredFormat(ToolFormat):
    """Calls may stand anywhere in free text.

    Attributes:
        trigger: begins each call.
    """

    trigger: Boundary

    def tags(self, tools: Items[Tool]) -> tuple[Tag, ...]:
        """The tags that the trigger begins."""
        return tuple(self.call(tool) for tool in tools)

    def free(self, tools: Items[Tool], *, parallel: bool, but: Items[str] = ()) -> Node:
        tags = self.tags(tools)
        return TriggeredTags(triggers=(self.trigger,), tags=tags, stop_after_first=not parallel, excludes=tokens_or_text(but))


class SectionFormat(ToolFormat):
    """Calls stand in one section, with which an answer ends; free text may come before it.

    Attributes:
        begin: of the section.
        opening: comes before the first call.
        closing: comes after the last call.
        end: of the section.
    """

    begin: Boundary
    opening: str = ""
    closing: str = ""
    end: Boundary = ""

    @abstractmethod
    def bare(self, name: str, arguments: str) -> str:
        """A call without the section around it, as the model would have written it."""

    def written(self, name: str, arguments: str) -> str:
        return self.written_calls([(name, arguments)])

    def written_calls(self, calls: Items[tuple[str, str]]) -> str:
        bare = self.separator.join(self.bare(name, arguments) for name, arguments in calls)
        return f"{spelled(self.begin)}{self.opening}{bare}{self.closing}{spelled(self.end)}"

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Tag:
        one = self.one_of(tools)
        inside = (Text(value=self.opening), repeated(one, self.separator) if parallel else one, Text(value=self.closing))
        return group(Sequence(elements=inside), begin=self.begin, end=self.end)

    def free(self, tools: Items[Tool], *, parallel: bool, but: Items[str] = ()) -> Node:
        section = self.calls(tools, parallel=parallel)
        return TriggeredTags(triggers=(self.begin,), tags=(section,), stop_after_first=True, excludes=tokens_or_text(but))


class WholeAnswerFormat(ToolFormat):
    """Calls are the whole answer."""

    @abstractmethod
    def beginnings(self, tools: Items[Tool]) -> list[str]:
        """What only a call begins with."""

    def free(self, tools: Items[Tool], *, parallel: bool, but: Items[str] = ()) -> Node:
        return Or(elements=(self.calls(tools, parallel=parallel), text_unless([*self.beginnings(tools), *but])))


class FramedFormat(ToolFormat):
    """The content too stands between texts that belong to the format, whether there are calls or not.

    Attributes:
        reasoning: name of the format of thoughts that goes with it.
        content_begin: what stands before the content; a prompt may end with it.
        content_end: what stands after it.
    """

    reasoning: str
    content_begin: Boundary
    content_end: Boundary = ""

    def written_content(self, content: str) -> str:
        """A content as the model would have written it."""
        return f"{spelled(self.content_begin)}{content}{spelled(self.content_end)}"

    @abstractmethod
    def answer(
        self, tools: Items[Tool], choice: ToolChoice, final: Node | None, thought: Thought | None, *, content_is_open: bool = False
    ) -> Node:
        """The tree of a whole answer.

        Args:
            tools: maybe none.
            final: what the content has to be; None for free text.
            thought: that it may begin with.
            content_is_open: the prompt has begun the content already, so there is nothing else.
        """

    def free(self, tools: Items[Tool], *, parallel: bool, but: Items[str] = ()) -> Node:
        return self.answer(tools, ToolChoice(parallel=parallel), None, None)


def any_of(tags: Items[Node]) -> Node:
    return tags[0] if len(tags) == 1 else Or(elements=tuple(tags))


def repeated(node: Node, separator: Boundary) -> Node:
    """A node once or more, with the separator between."""
    return Sequence(elements=(node, Repeat(content=Sequence(elements=(reading(separator), node)))))


def group(content: Node, begin: Boundary = "", end: Boundary = "") -> Tag:
    """Text around calls that is no part of the answer."""
    return Tag(begin=begin, content=content, end=(end,), name=GROUP)


def text_unless(beginnings: list[str]) -> Node:
    """Free text that begins with none of some texts."""
    return Regex(pattern=f"(?!{'|'.join(map(escaped, beginnings))})[^]*")


def in_order(*parts: Boundary | Node) -> Sequence:
    """Texts, tokens and nodes, one after another."""
    nodes = [part if isinstance(part, Node) else Text(value=part) for given in parts for part in _parts(given)]
    return Sequence(elements=tuple(nodes))


def _parts(given: Boundary | Node) -> tuple[str | Node, ...]:
    return given if isinstance(given, tuple) else (given,)


def tokens_or_text(texts: Items[str]) -> tuple[Token, ...]:
    """Texts as boundaries: special tokens where the vocabulary has such names."""
    return tuple(Token(token=text) for text in texts)


def spelled(boundary: Boundary) -> str:
    """A boundary as text; special tokens by their names."""
    return "".join(str(piece.token) if isinstance(piece, Token) else piece for piece in pieces(boundary))


def escaped(text: str) -> str:
    """A text as a regular expression (ECMA-262 with the flag `u`)."""
    return re.sub(r"[\^$\\.*+?()\[\]{}|/]", r"\\\g<0>", text)


def arguments_of(tool: Tool) -> Node:
    """The arguments of a call as one JSON text."""
    return JsonSchema(json_schema=tool.schema)
