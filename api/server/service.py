"""What all routes share: one running model, its settings and its meters."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import anyio
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from ..answers.conversations import Conversations
from ..async_engine import AsyncLLM
from ..jobs import Job
from ..on_thread import on_thread
from ..openai.convert import Converter
from ..openai.errors import ApiError, bad_request
from ..openai.json_body import parse_json_object
from ..openai.writers import Writer
from .body import read_body
from .dialects import OPENAI, Dialect
from .errors import to_api_error
from .generation import Generation
from .job_runner import JobRunner
from .metrics import Metrics
from .record import record_of
from .settings import ServerSettings
from .timeout import request_timeout

_OLLAMA_TAG = ":latest"  # Ollama's clients write it after names that have no tag
Body = TypeVar("Body", bound=BaseModel)
Result = TypeVar("Result")


class Service:
    """Attributes:
    llm: the running model.
    conversations: with the model.
    converter: request bodies -> jobs.
    metrics: meters of this server.
    created: Unix time of the start.
    """

    def __init__(self, llm: AsyncLLM, settings: ServerSettings):
        self.llm = llm
        self.settings = settings
        self.metrics = Metrics(llm.runtime, settings.served_model_names[0])
        self.conversations = Conversations(
            llm.runtime, tool_call_format=settings.tool_call_format, reasoning_parser=settings.reasoning_parser
        )
        self.converter = Converter(llm.runtime, self.conversations, trust_request_chat_template=settings.trust_request_chat_template)
        self.created = int(time.time())
        self._runner = JobRunner(llm, settings, self.metrics)

    async def read(self, request: Request, kind: type[Body]) -> Body:
        """The body of a request.

        Raises:
            ApiError: it is malformed, too large or too slow, or names another model; or a header says no time.
            ClientDisconnect: the client went away.
        """
        record_of(request.scope).timeout_s = request_timeout(request.headers, self.settings.request_timeout_s)
        encoding = request.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise ApiError(415, f"the request body is compressed ({encoding[:40]}), which is not supported", code="unsupported_encoding")
        raw = await read_body(request, max_bytes=self.settings.max_body_bytes, timeout_s=self.settings.body_timeout_s)
        try:
            body = kind.model_validate(parse_json_object(raw))
        except ValueError as error:
            raise to_api_error(error) from None
        self.model_name(getattr(body, "model", None))
        return body

    def model_name(self, given: str | None) -> str:
        """The name of the model in answers: as the request named it.

        Raises:
            ApiError: 404, if it is not served here.
        """
        names = self.settings.served_model_names
        if given is not None and given.removesuffix(_OLLAMA_TAG) not in names and given not in names:
            message = f"model '{given[:200]}' is not served here; there is {' or '.join(names)}"
            raise ApiError(404, message, param="model", code="model_not_found")
        return given or names[0]

    async def run(self, request: Request, convert: Callable[[Body], Result], body: Body) -> Result:
        """Call `convert` on a thread: it costs what tokenizing and reading a schema cost. It stops where nobody waits for it any more.

        Raises:
            ApiError: 504, if it is not done in time.
        """
        record = record_of(request.scope)
        left_s = None if record.timeout_s is None else record.started + record.timeout_s - time.monotonic()
        try:
            with anyio.fail_after(left_s):
                return await on_thread(partial(convert, body))
        except TimeoutError:
            message = f"the request was not read after {record.timeout_s:g} s"
            raise ApiError(504, message, code="deadline_exceeded") from None

    async def jobs(self, request: Request, convert: Callable[[Body], list[Job]], body: Body) -> list[Job]:
        """The jobs of a body, made on a thread.

        Raises:
            ApiError, InvalidRequest, ChatTemplateError: the body can never be served.
        """
        jobs = await self.run(request, convert, body)
        num_answers = sum(job.params.n for job in jobs)
        if num_answers > self.settings.max_answers:
            message = f"the request asks for {num_answers} answers; at most {self.settings.max_answers} are allowed"
            raise bad_request(message, param="n", code="too_many_answers")
        return jobs

    async def answer(self, request: Request, jobs: Sequence[Job], writer: Writer, *, stream: bool, dialect: Dialect = OPENAI) -> Response:
        """Run jobs and shape what comes. Raises what `Generation.respond` raises."""
        record = record_of(request.scope)
        jobs = [replace(job, params=replace(job.params, timeout=record.timeout_s), arrival_time=record.started) for job in jobs]
        generation = Generation(jobs=jobs, writer=writer, stream=stream, dialect=dialect, record=record)
        return await generation.respond(self._runner, request.receive)
