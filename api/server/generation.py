"""Running the jobs of one HTTP request: the first output decides between an error status and an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from starlette.responses import Response
from starlette.types import Receive

from ...engine.request import RequestOutput
from ..jobs import Job
from ..openai.writers import Usage, Writer
from ..results import CompletionBuilder
from .dialects import OPENAI, Dialect
from .errors import failure, to_api_error
from .job_runner import JobRunner, Outputs
from .record import RequestRecord
from .responses import EventStream, json_response, unless_disconnected


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What one request body asks for.

    Attributes:
        jobs: one a prompt.
        writer: shapes the answers.
        stream: send them as they grow.
        dialect: how the client reads streams.
        record: of the HTTP request.
    """

    jobs: Sequence[Job]
    writer: Writer
    stream: bool
    record: RequestRecord
    dialect: Dialect = field(default=OPENAI)

    @property
    def num_answers(self) -> int:
        return sum(job.params.n for job in self.jobs)

    async def respond(self, runner: JobRunner, receive: Receive) -> Response:
        """The response, once it is known that there is one: a constraint that the engine refuses is still an error status.

        Raises:
            ApiError: nothing of an answer was sent.
            ClientDisconnect: the client left; the jobs are aborted.
        """
        outputs = runner.stream(self.jobs, self.record)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(outputs.aclose)
            first = await unless_disconnected(receive, self._checked(outputs))
            if self.stream:
                return EventStream(
                    self._events(first, outputs),
                    media_type=self.dialect.media_type,
                    close=stack.pop_all().aclose,
                )
            return await unless_disconnected(receive, self._whole(first, outputs))

    async def _checked(self, outputs: Outputs) -> tuple[int, RequestOutput]:
        index, output = await anext(outputs)
        error = failure(output, self.jobs[0].constraint)
        if error is not None:
            raise error
        return index, output

    async def _whole(self, first: tuple[int, RequestOutput], outputs: Outputs) -> Response:
        builders = [CompletionBuilder(index=index) for index in range(self.num_answers)]
        usage = _UsageMeter(self.jobs)
        tagged: tuple[int, RequestOutput] | None = first
        while tagged is not None:
            index, output = tagged
            usage.add(index, output)
            builders[index].add(output)
            tagged = await self._next(outputs)
        answers = [builder.build() for builder in builders if builder.finished]
        return json_response(self.writer.response(answers, usage.total()))

    async def _next(self, outputs: Outputs) -> tuple[int, RequestOutput] | None:
        try:
            return await self._checked(outputs)
        except StopAsyncIteration:
            return None

    async def _events(self, first: tuple[int, RequestOutput], outputs: Outputs) -> AsyncGenerator[bytes, None]:
        usage = _UsageMeter(self.jobs)
        frame = self.dialect.frame
        tagged: tuple[int, RequestOutput] | None = first
        try:
            for chunk in self.writer.opening(self.num_answers):
                yield frame(chunk)
            while tagged is not None:
                index, output = tagged
                usage.add(index, output)
                for chunk in self.writer.delta(index, output):
                    yield frame(chunk)
                tagged = await self._next(outputs)
            for chunk in self.writer.closing(usage.total()):
                yield frame(chunk)
            if self.dialect.end:
                yield self.dialect.end
        except Exception as error:  # the status line is sent: what is left is to end with an error event
            answer = to_api_error(error)
            self.record.error_code = answer.code
            yield frame(self.dialect.error_chunk(answer))


class _UsageMeter:
    """Counts tokens as outputs pass by."""

    def __init__(self, jobs: Sequence[Job]):
        self._prompt_tokens = sum(len(job.prompt.token_ids) for job in jobs)
        self._thoughts = [job.make_meter() if job.make_meter else None for job in jobs for _ in range(job.params.n)]
        self._job_of = [number for number, job in enumerate(jobs) for _ in range(job.params.n)]
        self._completion_tokens = 0
        self._cached: dict[int, int] = {}

    def add(self, index: int, output: RequestOutput) -> None:
        self._completion_tokens += len(output.new_token_ids)
        thought = self._thoughts[index]
        if thought is not None:
            thought.add(output.new_token_ids)
        job = self._job_of[index]
        self._cached[job] = max(self._cached.get(job, 0), output.num_cached_tokens)

    def total(self) -> Usage:
        return Usage(
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
            cached_tokens=sum(self._cached.values()),
            reasoning_tokens=sum(thought.num_tokens for thought in self._thoughts if thought is not None),
        )
