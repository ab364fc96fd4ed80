"""Beam search, as callers ask for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..engine.request import BeamSearchParams, InvalidRequest, SamplingParams


def beam_params(params: BeamSearchParams, *, n: int | None = None) -> SamplingParams:
    """The parameters of a job of a beam search.

    Args:
        n: answers that are asked for, at most `beam_width`; None is all.

    Raises:
        InvalidRequest: more answers than beams, or params of another kind.
    """
    if not isinstance(params, BeamSearchParams):
        raise InvalidRequest(f"a beam search takes BeamSearchParams, not {type(params).__name__}", param="params")
    if n is not None and n > params.beam_width:
        raise InvalidRequest(f"n ({n}) is greater than beam_width ({params.beam_width})", param="n")
    return replace(params.sampling_params(), n=params.beam_width if n is None else n)


def refuse_beams(params: Any) -> None:
    """Raises InvalidRequest for parameters of a beam search where answers come in pieces."""
    if isinstance(params, BeamSearchParams):
        raise InvalidRequest("the answers of a beam search come whole, in `beam_search`: they cannot be streamed", param="sampling_params")
