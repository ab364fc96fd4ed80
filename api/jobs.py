"""A job: one prompt with everything that decides its answers, and the engine requests that it becomes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from ..engine.request import Request, SamplingParams, expand
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
        constraint: of the whole text.
        content: constraint of the content, where that is not the whole text.
        make_reader: makes a reader of an answer that may hold a thought or tool calls; None where it is just text.
        make_meter: makes a meter of the thought of an answer.
        priority: see `Request`; `cache_salt` too.
    """

    prompt: Prompt
    params: SamplingParams
    constraint: Constraint | None = None
    content: Constraint | None = None
    make_reader: Callable[[], AnswerReader] | None = None
    make_meter: Callable[[], ThoughtMeter] | None = None
    priority: int = 0
    cache_salt: str | None = None
    job_id: str = field(default_factory=lambda: new_id("gen"))

    def requests(self) -> list[Request]:
        """One engine request an answer, in order."""
        whole = Request(
            request_id=self.job_id,
            prompt_token_ids=self.prompt.token_ids,
            params=self.params,
            grammar=self.constraint.grammar if self.constraint else None,
            priority=self.priority,
            cache_salt=self.cache_salt,
        )
        return expand(whole)

    def builders(self) -> list[CompletionBuilder]:
        """An empty answer for each request."""
        of_content = self.constraint if self.make_reader is None else self.content
        return [
            CompletionBuilder(index=index, constraint=of_content, reader=None if self.make_reader is None else self.make_reader())
            for index in range(self.params.n)
        ]

    def result(self, builders: list[CompletionBuilder]) -> RequestResult:
        """The finished answers."""
        return RequestResult(
            prompt=self.prompt.text,
            prompt_token_ids=self.prompt.token_ids,
            outputs=tuple(builder.build() for builder in builders),
            num_cached_tokens=max(builder.num_cached_tokens for builder in builders),
        )
