"""`use_beam_search` of vLLM, and what goes with it."""

from __future__ import annotations

from typing import Any

from ...engine.request import BeamSearchParams, InvalidRequest, SamplingParams
from ..beams import beam_params
from .errors import bad_request

# What a beam search has no use for, and the values that say so.
_WITHOUT: dict[str, tuple[Any, ...]] = {
    "stream": (None, False),
    "top_p": (None, 1),
    "top_k": (None, 0, -1),
    "min_p": (None, 0),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "repetition_penalty": (None, 1),
    "logit_bias": (None, {}),
    "min_tokens": (None, 0),
    "stop": (None, []),
    "stop_token_ids": (None, []),
    "include_stop_str_in_output": (None, False),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
}


def refuse_beside_beams(body: Any) -> None:
    """Refuse what does not go with a beam search, and its parameters where there is none.

    Raises:
        ApiError: 400, with the field.
    """
    if not body.use_beam_search:
        for field, default in (("beam_width", None), ("length_penalty", 1)):
            if getattr(body, field) not in (None, default):
                raise bad_request(f"'{field}' needs 'use_beam_search': true", param=field)
        return
    for field, unset in _WITHOUT.items():
        if getattr(body, field, None) not in unset:
            how = "answers of a beam search come whole" if field == "stream" else "beams are not sampled"
            raise bad_request(f"'{field}' does not go with 'use_beam_search': {how}", param=field, code="unsupported_parameter")


def beam_search(body: Any, params: SamplingParams) -> tuple[SamplingParams, BeamSearchParams | None]:
    """The parameters of the job of a body, and its beam search, if it asks for one.

    Args:
        params: those of the body.

    Raises:
        ApiError: 400, for a value out of range.
    """
    if not body.use_beam_search:
        return params, None
    try:
        beams = BeamSearchParams(
            beam_width=params.n if body.beam_width is None else body.beam_width,
            max_tokens=params.max_tokens,
            ignore_eos=params.ignore_eos,
            temperature=body.temperature or 0.0,
            length_penalty=1.0 if body.length_penalty is None else body.length_penalty,
            skip_special_tokens=params.skip_special_tokens,
        )
        return beam_params(beams, n=params.n), beams
    except InvalidRequest as error:
        raise bad_request(error.message, param=error.param) from None
