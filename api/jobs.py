"""A job: one prompt with everything that decides its answers, and the engine requests that it becomes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..engine.request import BeamSearchParams, Request, RequestOutput, SamplingParams, expand
from .answers.reader import AnswerReader
from .answers.reasoning import ThoughtMeter
from .constraints import Constraint
from .prompts import Prompt
from .results import CompletionBuilder, RequestResult


def new_id(prefix: str) -> str:
    """A request id that nobody else has."""
    return f"{prefix}-{uuid.uuid4().hex}"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One prompt to answer `params.n` times.

    Attributes:
        beam_search: the answers are the best of a beam search; `params` are those of `BeamSearchParams.sampling_params` with n.
        constraint: of the whole text.
        content: constraint of the content, where that is not the whole text.
        make_reader: makes a reader of an answer that may hold a thought or tool calls; None where it is just text.
        make_meter: makes a meter of the thought of an answer.
        priority: see `Request`; `cache_salt` and `arrival_time` too.
    """

    prompt: Prompt
    params: SamplingParams
    beam_search: BeamSearchParams | None = None
    constraint: Constraint | None = None
    content: Constraint | None = None
    make_reader: Callable[[], AnswerReader] | None = None
    make_meter: Callable[[], ThoughtMeter] | None = None
    priority: int = 0
    cache_salt: str | None = None
    arrival_time: float = field(default_factory=time.monotonic)
    job_id: str = field(default_factory=lambda: new_id("gen"))

    def requests(self) -> list[Request]:
        """One engine request an answer, in order; a beam search is one request."""
        whole = Request(
            request_id=self.job_id,
            prompt_token_ids=self.prompt.token_ids,
            params=self.params if self.beam_search is None else replace(self.params, n=1),
            beam_search=self.beam_search,
            grammar=self.constraint.grammar if self.constraint else None,
            priority=self.priority,
            cache_salt=self.cache_salt,
            arrival_time=self.arrival_time,
        )
        return expand(whole)

    def outputs(self, index: int, output: RequestOutput) -> list[tuple[int, RequestOutput]]:
        """What an output of the request of an index means for single answers: (index of the answer, its output)."""
        if not output.beams:
            return [(index, output)]
        return [
            (
                rank,
                replace(
                    output,
                    new_token_ids=beam.token_ids,
                    text=beam.text,
                    finish_reason=beam.finish_reason,
                    num_generated_tokens=len(beam.token_ids),
                    beams=(beam,),
                ),
            )
            for rank, beam in enumerate(output.beams[: self.params.n])
        ]

    def builders(self) -> list[CompletionBuilder]:
        """An empty answer for each that was asked for."""
        of_content = self.constraint if self.make_reader is None else self.content
        return [
            CompletionBuilder(index=index, constraint=of_content, reader=None if self.make_reader is None else self.make_reader())
            for index in range(self.params.n)
        ]

    def result(self, builders: list[CompletionBuilder]) -> RequestResult:
        """The finished answers. A beam search may have found fewer than it was asked for."""
        return RequestResult(
            prompt=self.prompt.text,
            prompt_token_ids=self.prompt.token_ids,
            outputs=tuple(builder.build() for builder in builders if builder.finished),
            num_cached_tokens=max(builder.num_cached_tokens for builder in builders),
        )
