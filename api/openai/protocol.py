"""Request bodies of `/v1/chat/completions` and `/v1/completions`.

The fields are OpenAI's, plus those that users of vLLM, SGLang and llama.cpp send. A field of the protocol that is not built yet is
present here as `Unsupported`, so that it is refused by name and never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from .beams import refuse_beside_beams
from .errors import bad_request, not_supported
from .functions import FunctionChoice, refuse_both
from .messages import Message
from .strict import StrictModel
from .tools import FunctionBody, ToolBody, ToolChoiceBody

Unsupported = Any

# OpenAI's limits, and bounds of the same kind for the lists of others.
_MOST = {"n": 128, "stop": 4, "metadata": 16, "logit_bias": 1024, "stop_token_ids": 1024}
_METADATA_KEY_CHARS = 64
_METADATA_VALUE_CHARS = 512


def _as_list(value: Any) -> Any:
    if not isinstance(value, (str, list)):
        raise PydanticCustomError("form", "must be a text or a list of texts")
    return [value] if isinstance(value, str) else value


_A_STRING_OR_SEVERAL: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
Strings = Annotated[list[str], BeforeValidator(_as_list), WithJsonSchema(_A_STRING_OR_SEVERAL)]
_TOKEN_IDS: dict[str, Any] = {"type": "array", "items": {"type": "integer"}, "minItems": 1}
_PROMPT: dict[str, Any] = {
    "anyOf": [
        {"type": "string"},
        _TOKEN_IDS,
        {"type": "array", "items": {"anyOf": [{"type": "string"}, _TOKEN_IDS]}, "minItems": 1},
    ]
}


class JsonSchemaFormat(StrictModel):
    """`response_format.json_schema`. A schema is always enforced exactly; `strict` asks for one that keeps OpenAI's rules."""

    name: str | None = None
    description: str | None = None
    schema_: Any = Field(default=None, alias="schema")
    strict: bool | None = None

    hints: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("type", "properties", "$ref", "anyOf", "title", "$defs"), "the schema itself belongs into 'json_schema.schema'"
    )


class ResponseFormat(StrictModel):
    """OpenAI's `response_format`, and the same for the other constraints: `{"type": "regex", "regex": ...}`. `schema` is where
    llama.cpp's clients put it, beside type `json_object` too."""

    type: Literal["text", "json_object", "json_schema", "grammar", "regex", "choice", "structural_tag"]
    json_schema: JsonSchemaFormat | None = None
    schema_: Any = Field(default=None, alias="schema")
    grammar: str | None = None
    regex: str | None = None
    choice: list[str] | None = None

    hints: ClassVar[Mapping[str, str]] = {"pattern": "a pattern is given as 'regex'", "strict": "'strict' belongs into 'json_schema'"}

    # of a structural tag: xgrammar's form, and the older one
    format: dict[str, Any] | None = None
    structures: list[dict[str, Any]] | None = None
    triggers: list[str] | None = None


class StructuredOutputs(StrictModel):
    """vLLM's `structured_outputs`, and `property_order` as in `Grammar.json_schema`."""

    json_: Any = Field(default=None, alias="json")
    regex: str | None = None
    choice: list[str] | None = None
    json_object: bool | None = None
    whitespace_pattern: str | None = None
    disable_any_whitespace: bool | None = None
    property_order: Literal["schema", "any"] | None = None
    grammar: str | None = None
    structural_tag: str | dict[str, Any] | None = None


class StreamOptions(StrictModel):
    only: ClassVar[Mapping[str, Any]] = {"include_obfuscation": False, "continuous_usage_stats": False}

    include_usage: bool | None = None
    include_obfuscation: bool | None = None
    continuous_usage_stats: bool | None = None


_ELSEWHERE = {
    "structural_tag": "write 'structured_outputs': {\"structural_tag\": ...}",
    "extra_body": "that is an argument of a Python client; its fields stand in the body themselves",
    "guided_decoding_backend": "leave it out, there is one engine for all constraints",
    "guided_json_object": 'write \'response_format\': {"type": "json_object"}',
    "guided_options_request": "leave it out, its fields stand in the body themselves",
    "max_output_tokens": "here it is 'max_tokens'",
    "num_predict": "here it is 'max_tokens'",
    "n_predict": "here it is 'max_tokens'",
    "num_beams": "write 'use_beam_search': true and the width as 'beam_width'",
    "early_stopping": "leave it out: a beam search ends once no beam can become better than the answers",
    "input": "that goes to /v1/responses",
    "options": "they go to Ollama's /api/chat; here its members stand in the body themselves",
    "repeat_penalty": "here it is 'repetition_penalty'",
    "format": "that goes to Ollama's /api/chat; here it is 'response_format'",
}


class GenerationBody(StrictModel):
    """What both endpoints share."""

    hints: ClassVar[Mapping[str, str]] = _ELSEWHERE | {
        "prompt": "that goes to /v1/completions; here it is 'messages'",
        "best_of": "'n' answers are made, and all of them come",
    }

    only: ClassVar[Mapping[str, Any]] = {
        "add_special_tokens": True,
        "allowed_token_ids": None,
        "bad_words": [],
        "prompt_logprobs": None,
        "return_token_ids": False,
        "return_tokens_as_token_ids": False,
        "spaces_between_special_tokens": True,
        "truncate_prompt_tokens": None,
    }

    model: str | None = None
    max_tokens: int | None = None
    n: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: Strings | None = None
    stop_token_ids: list[int] | None = None
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    include_stop_str_in_output: bool | None = None
    skip_special_tokens: bool | None = None
    priority: int | None = None
    cache_salt: str | None = None
    thinking_token_budget: int | None = None

    # vLLM's, and `beam_width` where it is to be wider than `n`.
    use_beam_search: bool | None = None
    beam_width: int | None = None
    length_penalty: float | None = None

    # Further parameters of vLLM. They are understood, and refused unless they ask for what happens anyway.
    add_special_tokens: bool | None = None
    allowed_token_ids: Unsupported = None
    bad_words: Unsupported = None
    prompt_logprobs: Unsupported = None
    return_token_ids: Unsupported = None
    return_tokens_as_token_ids: Unsupported = None
    spaces_between_special_tokens: Unsupported = None
    truncate_prompt_tokens: Unsupported = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: Any = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_whitespace_pattern: str | None = None
    guided_grammar: str | None = None

    # Top-level spellings of llama.cpp (`grammar`, in GBNF) and of SGLang (the others).
    grammar: str | None = None
    ebnf: str | None = None
    regex: str | None = None
    json_schema: Any = None

    user: str | None = None
    metadata: dict[str, str] | None = None

    def refuse_unsupported(self) -> None:
        """Raise for what this endpoint knows by name and cannot do."""
        check_sizes(self)
        check_metadata(self.metadata)
        if self.stream_options is not None and not self.stream:
            raise bad_request("'stream_options' is only allowed with 'stream': true", param="stream_options")
        if self.stream_options is not None:
            self.stream_options.refuse_others("stream_options.")
        self.refuse_others()
        refuse_beside_beams(self)
        if self.cache_salt == "":
            raise bad_request("'cache_salt' must not be empty", param="cache_salt")
        if self.priority is not None and abs(self.priority) >= 1 << 31:
            raise bad_request("'priority' must fit into 32 bits", param="priority")


class ChatCompletionBody(GenerationBody):
    only: ClassVar[Mapping[str, Any]] = {
        **GenerationBody.only,
        "add_special_tokens": False,
        "audio": None,
        "continue_final_message": False,
        "documents": None,
        "echo": False,
        "mm_processor_kwargs": None,
        "moderation": None,
        "prediction": None,
        "verbosity": None,
        "web_search_options": None,
    }

    messages: list[Message] = Field(min_length=1, max_length=10_000)
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: Unsupported = None
    documents: Unsupported = None
    echo: Unsupported = None
    mm_processor_kwargs: Unsupported = None

    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    parallel_tool_calls: bool | None = None
    modalities: list[str] | None = None
    tool_choice: ToolChoiceBody | None = None
    tools: list[ToolBody] | None = None
    functions: list[FunctionBody] | None = None
    function_call: FunctionChoice | None = None
    audio: Unsupported = None
    prediction: Unsupported = None
    reasoning_effort: str | None = None
    include_reasoning: bool | None = None
    verbosity: Unsupported = None
    web_search_options: Unsupported = None
    moderation: Unsupported = None

    def refuse_unsupported(self) -> None:
        super().refuse_unsupported()
        refuse_both(self)
        if self.store:
            raise bad_request("'store': true: answers are never kept here", param="store", code="unsupported_parameter")
        if self.service_tier not in (None, "auto", "default"):
            message = f"service_tier: there is one tier here ('auto' or 'default'), no '{self.service_tier[:64]}'"
            raise bad_request(message, param="service_tier", code="unsupported_parameter")
        if self.modalities not in (None, ["text"]):
            raise not_supported("a modality other than text", param="modalities")
        if self.top_logprobs is not None and not self.logprobs:
            raise bad_request("'top_logprobs' needs 'logprobs': true", param="top_logprobs")

    @property
    def uses_functions(self) -> bool:
        """Whether tools are given in the older form."""
        return self.functions is not None or self.function_call is not None

    @property
    def token_budget(self) -> tuple[str, int | None]:
        """The field that bounds the answer, and its value. `max_completion_tokens` is the newer name of `max_tokens`."""
        old, new = self.max_tokens, self.max_completion_tokens
        if old is not None and new is not None and old != new:
            raise bad_request(
                f"'max_tokens' ({old}) and 'max_completion_tokens' ({new}) mean the same and differ", param="max_completion_tokens"
            )
        return ("max_tokens", old) if new is None else ("max_completion_tokens", new)


class CompletionBody(GenerationBody):
    hints: ClassVar[Mapping[str, str]] = _ELSEWHERE | {"messages": "they go to /v1/chat/completions; here it is 'prompt'"}

    only: ClassVar[Mapping[str, Any]] = {**GenerationBody.only, "suffix": None, "thinking_token_budget": None}

    prompt: Annotated[Any, WithJsonSchema(_PROMPT)] = None
    echo: bool | None = None
    logprobs: int | None = None
    best_of: int | None = None
    suffix: Unsupported = None

    def refuse_unsupported(self) -> None:
        super().refuse_unsupported()
        if self.best_of is not None and self.best_of != (self.n or 1):
            raise not_supported("'best_of' other than 'n'", param="best_of")
        if self.echo and self.logprobs is not None:
            raise not_supported("'echo': true with 'logprobs'", param="echo")

    @property
    def token_budget(self) -> tuple[str, int | None]:
        return "max_tokens", self.max_tokens

    def prompts(self) -> list[str | list[int]]:
        """The prompts, one a choice group: a text, token ids, or a list of either."""
        prompt = self.prompt
        if isinstance(prompt, str):
            return [prompt]
        if isinstance(prompt, list) and prompt:
            if _is_token_ids(prompt):
                return [prompt]
            if all(isinstance(entry, str) or (entry and _is_token_ids(entry)) for entry in prompt):
                return prompt
        raise bad_request("'prompt' must be a text, a list of texts, or a list of token ids", param="prompt")


def _is_token_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(token) is int for token in value)


def check_sizes(body: StrictModel) -> None:
    """Refuse numbers and lists that are too large."""
    for field, most in _MOST.items():
        given = getattr(body, field, None)
        size = given if given is None or isinstance(given, int) else _size(given)
        if field == "n" and size is not None and not 1 <= size <= most:
            raise bad_request(f"'n' must be 1 to {most}, not {size}", param=field)
        if size is not None and size > most:
            raise bad_request(f"'{field}' may hold at most {most}, not {size}", param=field)


def _size(given: Any) -> int:
    return 1 if isinstance(given, str) else len(given)


def check_metadata(metadata: dict[str, str] | None) -> None:
    for key, value in (metadata or {}).items():
        if len(key) > _METADATA_KEY_CHARS or len(value) > _METADATA_VALUE_CHARS:
            message = f"'metadata' has keys of at most {_METADATA_KEY_CHARS} and values of at most {_METADATA_VALUE_CHARS} characters"
            raise bad_request(message, param="metadata")
