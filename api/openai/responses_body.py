"""Request body of `/v1/responses`. Nothing is kept between requests: each brings its whole conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, WithJsonSchema

from .errors import bad_request, not_supported
from .protocol import StreamOptions, StructuredOutputs, Unsupported, check_metadata, check_sizes
from .responses_tools import ChoiceBody, FunctionTool
from .strict import StrictModel

_INPUT: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}, "minItems": 1}]}
LOGPROBS = "message.output_text.logprobs"


class TextFormat(StrictModel):
    """`text.format`: OpenAI's three types, and the same for the other constraints."""

    type: Literal["text", "json_object", "json_schema", "grammar", "regex", "choice"]
    name: str | None = None
    description: str | None = None
    schema_: Any = Field(default=None, alias="schema")
    strict: bool | None = None
    grammar: str | None = None
    regex: str | None = None
    choice: list[str] | None = None


class TextOptions(StrictModel):
    only: ClassVar[Mapping[str, Any]] = {"verbosity": "medium"}

    format: TextFormat | None = None
    verbosity: Unsupported = None


class Reasoning(StrictModel):
    """`reasoning`. Thoughts are shown as they are, so there is no summary of them."""

    only: ClassVar[Mapping[str, Any]] = {"summary": "auto", "generate_summary": "auto"}

    effort: str | None = None
    summary: Unsupported = None
    generate_summary: Unsupported = None


class ResponsesBody(StrictModel):
    hints: ClassVar[Mapping[str, str]] = {
        "max_tokens": "here it is 'max_output_tokens'",
        "max_completion_tokens": "here it is 'max_output_tokens'",
        "messages": "they go to /v1/chat/completions; here they are 'input'",
        "response_format": "here it is 'text.format'",
        "reasoning_effort": "here it is 'reasoning.effort'",
        "use_beam_search": "beam search is at /v1/chat/completions and /v1/completions",
    }
    only: ClassVar[Mapping[str, Any]] = {
        "background": False,
        "context_management": None,
        "conversation": None,
        "max_tool_calls": None,
        "moderation": None,
        "previous_response_id": None,
        "prompt": None,
        "prompt_cache_options": None,
        "prompt_cache_retention": "in_memory",
        "truncation": "disabled",
    }

    model: str | None = None
    input: Annotated[Any, WithJsonSchema(_INPUT)] = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = None
    include: list[str] | None = None
    text: TextOptions | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None
    parallel_tool_calls: bool | None = None
    tool_choice: ChoiceBody | None = None
    tools: list[FunctionTool] | None = None
    reasoning: Reasoning | None = None

    # Parameters of vLLM.
    seed: int | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    min_tokens: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool | None = None
    skip_special_tokens: bool | None = None
    logit_bias: dict[str, float] | None = None
    priority: int | None = None
    cache_salt: str | None = None
    thinking_token_budget: int | None = None
    structured_outputs: StructuredOutputs | None = None

    background: Unsupported = None
    context_management: Unsupported = None
    conversation: Unsupported = None
    max_tool_calls: Unsupported = None
    moderation: Unsupported = None
    previous_response_id: Unsupported = None
    prompt: Unsupported = None
    prompt_cache_options: Unsupported = None
    prompt_cache_retention: Unsupported = None
    truncation: Unsupported = None

    @property
    def num_logprobs(self) -> int | None:
        """How many alternatives of each token are asked for; None if no log-probabilities are."""
        if self.top_logprobs is None and LOGPROBS not in (self.include or ()):
            return None
        return self.top_logprobs or 0

    def refuse_unsupported(self) -> None:
        """Raise for what this endpoint knows by name and cannot do."""
        check_sizes(self)
        check_metadata(self.metadata)
        for field in ("previous_response_id", "conversation"):
            if getattr(self, field) is not None:
                message = f"'{field}': answers are never kept here, send the whole conversation as 'input'"
                raise bad_request(message, param=field, code="unsupported_parameter")
        if self.store:
            raise bad_request("'store': true: answers are never kept here", param="store", code="unsupported_parameter")
        if self.service_tier not in (None, "auto", "default"):
            raise not_supported("'service_tier' other than 'auto' or 'default'", param="service_tier")
        if self.stream_options is not None and not self.stream:
            raise bad_request("'stream_options' is only allowed with 'stream': true", param="stream_options")
        if self.stream_options is not None:
            self.stream_options.refuse_others("stream_options.")
        if self.text is not None:
            self.text.refuse_others("text.")
        if self.reasoning is not None:
            self.reasoning.refuse_others("reasoning.")
        self.refuse_others()
        for kind in self.include or ():
            if kind not in (LOGPROBS, "reasoning.encrypted_content"):
                raise not_supported(f"'{kind[:64]}'", param="include")
