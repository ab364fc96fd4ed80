"""Runs jobs under the deadline of the server and counts what they do."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import anyio

from ...engine.request import RequestOutput
from ..async_engine import AsyncLLM
from ..jobs import Job
from ..openai.errors import ApiError
from .metrics import AnswerMeter, Metrics
from .record import RequestRecord
from .settings import ServerSettings

Outputs = AsyncGenerator[tuple[int, RequestOutput], None]


class JobRunner:
    """What stands between the routes and the engine."""

    def __init__(self, llm: AsyncLLM, settings: ServerSettings, metrics: Metrics):
        self._llm = llm
        self._timeout_s = settings.request_timeout_s
        self._log_prompts = settings.log_prompts
        self._metrics = metrics

    async def stream(self, jobs: Sequence[Job], record: RequestRecord) -> Outputs:
        """The outputs of jobs, each with the index of its answer, counted through all jobs.

        Closing it aborts what is still running.

        Raises:
            ApiError: 504, if they are not done in time.
        """
        outputs = self._until_deadline(self._llm.stream(jobs))
        self._note(jobs, record)
        meters = [self._metrics.job(job) for job in jobs]
        of_answers = [answer for meter in meters for answer in meter.answers]
        try:
            async for index, output in outputs:
                self._count(of_answers[index], output, record)
                yield index, output
        finally:
            await outputs.aclose()
            for meter in meters:
                meter.finish()

    async def _until_deadline(self, outputs: Outputs) -> Outputs:
        deadline = math.inf if self._timeout_s is None else anyio.current_time() + self._timeout_s
        async with aclosing(outputs):
            while True:
                try:
                    # Not `asyncio.wait_for`, which before Python 3.12 can lose a cancellation.
                    with anyio.fail_after(deadline - anyio.current_time()):
                        tagged = await anext(outputs)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise ApiError(504, f"the answer was not complete after {self._timeout_s:g} s", code="deadline_exceeded") from None
                yield tagged

    def _note(self, jobs: Sequence[Job], record: RequestRecord) -> None:
        record.num_prompt_tokens += sum(len(job.prompt.token_ids) for job in jobs)
        if self._log_prompts:
            record.prompts += [job.prompt.text or repr(list(job.prompt.token_ids)) for job in jobs]

    def _count(self, meter: AnswerMeter, output: RequestOutput, record: RequestRecord) -> None:
        meter.add(output)
        record.num_generated_tokens += len(output.new_token_ids)
        if output.finish_reason is not None:
            record.num_cached_tokens += output.num_cached_tokens
            record.finish_reasons.append(output.finish_reason)
