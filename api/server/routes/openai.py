"""`/v1/...`: the OpenAI protocol."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...openai.answer_writer import AnswerChatWriter, FunctionChatWriter
from ...openai.protocol import ChatCompletionBody, CompletionBody, GenerationBody
from ...openai.responses_body import ResponsesBody
from ...openai.responses_writer import ResponsesWriter
from ...openai.writers import ChatWriter, CompletionWriter
from ..dialects import responses_dialect
from ..responses import json_response
from ..service import Service


class OpenAIRoutes:
    def __init__(self, service: Service):
        self._service = service

    def routes(self) -> list[Route]:
        return [
            Route("/v1/chat/completions", self.chat_completions, methods=["POST"]),
            Route("/v1/completions", self.completions, methods=["POST"]),
            Route("/v1/responses", self.responses, methods=["POST"]),
            Route("/v1/models", self.models, methods=["GET"]),
            Route("/v1/models/{name:path}", self.model, methods=["GET"]),
        ]

    async def chat_completions(self, request: Request) -> Response:
        service = self._service
        body = await service.read(request, ChatCompletionBody)
        jobs = await service.jobs(request, service.converter.chat, body)
        shared, make_reader = self._shared(body, jobs[0].job_id), jobs[0].make_reader
        if make_reader is None:
            writer = ChatWriter(**shared)
        else:
            make_writer = FunctionChatWriter if body.uses_functions else AnswerChatWriter
            writer = make_writer(make_reader=make_reader, include_reasoning=body.include_reasoning is not False, **shared)
        return await service.answer(request, jobs, writer, stream=bool(body.stream))

    async def completions(self, request: Request) -> Response:
        service = self._service
        body = await service.read(request, CompletionBody)
        jobs = await service.jobs(request, service.converter.completion, body)
        writer = CompletionWriter(**self._shared(body, jobs[0].job_id), echo=service.converter.echo(body, jobs))
        return await service.answer(request, jobs, writer, stream=bool(body.stream))

    async def responses(self, request: Request) -> Response:
        service = self._service
        body = await service.read(request, ResponsesBody)
        jobs = await service.jobs(request, service.converter.responses, body)
        writer = ResponsesWriter(
            body=body,
            object_id=jobs[0].job_id,
            model=service.model_name(body.model),
            token_bytes=service.llm.runtime.token_bytes,
            reader=None if jobs[0].make_reader is None else jobs[0].make_reader(),
        )
        return await service.answer(request, jobs, writer, stream=bool(body.stream), dialect=responses_dialect(writer.error))

    def _shared(self, body: GenerationBody, object_id: str) -> dict[str, Any]:
        return {
            "object_id": object_id,
            "model": self._service.model_name(body.model),
            "token_bytes": self._service.llm.runtime.token_bytes,
            "include_usage": bool(body.stream_options and body.stream_options.include_usage),
        }

    async def models(self, request: Request) -> Response:
        names = self._service.settings.served_model_names
        return json_response({"object": "list", "data": [self._model_card(name) for name in names]})

    async def model(self, request: Request) -> Response:
        return json_response(self._model_card(self._service.model_name(request.path_params["name"])))

    def _model_card(self, name: str) -> dict[str, Any]:
        return {
            "id": name,
            "object": "model",
            "created": self._service.created,
            "owned_by": "formcast",
            "root": self._service.settings.served_model_names[0],
            "parent": None,
            "max_model_len": self._service.llm.runtime.max_model_len,
        }
