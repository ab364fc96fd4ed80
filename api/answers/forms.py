"""The form of one answer: the constraint of its whole text, and who reads it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...engine.request import InvalidRequest
from ...grammar import json_text
from ...grammar.errors import GrammarError
from ...grammar.grammar import Grammar
from ...grammar.structural_tag import AnyText, JsonSchema, Node, Or, Tag, to_json
from ...grammar.structural_tag import Sequence as InOrder
from ...grammar.structural_tag.grammar import TagGrammar
from ...grammar.structural_tag.parser import Vocabulary
from ...grammar.structural_tag.part_of import part_of
from ...grammar.structural_tag.spec import walk
from ..constraints import Constraint
from ..jobs import Job
from ..tools.format import FramedFormat, ToolFormat, spelled, text_unless
from ..tools.labels import CONTENT
from ..tools.tool import Tool, ToolChoice, ToolError
from .reader import AnswerReader
from .reasoning import Thought, ThoughtMeter, gap

_MAX_KEPT = 128  # grammars kept for requests that ask for the same


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a request asks of an answer.

    Attributes:
        tools: that may be called.
        choice: not "none" if there are tools.
        constraint: of the content.
    """

    tools: Sequence[Tool] = ()
    choice: ToolChoice = field(default_factory=ToolChoice)
    constraint: Constraint | None = None

    @property
    def is_free(self) -> bool:
        """Whether the content is free text."""
        return self.constraint is None and (not self.tools or (self.choice.mode == "auto" and self.choice.name is None))


@dataclass(frozen=True, kw_only=True)
class AnswerForm:
    """Attributes:
    constraint: of the whole text.
    content: constraint of the content, where it is not the whole text.
    make_reader: makes a reader of one answer; None where the text is the content.
    make_meter: makes a meter of the thought of one answer; None where there is none.
    needs_tokens: readers read tokens and not the text.
    """

    constraint: Constraint | None = None
    content: Constraint | None = None
    make_reader: Callable[[], AnswerReader] | None = None
    make_meter: Callable[[], ThoughtMeter] | None = None
    needs_tokens: bool = False

    def job(self, **more: Any) -> Job:
        """A job with answers of this form; the arguments are those of `Job`."""
        own = {"constraint": self.constraint, "content": self.content, "make_reader": self.make_reader, "make_meter": self.make_meter}
        return Job(**own, **more)


class AnswerForms:
    """Makes the forms of requests to one model. Requests that ask for the same share what was compiled. Thread-safe.

    Args:
        tool_format: how the model writes calls.
        vocabulary: of the model; None where answers are read as text only.
        token_bytes: token id -> its bytes; needed where models think.
    """

    def __init__(self, tool_format: ToolFormat, vocabulary: Vocabulary | None = None, *, token_bytes: Callable[[int], bytes] | None = None):
        self._tool_format = tool_format
        self._vocabulary = vocabulary
        self._token_bytes = token_bytes
        self._grammars: OrderedDict[str, TagGrammar] = OrderedDict()
        self._lock = threading.Lock()

    def form(self, asked: Asked, thought: Thought | None = None, *, content_is_open: bool = False) -> AnswerForm:
        """The form of an answer.

        Args:
            thought: what the answer may begin with.
            content_is_open: the prompt has begun the content, for formats that set it off.

        Raises:
            ToolError: a tool that is malformed, or that the format or the grammar cannot do.
            InvalidRequest: the constraint cannot follow a thought.
        """
        framed = self._tool_format if isinstance(self._tool_format, FramedFormat) else None
        if framed is None and not asked.tools and thought is None:
            return AnswerForm(constraint=asked.constraint)
        check_names(asked.tools, asked.choice)
        if framed is None:
            tree = self._tree(asked, thought)
        else:
            if content_is_open and asked.choice.must_call:
                raise ToolError("the prompt has begun the content already, so no call can come", field=asked.choice.field)
            tree = framed.answer(asked.tools, asked.choice, self._final(asked), thought, content_is_open=content_is_open)
        grammar = self._grammar(tree, asked)
        trims = asked.is_free or isinstance(_part(asked), JsonSchema)  # outer white space says nothing in JSON
        needs_tokens = grammar.parser(self._vocabulary).needs_tokens
        field = "tools" if asked.tools else "thinking_token_budget" if asked.constraint is None else asked.constraint.field
        # A thought alone needs no constraint: whatever comes can be read, if it can be read as text.
        has_budget = thought is not None and thought.max_tokens is not None
        is_bound = bool(framed or asked.tools) or not asked.is_free or needs_tokens or has_budget
        return AnswerForm(
            constraint=Constraint(grammar=grammar, field=field) if is_bound else None,
            content=asked.constraint,
            make_reader=lambda: AnswerReader(grammar.parser(self._vocabulary), trims=trims),
            make_meter=self._meter_of(thought),
            needs_tokens=needs_tokens,
        )

    def _meter_of(self, thought: Thought | None) -> Callable[[], ThoughtMeter] | None:
        token_bytes = self._token_bytes
        if thought is None or token_bytes is None:
            return None
        return lambda: ThoughtMeter(thought, token_bytes)

    def _tree(self, asked: Asked, thought: Thought | None) -> Node:
        """The tree of the whole text. A text that begins like a thought is one, so that a reader knows at once what it reads."""
        if thought is None:
            return self._rest(asked)
        if not asked.is_free:
            thinking = InOrder(elements=(thought.tag(), gap(), self._rest(asked)))
        else:
            thinking = InOrder(elements=(thought.tag(), self._rest(asked)))
        return thinking if thought.is_open else Or(elements=(thinking, self._rest(asked, unless=spelled(thought.format.begin))))

    def _rest(self, asked: Asked, unless: str | None = None) -> Node:
        """What comes after the thought, or instead of one: then it does not begin with the text `unless` where it is free."""
        but = () if unless is None else (unless,)
        final = self._final(asked)
        if asked.tools:
            return self._tool_format.tree(asked.tools, asked.choice, final, but=but)
        if final is not None:
            return final
        return text_unless(list(but)) if but else AnyText()

    def _final(self, asked: Asked) -> Node | None:
        """What the content has to be; None for free text."""
        if asked.constraint is None:
            return None
        if asked.tools:
            part = _part(asked)
        else:
            try:
                part = part_of(asked.constraint.grammar)
            except GrammarError as error:
                raise _after_thought(asked.constraint, error) from error
        if part is None or not any(isinstance(node, Tag) or (isinstance(node, JsonSchema) and node.style != "json") for node in walk(part)):
            return part
        return Tag(name=CONTENT, begin="", content=part, end=("",))  # so that no tag of it is taken for a call

    def _grammar(self, tree: Node, asked: Asked) -> TagGrammar:
        text = json_text.dumps(to_json(tree))
        with self._lock:
            grammar = self._grammars.get(text)
            if grammar is not None:
                self._grammars.move_to_end(text)
                return grammar
        try:
            grammar = Grammar.structural_tag(text)
        except GrammarError as error:
            if asked.constraint is not None and not asked.tools:
                raise _after_thought(asked.constraint, error) from error
            self._blame(asked.tools)
            raise ToolError(f"the tools cannot be enforced: {error}", field="tools") from error
        with self._lock:
            self._grammars[text] = grammar
            while len(self._grammars) > _MAX_KEPT:
                self._grammars.popitem(last=False)
        return grammar

    def _blame(self, tools: Sequence[Tool]) -> None:
        """Refuses the first of some tools that cannot be enforced alone."""
        for tool in tools:
            try:
                if tool.strict and tool.parameters:
                    Grammar.json_schema(dict(tool.schema))
                Grammar.structural_tag(self._tool_format.calls([tool], parallel=False))
            except GrammarError as error:
                what = f"the parameters of {tool.name!r} cannot be enforced: {error}"
                if tool.strict:
                    what += "; with 'strict': false the arguments are any JSON object"
                raise ToolError(what, field=f"{tool.field}.parameters") from error


def _after_thought(constraint: Constraint, error: GrammarError) -> InvalidRequest:
    return InvalidRequest(f"'{constraint.field}' cannot be enforced after a thought: {error}", param=constraint.field)


def _part(asked: Asked) -> Node | None:
    if asked.constraint is None:
        return None
    try:
        return part_of(asked.constraint.grammar)
    except GrammarError as error:
        field = asked.constraint.field
        raise ToolError(f"'{field}' does not go with 'tools': {error}", field=field) from None


def check_names(tools: Sequence[Tool], choice: ToolChoice) -> None:
    """Refuses tools that share a name, and the choice of a tool that is none of them.

    Raises:
        ToolError: with the field.
    """
    names: set[str] = set()
    for tool in tools:
        if tool.name in names:
            raise ToolError(f"there are two tools of the name {tool.name!r}", field=f"{tool.field}.name")
        names.add(tool.name)
    if choice.name is not None and choice.name not in names:
        raise ToolError(f"there is no tool of the name {choice.name[:80]!r} to choose", field=choice.field)
