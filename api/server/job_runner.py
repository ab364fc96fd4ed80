"""Runs jobs and counts what they do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from ...engine.request import RequestOutput
from ..async_engine import AsyncLLM
from ..jobs import Job
from .metrics import AnswerMeter, Metrics
from .record import RequestRecord
from .settings import ServerSettings

Outputs = AsyncGenerator[tuple[int, RequestOutput], None]


class JobRunner:
    """What stands between the routes and the engine."""

    def __init__(self, llm: AsyncLLM, settings: ServerSettings, metrics: Metrics):
        self._llm = llm
        self._log_prompts = settings.log_prompts
        self._metrics = metrics

    async def stream(self, jobs: Sequence[Job], record: RequestRecord) -> Outputs:
        """The outputs of jobs, each with the index of its answer, counted through all jobs.

        Closing it aborts what is still running.
        """
        outputs = self._llm.stream(jobs)
        self._note(jobs, record)
        meters = [self._metrics.job(job) for job in jobs]
        of_answers = [answer for meter in meters for answer in meter.answers]
        is_over = False
        try:
            async for index, output in outputs:
                self._count(of_answers[index], output, record)
                yield index, output
            is_over = True
        finally:
            await outputs.aclose()
            for meter in meters:
                meter.finish(is_over=is_over)

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
