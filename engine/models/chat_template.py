"""Chat templates: messages to prompt text, by the Jinja template a model ships with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import Template, TemplateError

from ..errors import ChatTemplateError
from .template_budget import Budget, TemplateLimits, count_chars, reset_budget, set_budget
from .template_environment import ChatEnvironment

Message = Mapping[str, Any]

# What a template's own code can raise in a sandbox: its mistakes are the template's, not ours.
_TEMPLATE_FAULTS = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)


class ChatTemplate:
    """A compiled chat template.

    Templates see the names transformers gives them: `messages`, `tools`, `documents`, `add_generation_prompt`,
    `bos_token`, `eos_token`, the functions `raise_exception` and `strftime_now`, and the filter `tojson`. Rendering is
    sandboxed and bounded, does not change its arguments, and is safe from several threads.

    The text usually starts with the begin-of-text token, so encode it without adding special tokens again.

    Raises:
        ChatTemplateError: the source is not a valid template, or too long.
    """

    def __init__(self, source: str, bos: str | None = None, eos: str | None = None, *, limits: TemplateLimits | None = None):
        self.source = source
        self.bos = bos
        self.eos = eos
        self._limits = limits or TemplateLimits()
        if len(source) > self._limits.max_source_chars:
            raise ChatTemplateError(f"the chat template has {len(source)} characters; at most {self._limits.max_source_chars} are allowed")
        self._template = _compile(source)

    def render(
        self,
        messages: Sequence[Message],
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """The prompt of a conversation.

        Args:
            messages: the conversation, oldest first, as JSON-like values.
            add_generation_prompt: end with what introduces the assistant's answer.
            tools: JSON schemas of the callable tools.
            variables: further names for the template, for example `enable_thinking`.

        Raises:
            ChatTemplateError: the template refused the messages, failed, or exceeded its budget.
        """
        names = {
            "documents": None,
            "bos_token": self.bos or "",
            "eos_token": self.eos or "",
            **variables,
            "messages": list(messages),
            "tools": list(tools) if tools is not None else None,
            "add_generation_prompt": add_generation_prompt,
        }
        token = set_budget(Budget(self._limits, count_chars([names["messages"], names["tools"], variables])))
        try:
            return self._template.render(names)
        except _TEMPLATE_FAULTS as error:
            raise ChatTemplateError(f"the chat template failed: {_one_line(error)}") from error
        finally:
            reset_budget(token)

    def __repr__(self) -> str:
        return f"ChatTemplate({len(self.source)} characters)"


@lru_cache(maxsize=1)
def _environment() -> ChatEnvironment:
    return ChatEnvironment()


def _compile(source: str) -> Template:
    try:
        return _environment().compile_chat_template(source)
    except _TEMPLATE_FAULTS as error:
        raise ChatTemplateError(f"the chat template is malformed: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
