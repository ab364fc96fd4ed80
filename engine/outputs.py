"""What an answer shows to the outside."""

from __future__ import annotations

from collections.abc import Sequence

from ..grammar.errors import FormcastError
from .beams.group import BeamGroup
from .generation import Generation, Verdict
from .request import RequestOutput, TokenLogprob
from .sampler import SampledToken


def error_verdict(error: FormcastError) -> Verdict:
    """The end of an answer that failed."""
    return Verdict(reason="error", error=error)


def output_of(generation: Generation | BeamGroup, verdict: Verdict, tokens: Sequence[SampledToken], text: str) -> RequestOutput:
    """What some tokens added to an answer."""
    logprobs = None
    if generation.request.params.logprobs is not None:
        logprobs = tuple(TokenLogprob(token_id=token.token_id, logprob=token.logprob, top=token.top) for token in tokens)
    return RequestOutput(
        request_id=generation.request_id,
        new_token_ids=tuple(token.token_id for token in tokens),
        text=text,
        finish_reason=verdict.reason,
        stop_reason=verdict.stop_reason,
        error=verdict.error,
        logprobs=logprobs,
        num_prompt_tokens=len(generation.request.prompt_token_ids),
        scheduled_time=generation.scheduled_time,
        num_generated_tokens=generation.num_generated,
        num_cached_tokens=generation.num_cached,
        num_draft_tokens=generation.num_drafts,
        num_accepted_tokens=generation.num_accepted,
        num_forced_tokens=generation.num_forced,
        beams=verdict.beams,
    )
