"""Ollama's bodies -> jobs."""

from __future__ import annotations

from typing import Any

from ...engine.request import SamplingParams
from .. import constraints
from ..constraints import Constraint
from ..jobs import Job, new_id
from ..openai.constraints import the_only
from ..openai.errors import bad_request
from ..openai.sampling import sampling_params
from ..prompts import Prompt, PromptEncoder, check_length
from ..runtime import Runtime
from .protocol import ChatBody, GenerateBody, OllamaBody, Options

# What Ollama samples with where a request and a model say nothing.
_TEMPERATURE, _TOP_K, _TOP_P = 0.8, 40, 0.9
_UNBOUNDED = (-1, -2)
_SAME_NAME = ("temperature", "top_k", "top_p", "min_p", "seed", "stop", "presence_penalty", "frequency_penalty")
_RENAMED = {
    "max_tokens": "options.num_predict",
    "repetition_penalty": "options.repeat_penalty",
    "logprobs": "top_logprobs",
    **{name: f"options.{name}" for name in _SAME_NAME},
}


class OllamaConverter:
    """Turns bodies into jobs of one model. Costs what tokenizing and reading a schema cost, so it belongs on a thread."""

    def __init__(self, runtime: Runtime):
        self._max_model_len = runtime.max_model_len
        self._encoder = PromptEncoder(runtime.model)

    def chat(self, body: ChatBody) -> list[Job]:
        """The one job of a chat; none for a chat without messages, which only asks for the model to be loaded.

        Raises:
            ApiError, InvalidRequest, ChatTemplateError: the body can never be served.
        """
        body.refuse_unsupported()
        if not body.messages:
            return []
        messages = [{"role": message.role, "content": message.content or ""} for message in body.messages]
        return [self._job(body, self._encoder.of_chat(messages))]

    def generate(self, body: GenerateBody) -> list[Job]:
        """The same for `/api/generate`: the prompt is the user's turn, or with `raw` a text to continue."""
        body.refuse_unsupported()
        if not body.prompt:
            return []
        if body.raw or (self._encoder.chat_template is None and not body.system):
            return [self._job(body, self._encoder.of_text(body.prompt))]
        system = [{"role": "system", "content": body.system}] if body.system else []
        return [self._job(body, self._encoder.of_chat([*system, {"role": "user", "content": body.prompt}], source="prompt"))]

    def _job(self, body: OllamaBody, prompt: Prompt) -> Job:
        params = _params(body)
        constraint = _constraint(body.format)
        check_length(prompt, max_tokens=params.max_tokens, max_model_len=self._max_model_len, field="options.num_predict")
        return Job(prompt=prompt, params=params, constraint=constraint, job_id=new_id("ollama"))


def _params(body: OllamaBody) -> SamplingParams:
    options = body.options or Options()
    given: dict[str, Any] = {
        "max_tokens": None if options.num_predict in _UNBOUNDED else options.num_predict,
        "temperature": _TEMPERATURE if options.temperature is None else options.temperature,
        "top_k": _TOP_K if options.top_k is None else options.top_k,
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
    if not isinstance(given, dict):
        raise bad_request("'format' must be \"json\" or a JSON Schema", param="format")
    return the_only([("format", lambda: constraints.of_schema(given, field="format"))])
