"""What a step of the engine gave one request."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from .beams.group import BeamGroup
from .executor import Outcome
from .failures import failure, no_token
from .generation import Generation
from .kernels.masked_sample import RowStatus
from .request import FormcastError
from .sampler import SampledToken


@dataclass(kw_only=True)
class Step:
    """Tokens of an answer that were taken and are not read yet.

    Attributes:
        is_last: whether it is known already that the answer ends with it.
        error: why it does.
    """

    generation: Generation | BeamGroup
    tokens: list[SampledToken] = field(default_factory=list)
    is_last: bool = False
    error: FormcastError | None = None


def take(generation: Generation, outcome: Outcome) -> Step:
    """Adds to an answer what plain decoding would have: a sampled token counts if all drafts before it are what was sampled.

    Noise depends on the request and the position alone, so the outcome is that of one token a step, greedy or not.
    """
    drafts = outcome.chunk.drafts
    step = Step(generation=generation)
    try:
        if outcome.error is not None:
            raise outcome.error
        for draft, token in zip_longest(drafts, outcome.tokens):
            if token.status is not RowStatus.SAMPLED:
                raise no_token(generation.num_generated, token.status)
            step.is_last = generation.take(token.token_id, token.target)
            step.tokens.append(token)
            if step.is_last or token.token_id != draft:
                break
    except Exception as error:
        step.is_last, step.error = True, failure(error)
    num_accepted = sum(token.token_id == draft for draft, token in zip(drafts, step.tokens, strict=False))
    generation.count_drafts(len(drafts), num_accepted)
    return step
