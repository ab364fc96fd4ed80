"""TGI's bodies -> jobs."""

from __future__ import annotations

from typing import Any

from .. import constraints
from ..constraints import Constraint
from ..jobs import Job, new_id
from ..openai.constraints import the_only
from ..openai.errors import bad_request
from ..openai.sampling import sampling_params
from ..prompts import PromptEncoder, check_length
from ..runtime import Runtime
from .protocol import TgiBody, TgiGrammar, TgiParameters

_MAX_NEW_TOKENS = 100
_FIELD = "parameters.grammar.value"
_SAME_NAME = ("temperature", "top_k", "top_p", "typical_p", "seed", "stop", "repetition_penalty", "frequency_penalty")
_RENAMED = {
    "max_tokens": "parameters.max_new_tokens",
    "logprobs": "parameters.top_n_tokens",
    **{name: f"parameters.{name}" for name in _SAME_NAME},
}


class TgiConverter:
    """Turns bodies into jobs of one model. Costs what tokenizing and reading a schema cost, so it belongs on a thread."""

    def __init__(self, runtime: Runtime):
        self._max_model_len = runtime.max_model_len
        self._encoder = PromptEncoder(runtime.model)

    def generate(self, body: TgiBody) -> list[Job]:
        """The one job of a body: its text is continued as it stands.

        Raises:
            ApiError, InvalidRequest: the body can never be served.
        """
        given = body.options
        given.refuse_unsupported()
        params = sampling_params(_values(given), _RENAMED)
        constraint = None if given.grammar is None else _constraint(given.grammar)
        prompt = self._encoder.of_text(body.inputs, source="inputs")
        check_length(prompt, max_tokens=params.max_tokens, max_model_len=self._max_model_len, field="parameters.max_new_tokens")
        return [Job(prompt=prompt, params=params, constraint=constraint, job_id=new_id("tgi"))]


def _values(given: TgiParameters) -> dict[str, Any]:
    temperature = (1.0 if given.temperature is None else given.temperature) if given.samples else 0.0
    return {
        "max_tokens": _MAX_NEW_TOKENS if given.max_new_tokens is None else given.max_new_tokens,
        "temperature": temperature,
        "top_k": given.top_k,
        "top_p": given.top_p,
        "typical_p": given.typical_p,
        "repetition_penalty": given.repetition_penalty,
        "frequency_penalty": given.frequency_penalty,
        "seed": given.seed,
        "stop": given.stop,
        "include_stop_str_in_output": True,
        "logprobs": given.top_n_tokens or 0,
    }


def _constraint(given: TgiGrammar) -> Constraint | None:
    value = given.value
    if given.type == "regex":
        if not isinstance(value, str):
            raise bad_request(f"'{_FIELD}' must be a pattern", param=_FIELD)
        return the_only([(_FIELD, lambda: constraints.of_regex(value, field=_FIELD))])
    if given.type == "json_schema":
        value = value.get("schema") if isinstance(value, dict) else None
    if not isinstance(value, (dict, bool, str)):
        raise bad_request(f"'{_FIELD}' must hold a JSON Schema", param=_FIELD)
    return the_only([(_FIELD, lambda: constraints.of_schema(value, field=_FIELD))])
