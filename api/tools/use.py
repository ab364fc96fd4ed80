"""The tools of one request: what the answer must look like, and who reads it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...grammar import json_text
from ...grammar.errors import GrammarError
from ...grammar.grammar import Grammar
from ...grammar.structural_tag import Node, to_json
from ...grammar.structural_tag.grammar import TagGrammar
from ...grammar.structural_tag.parser import Vocabulary
from ..constraints import Constraint
from .format import ToolFormat
from .reader import AnswerReader
from .tool import Tool, ToolChoice, ToolError

_MAX_KEPT = 128  # grammars kept for requests with the same tools


@dataclass(frozen=True, kw_only=True)
class ToolUse:
    """Attributes:
    constraint: of the answer.
    reader: makes a reader of one answer.
    """

    constraint: Constraint
    reader: Callable[[], AnswerReader]


class ToolUses:
    """Makes the `ToolUse` of requests. Requests with the same tools share what was compiled. Thread-safe.

    Args:
        vocabulary: of the model; None where answers are read as text only.
    """

    def __init__(self, vocabulary: Vocabulary | None = None):
        self._vocabulary = vocabulary
        self._grammars: OrderedDict[str, TagGrammar] = OrderedDict()
        self._lock = threading.Lock()

    def use(self, tool_format: ToolFormat, tools: Sequence[Tool], choice: ToolChoice, final: Node | None = None) -> ToolUse:
        """The use of some tools.

        Args:
            choice: not "none".
            final: what an answer without calls has to be; None for free text.

        Raises:
            ToolError: a tool that is malformed, or that the format or the grammar cannot do.
        """
        _check(tools, choice)
        grammar = self._grammar(tool_format.tree(tools, choice, final))
        constraint = Constraint(grammar=grammar, field="tools")
        return ToolUse(constraint=constraint, reader=lambda: AnswerReader(grammar.parser(self._vocabulary)))

    def _grammar(self, tree: Node) -> TagGrammar:
        text = json_text.dumps(to_json(tree))
        with self._lock:
            grammar = self._grammars.get(text)
            if grammar is not None:
                self._grammars.move_to_end(text)
                return grammar
        try:
            grammar = Grammar.structural_tag(text)
        except GrammarError as error:
            raise ToolError(f"the tools cannot be enforced: {error}", field="tools") from error
        with self._lock:
            self._grammars[text] = grammar
            while len(self._grammars) > _MAX_KEPT:
                self._grammars.popitem(last=False)
        return grammar


def _check(tools: Sequence[Tool], choice: ToolChoice) -> None:
    names: set[str] = set()
    for tool in tools:
        if tool.name in names:
            raise ToolError(f"there are two tools of the name {tool.name!r}", field=f"{tool.field}.name")
        names.add(tool.name)
        if tool.strict and tool.parameters:
            try:
                Grammar.json_schema(dict(tool.schema))
            except GrammarError as error:
                raise ToolError(f"the parameters of {tool.name!r} cannot be enforced: {error}", field=f"{tool.field}.parameters") from error
    if choice.name is not None and choice.name not in names:
        raise ToolError(f"there is no tool of the name {choice.name[:80]!r} to choose", field="tool_choice")
