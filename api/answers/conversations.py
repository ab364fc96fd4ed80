"""How one model is told of a conversation and its tools, and what its answer then looks like."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...engine.request import InvalidRequest, SamplingParams
from ..jobs import Job
from ..ports import ChatTemplate
from ..prompts import Prompt, PromptEncoder
from ..runtime import Runtime
from ..tools.format import FramedFormat
from ..tools.formats import format_named, format_of_template, knows_tools
from ..tools.history import Message, for_plain_template, for_template
from ..tools.tool import Tool
from .forms import AnswerForm, AnswerForms, Asked
from .reasoning import ends_with, reasoning_format, thought_after

# Variables with which chat templates switch thinking on and off.
_SWITCHES = ("enable_thinking", "thinking")


class Turn(NamedTuple):
    """The next turn of the assistant: what the model reads, and the form of what it writes."""

    prompt: Prompt
    form: AnswerForm

    def job(self, **more: Any) -> Job:
        """The job of the turn; the arguments are those of `Job`."""
        return self.form.job(prompt=self.prompt, **more)

    def check(self, params: SamplingParams, *, stop_field: str = "stop") -> None:
        """Refuse parameters that leave an answer unreadable: stop texts where it is read as tokens, of which the text says nothing,
        and special tokens in its text.

        Raises:
            InvalidRequest: with `param` the field.
        """
        if params.stop and self.form.needs_tokens:
            what = "stop texts do not go with tools or thoughts of this model, which begin with special tokens"
            raise InvalidRequest(what, param=stop_field)
        if self.form.make_reader is not None and not params.skip_special_tokens:
            what = "'skip_special_tokens': false does not go with tools or thoughts"
            raise InvalidRequest(what, param="skip_special_tokens")


class Conversations:
    """Attributes:
    encoder: of prompts.
    thinks: whether the model thinks before it answers.

    Args:
        tool_call_format: name of the format of calls; None is what the chat template uses.
        reasoning_parser: name of the format of thoughts, "none" for no thoughts; None is what the chat template uses.

    Raises:
        ToolError, InvalidRequest: there is no such format, or the two do not go together.
    """

    def __init__(self, runtime: Runtime, *, tool_call_format: str | None = None, reasoning_parser: str | None = None):
        self.encoder = PromptEncoder(runtime.model)
        self._max_model_len = runtime.max_model_len
        self._source: str = getattr(runtime.model.chat_template, "source", None) or ""
        self._format = format_of_template(self._source) if tool_call_format is None else format_named(tool_call_format, self._source)
        self._reasoning = reasoning_format(reasoning_parser, self._source, self._format)
        self._forms = AnswerForms(self._format, runtime.vocabulary, token_bytes=runtime.token_bytes)

    @property
    def thinks(self) -> bool:
        return self._reasoning is not None

    def turn(
        self,
        messages: Sequence[Message],
        asked: Asked,
        *,
        thinking_token_budget: int | None = None,
        source: str = "messages",
        template: ChatTemplate | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> Turn:
        """The assistant's next turn. `source`, `template` and `variables` are those of `PromptEncoder.of_chat`.

        Args:
            thinking_token_budget: most tokens of a thought.

        Raises:
            InvalidRequest, ChatTemplateError: see `PromptEncoder.of_chat`; also a budget for a model that does not think.
            ToolError: see `AnswerForms.form`.
        """
        if thinking_token_budget is not None and (self._reasoning is None or thinking_token_budget < 0):
            what = "this model does not think" if self._reasoning is None else "must not be negative"
            raise InvalidRequest(f"thinking_token_budget: {what}", param="thinking_token_budget")
        told, shown = self._told(messages, asked.tools)
        prompt = self.encoder.of_chat(told, source=source, template=template, **shown, **variables or {})
        if thinking_token_budget is not None and thinking_token_budget >= self._max_model_len:
            thinking_token_budget = None  # no answer can be that long
        text, thought = prompt.text or "", None
        if self._reasoning is not None:
            thought = thought_after(text, self._reasoning, thinking_token_budget)
        content_is_open = isinstance(self._format, FramedFormat) and ends_with(text, self._format.content_begin)
        return Turn(prompt, self._forms.form(asked, None if content_is_open else thought, content_is_open=content_is_open))

    def switch(self, *, thinking: bool) -> dict[str, Any] | None:
        """Variables that switch thinking on or off; None if the chat template has no switch."""
        found: dict[str, Any] = {name: thinking for name in _SWITCHES if self.template_knows(name)}
        return found if found and self.thinks else None

    def without_thought(self, budget: int | None = None) -> tuple[dict[str, Any], int | None]:
        """How an answer comes without a thought: variables of the chat template, or else a budget of nothing.

        Args:
            budget: of a thought where the template switches thinking off.
        """
        switch = self.switch(thinking=False)
        return ({}, 0) if switch is None else (switch, budget)

    def template_knows(self, variable: str) -> bool:
        """Whether the chat template reads a variable."""
        return re.search(r"\{[%{][^}]*\b" + variable + r"\b", self._source) is not None

    def _told(self, messages: Sequence[Message], tools: Sequence[Tool]) -> tuple[list[Message], dict[str, Any]]:
        """Messages as the template reads them, and its further variables."""
        if not knows_tools(self._source):
            return for_plain_template(messages, tools, self._format), {}
        return for_template(messages, self._source), {"tools": [tool.to_json() for tool in tools]} if tools else {}
