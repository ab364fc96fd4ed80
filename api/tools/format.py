"""What a format of tool calls is: the tree of an answer, and how calls are written where a chat template knows none.

Names in a tree tell what a tag is: `call:<tool>` for one whose content is the JSON text of the arguments; `named call:<tool>` for one
with a tag `argument:<name>` for each argument; and `group` for what stands around calls.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence as Items
from typing import Any, ClassVar

from ...grammar.structural_tag import JsonSchema, Node, Or, Regex, Repeat, Sequence, Tag, Text, Token, TriggeredTags
from ...grammar.structural_tag.spec import Boundary
from .tool import Tool, ToolChoice

Json = Any

CALL = "call:"
NAMED_CALL = "named call:"
ARGUMENT = "argument:"
GROUP = "group"


class ToolFormat(ABC):
    """One way to write calls.

    Attributes:
        name: what `--tool-call-format` calls it.
        separator: between several calls.
    """

    name: ClassVar[str]
    separator: ClassVar[str] = "\n"

    @abstractmethod
    def call(self, tool: Tool) -> Tag:
        """The tag of a call, with its name as above."""

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
        if choice.name is not None:
            return self.calls([tool for tool in tools if tool.name == choice.name], parallel=False)
        if choice.mode == "required":
            return self.calls(tools, parallel=choice.parallel)
        if final is not None:
            return Or(elements=(self.calls(tools, parallel=choice.parallel), final))
        return self.free(tools, parallel=choice.parallel, but=but)

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        """An answer that is one call or, if `parallel`, several."""
        one = any_of([self.call(tool) for tool in tools])
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

    trigger: ClassVar[Boundary]

    def free(self, tools: Items[Tool], *, parallel: bool, but: Items[str] = ()) -> Node:
        tags = tuple(self.call(tool) for tool in tools)
        return TriggeredTags(triggers=(self.trigger,), tags=tags, stop_after_first=not parallel, excludes=tokens_or_text(but))


class WholeAnswerFormat(ToolFormat):
    """Calls are the whole answer."""

    @abstractmethod
    def beginnings(self, tools: Items[Tool]) -> list[str]:
        """What only a call begins with."""

    def free(self, tools: Items[Tool], *, parallel: bool, but: Items[str] = ()) -> Node:
        return Or(elements=(self.calls(tools, parallel=parallel), text_unless([*self.beginnings(tools), *but])))


def any_of(tags: Items[Node]) -> Node:
    return tags[0] if len(tags) == 1 else Or(elements=tuple(tags))


def repeated(node: Node, separator: str) -> Node:
    """A node once or more, with the separator between."""
    more = Repeat(content=Sequence(elements=(Text(value=separator), node)) if separator else node)
    return Sequence(elements=(node, more))


def group(content: Node, begin: Boundary = "", end: str = "") -> Tag:
    """Text around calls that is no part of the answer."""
    return Tag(begin=begin, content=content, end=(end,), name=GROUP)


def text_unless(beginnings: list[str]) -> Node:
    """Free text that begins with none of some texts."""
    return Regex(pattern=f"(?!{'|'.join(map(escaped, beginnings))})[^]*")


def tokens_or_text(texts: Items[str]) -> tuple[Token, ...]:
    """Texts as boundaries: special tokens where the vocabulary has such names."""
    return tuple(Token(token=text) for text in texts)


def escaped(text: str) -> str:
    """A text as a regular expression (ECMA-262 with the flag `u`)."""
    return re.sub(r"[\^$\\.*+?()\[\]{}|/]", r"\\\g<0>", text)


def arguments_of(tool: Tool) -> Node:
    """The arguments of a call as one JSON text."""
    return JsonSchema(json_schema=tool.schema)
