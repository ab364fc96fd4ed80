"""How one model is told about tools and writes its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...grammar.structural_tag.parser import Vocabulary
from ..ports import ChatTemplate
from .formats import format_named, format_of_template, knows_tools
from .history import Message, for_plain_template, for_template
from .tool import Tool
from .use import ToolUses


class ToolCalls:
    """Attributes:
    format: of the calls.
    uses: makes the constraint and the readers of requests.

    Args:
        template: the model's chat template.
        vocabulary: see `ToolUses`.
        name: of the format; None is what the template uses.

    Raises:
        ToolError: there is no such format.
    """

    def __init__(self, template: ChatTemplate | None, vocabulary: Vocabulary | None, name: str | None):
        source = getattr(template, "source", None)
        self.format = format_of_template(source) if name is None else format_named(name)
        self.uses = ToolUses(vocabulary)
        self._is_told = source is not None and knows_tools(source)

    def for_template(self, messages: Sequence[Message], tools: Sequence[Tool]) -> tuple[list[Message], dict[str, Any]]:
        """Messages as the template reads them, and its further variables."""
        if not self._is_told:
            return for_plain_template(messages, tools, self.format), {}
        return for_template(messages), {"tools": [tool.to_json() for tool in tools]} if tools else {}
