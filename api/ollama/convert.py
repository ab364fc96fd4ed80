"""Ollama's bodies -> jobs."""

from __future__ import annotations

from typing import Any

from ...engine.request import SamplingParams
from ...grammar.shipped import shipped_name
from .. import constraints
from ..answers.conversations import Conversations, Turn
from ..answers.forms import AnswerForm, Asked
from ..constraints import Constraint
from ..jobs import Job, new_id
from ..openai.constraints import the_only
from ..openai.errors import bad_request, not_supported
from ..openai.sampling import sampling_params
from ..prompts import check_length
from ..runtime import Runtime
from ..tools.tool import Tool
from .protocol import ChatBody, GenerateBody, OllamaBody, OllamaMessage, Options

# What Ollama samples with where a request and a model say nothing.
_TEMPERATURE, _TOP_K, _TOP_P = 0.8, 40, 0.9
_UNBOUNDED = (-1, -2)
_SAME_NAME = ("temperature", "top_k", "top_p", "typical_p", "min_p", "seed", "stop", "presence_penalty", "frequency_penalty")
_RENAMED = {
    "max_tokens": "options.num_predict",
    "repetition_penalty": "options.repeat_penalty",
    "logprobs": "top_logprobs",
    **{name: f"options.{name}" for name in _SAME_NAME},
}


class OllamaConverter:
    """Turns bodies into jobs of one model. Costs what tokenizing and reading a schema cost, so it belongs on a thread."""

    def __init__(self, runtime: Runtime, conversations: Conversations):
        self._max_model_len = runtime.max_model_len
        self._conversations = conversations
        self._encoder = conversations.encoder

    def chat(self, body: ChatBody) -> list[Job]:
        """The one job of a chat; none for a chat without messages, which only asks for the model to be loaded.

        Raises:
            ApiError, InvalidRequest, ChatTemplateError, ToolError: the body can never be served.
        """
        body.refuse_unsupported()
        if not body.messages:
            return []
        return [self._turn(body, [_message(message) for message in body.messages], _tools(body), source="messages")]

    def generate(self, body: GenerateBody) -> list[Job]:
        """The same for `/api/generate`: the prompt is the user's turn, or with `raw` a text to continue."""
        body.refuse_unsupported()
        if not body.prompt:
            return []
        if body.raw or (self._encoder.chat_template is None and not body.system):
            return [self._job(body, Turn(self._encoder.of_text(body.prompt), AnswerForm(constraint=_constraint(body.format))))]
        system = [{"role": "system", "content": body.system}] if body.system else []
        return [self._turn(body, [*system, {"role": "user", "content": body.prompt}], [], source="prompt")]

    def _turn(self, body: OllamaBody, messages: list[dict[str, Any]], tools: list[Tool], *, source: str) -> Job:
        asked = Asked(tools=tools, constraint=_constraint(body.format))
        variables, budget = self._thinking(body.think)
        return self._job(body, self._conversations.turn(messages, asked, source=source, variables=variables, thinking_token_budget=budget))

    def _thinking(self, think: bool | str | None) -> tuple[dict[str, Any], int | None]:
        """Variables of the chat template for `think`, and the budget of thoughts."""
        if think is None or (think is False and not self._conversations.thinks):
            return {}, None
        if not self._conversations.thinks:
            raise not_supported("'think' of a model that does not think", param="think")
        if isinstance(think, str):
            if not self._conversations.template_knows("reasoning_effort"):
                raise not_supported("a degree of 'think' for this model", param="think")
            return {"reasoning_effort": think}, None
        return (self._conversations.switch(thinking=True) or {}, None) if think else self._conversations.without_thought()

    def _job(self, body: OllamaBody, turn: Turn) -> Job:
        params = _params(body)
        turn.check(params, stop_field="options.stop")
        check_length(turn.prompt, max_tokens=params.max_tokens, max_model_len=self._max_model_len, field="options.num_predict")
        return turn.job(params=params, job_id=new_id("ollama"))


def _message(message: OllamaMessage) -> dict[str, Any]:
    """A message as chat templates read it."""
    rendered: dict[str, Any] = {"role": message.role, "content": message.content or ""}
    if message.thinking and message.role == "assistant":
        rendered["reasoning_content"] = message.thinking
    if message.tool_calls:
        rendered["tool_calls"] = [
            {
                "id": call.id or f"call_{index}",
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for index, call in enumerate(message.tool_calls)
        ]
    if message.tool_name:
        rendered["name"] = message.tool_name
    if message.tool_call_id:
        rendered["tool_call_id"] = message.tool_call_id
    return rendered


def _tools(body: ChatBody) -> list[Tool]:
    """The tools of a chat. Ollama has no word for it, so they are strict."""
    return [
        Tool(
            name=tool.function.name,
            description=tool.function.description,
            parameters=tool.function.parameters,
            strict=tool.function.strict is not False,
            field=f"tools[{index}].function",
        )
        for index, tool in enumerate(body.tools or ())
    ]


def _params(body: OllamaBody) -> SamplingParams:
    options = body.options or Options()
    given: dict[str, Any] = {
        "max_tokens": None if options.num_predict in _UNBOUNDED else options.num_predict,
        "temperature": _TEMPERATURE if options.temperature is None else options.temperature,
        "top_k": _TOP_K if options.top_k is None else options.top_k,
        "typical_p": options.typical_p,
        "top_p": _TOP_P if options.top_p is None else options.top_p,
        "min_p": options.min_p,
        "seed": options.seed,
        "stop": options.stop,
        "presence_penalty": options.presence_penalty,
        "frequency_penalty": options.frequency_penalty,
        "repetition_penalty": None if options.repeat_last_n == 0 else options.repeat_penalty,
        "logprobs": (body.top_logprobs or 0) if body.logprobs else None,
    }
    return sampling_params(given, _RENAMED)


def _constraint(given: Any) -> Constraint | None:
    if given is None or given == "":
        return None
    if given == "json":
        return the_only([("format", lambda: constraints.of_json_object(field="format"))])
    if not isinstance(given, dict) and shipped_name(given) is None:
        raise bad_request("'format' must be \"json\", a JSON Schema or the name of a shipped one", param="format")
    return the_only([("format", lambda: constraints.of_schema(given, field="format"))])
