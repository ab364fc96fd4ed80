"""Request bodies -> jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...engine.request import SamplingParams
from ..answers.conversations import Conversations
from ..answers.forms import Asked
from ..jobs import Job, new_id
from ..prompts import Prompt, check_length
from ..runtime import Runtime
from . import constraints, responses_tools
from .beams import beam_search
from .errors import bad_request, not_supported
from .functions import function_choice_of, functions_of
from .messages import template_messages
from .protocol import ChatCompletionBody, CompletionBody, GenerationBody
from .responses_body import ResponsesBody
from .responses_input import input_messages
from .sampling import sampling_params
from .tokenize import DetokenizeBody, TokenizeBody
from .tools import choice_of, tools_of

if TYPE_CHECKING:
    from ...engine.models.chat_template import ChatTemplate

_SAME_NAME = (
    "n",
    "temperature",
    "top_p",
    "min_p",
    "seed",
    "min_tokens",
    "stop",
    "stop_token_ids",
    "ignore_eos",
    "include_stop_str_in_output",
    "skip_special_tokens",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
)
_VLLM_ALL_TOKENS = -1


class Converter:
    """Turns bodies into jobs of one model. Costs what tokenizing and reading a schema cost, so it belongs on a thread.

    Args:
        conversations: of the model.
    """

    def __init__(self, runtime: Runtime, conversations: Conversations, *, trust_request_chat_template: bool = False):
        self._conversations = conversations
        self._trust_request_chat_template = trust_request_chat_template
        self._token_bytes = runtime.token_bytes
        self._max_model_len = runtime.max_model_len
        self._vocab_size = runtime.model.vocab_size
        self._encoder = conversations.encoder

    def chat(self, body: ChatCompletionBody) -> list[Job]:
        """The one job of a chat completion.

        Raises:
            ApiError, InvalidRequest, ChatTemplateError: the body can never be served.
        """
        body.refuse_unsupported()
        field, max_tokens = body.token_budget
        num_logprobs = (body.top_logprobs or 0) if body.logprobs else None
        params = self._params(body, {"max_tokens": max_tokens, "logprobs": num_logprobs}, {"max_tokens": field, "logprobs": "top_logprobs"})
        if body.uses_functions:
            tools, choice = functions_of(body.functions, body.function_call), function_choice_of(body.function_call)
        else:
            tools = tools_of(body.tools, body.tool_choice)
            choice = choice_of(body.tool_choice, parallel=body.parallel_tool_calls)
        effort, budget = self._effort(body.reasoning_effort, "reasoning_effort", body.thinking_token_budget)
        turn = self._conversations.turn(
            template_messages(body.messages),
            Asked(tools=tools, choice=choice, constraint=constraints.from_body(body)),
            thinking_token_budget=budget,
            template=self._own_template(body.chat_template),
            variables={
                "add_generation_prompt": body.add_generation_prompt is not False,
                **effort,
                **self._template_variables(body),
            },
        )
        turn.check(params)
        self._check_length(turn.prompt, params, field)
        params, beams = beam_search(body, params)
        return [turn.job(params=params, beam_search=beams, job_id=new_id("chatcmpl"), **_placement(body))]

    def completion(self, body: CompletionBody) -> list[Job]:
        """One job a prompt. Raises what `chat` raises."""
        body.refuse_unsupported()
        field, max_tokens = body.token_budget
        params = self._params(body, {"max_tokens": max_tokens, "logprobs": body.logprobs}, {})
        params, beams = beam_search(body, params)
        constraint = constraints.from_body(body)
        jobs = []
        for given in body.prompts():
            prompt = self._encoder.of_text(given) if isinstance(given, str) else self._encoder.of_token_ids(given)
            self._check_length(prompt, params, field)
            jobs.append(
                Job(prompt=prompt, params=params, beam_search=beams, constraint=constraint, job_id=new_id("cmpl"), **_placement(body))
            )
        return jobs

    def responses(self, body: ResponsesBody) -> list[Job]:
        """The one job of a response. Raises what `chat` raises."""
        body.refuse_unsupported()
        own = {"max_tokens": body.max_output_tokens, "logprobs": body.num_logprobs}
        params = self._params(body, own, {"max_tokens": "max_output_tokens", "logprobs": "top_logprobs"})
        tools = responses_tools.tools_of(body.tools, body.tool_choice)
        choice = responses_tools.choice_of(body.tool_choice, parallel=body.parallel_tool_calls)
        given = body.reasoning.effort if body.reasoning else None
        effort, budget = self._effort(given, "reasoning.effort", body.thinking_token_budget)
        turn = self._conversations.turn(
            input_messages(body.input, body.instructions),
            Asked(tools=tools, choice=choice, constraint=constraints.from_responses_body(body)),
            thinking_token_budget=budget,
            source="input",
            variables=effort,
        )
        turn.check(params)
        self._check_length(turn.prompt, params, "max_output_tokens")
        return [turn.job(params=params, job_id=new_id("resp"), **_placement(body))]

    def _effort(self, effort: str | None, field: str, budget: int | None) -> tuple[dict[str, Any], int | None]:
        """Variables of the chat template for an effort, and the budget of thoughts then: "none" switches thinking off, others are for
        templates that know them."""
        if effort is None or (effort == "none" and not self._conversations.thinks):
            return {}, budget
        if effort == "none":
            return self._conversations.without_thought(budget)
        if not self._conversations.template_knows("reasoning_effort"):
            raise not_supported(f"'{field}' {effort[:64]!r}: the chat template of this model reads none, so any but 'none'", param=field)
        return {"reasoning_effort": effort}, budget

    def _own_template(self, source: str | None) -> ChatTemplate | None:
        """The template that a request brings. It runs in the sandbox, but decides what the model reads, so it needs the flag."""
        if source is None:
            return None
        if not self._trust_request_chat_template:
            message = "chat templates of requests are switched off (--trust-request-chat-template allows them)"
            raise bad_request(message, param="chat_template", code="unsupported_parameter")
        from ...engine.models.chat_template import ChatTemplate

        own = self._encoder.chat_template
        return ChatTemplate(source, bos=getattr(own, "bos", None), eos=getattr(own, "eos", None))

    def echo(self, body: CompletionBody, jobs: list[Job]) -> tuple[str, ...]:
        """What `echo` puts before each answer: the prompt as text."""
        if not body.echo:
            return ()
        texts = [self._text(job.prompt.token_ids) if job.prompt.text is None else job.prompt.text for job in jobs]
        return tuple(text for text, job in zip(texts, jobs, strict=True) for _ in range(job.params.n))

    def _text(self, token_ids: Sequence[int]) -> str:
        return b"".join(map(self._token_bytes, token_ids)).decode("utf-8", "replace")

    def tokenize(self, body: TokenizeBody) -> dict[str, Any]:
        """The answer of `/tokenize`. Raises what `chat` raises."""
        body.refuse_unsupported()
        token_ids = list(self._tokenized(body).token_ids)
        names = [self._token_bytes(token).decode("utf-8", "replace") for token in token_ids] if body.return_token_strs else None
        return {"count": len(token_ids), "max_model_len": self._max_model_len, "tokens": token_ids, "token_strs": names}

    def _tokenized(self, body: TokenizeBody) -> Prompt:
        if body.messages is None:
            return self._encoder.of_text(body.prompt or "", begin=body.add_special_tokens is not False, may_be_empty=True)
        options = {"add_generation_prompt": body.add_generation_prompt is not False}
        return self._encoder.of_chat(template_messages(body.messages), **options, **self._template_variables(body))

    def detokenize(self, body: DetokenizeBody) -> dict[str, Any]:
        """The answer of `/detokenize`: special tokens by their names, bytes that are no text as U+FFFD."""
        self._check_tokens("tokens", body.tokens)
        return {"prompt": self._text(body.tokens)}

    def _template_variables(self, body: ChatCompletionBody | TokenizeBody) -> dict[str, Any]:
        variables = body.chat_template_kwargs or {}
        for reserved in ("self", "messages", "add_generation_prompt", "tools", "source", "template"):
            if reserved in variables:
                raise bad_request(f"'{reserved}' is set by the request itself", param=f"chat_template_kwargs.{reserved}")
        return variables

    def _check_length(self, prompt: Prompt, params: SamplingParams, field: str) -> None:
        check_length(prompt, max_tokens=params.max_tokens, max_model_len=self._max_model_len, field=field)

    def _params(self, body: GenerationBody | ResponsesBody, own: dict[str, Any], renamed: dict[str, str]) -> SamplingParams:
        """Sampling parameters; null means the default.

        Args:
            own: values that the endpoint computes.
            renamed: parameter -> field of the body, for errors.
        """
        given = {name: getattr(body, name, None) for name in _SAME_NAME} | own
        given["top_k"] = 0 if body.top_k == _VLLM_ALL_TOKENS else body.top_k
        given["logit_bias"] = _logit_bias(body.logit_bias)
        params = sampling_params(given, renamed)
        self._check_tokens("logit_bias", params.logit_bias)
        self._check_tokens("stop_token_ids", params.stop_token_ids)
        return params

    def _check_tokens(self, field: str, tokens: Any) -> None:
        for token in tokens:
            if not 0 <= token < self._vocab_size:
                raise bad_request(f"{field}: {token} is not a token id of this model (0 to {self._vocab_size - 1})", param=field)


def _placement(body: GenerationBody | ResponsesBody) -> dict[str, Any]:
    return {"priority": body.priority or 0, "cache_salt": body.cache_salt}


def _logit_bias(given: dict[str, float] | None) -> dict[int, float] | None:
    if given is None:
        return None
    for token in given:
        if not (token.isascii() and token.isdigit() and len(token) <= 10):
            raise bad_request(f"logit_bias: {token[:64]!r} is not a token id", param="logit_bias")
    return {int(token): bias for token, bias in given.items()}
