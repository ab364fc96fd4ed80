"""The HTTP application."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ... import __version__
from ...grammar.errors import FormcastError
from ..async_engine import AsyncLLM
from ..jobs import Job
from ..openai.convert import Converter
from ..openai.errors import ApiError
from ..openai.json_body import parse_json_object
from ..openai.protocol import ChatCompletionBody, CompletionBody, GenerationBody
from ..openai.tool_writer import ToolChatWriter
from ..openai.writers import ChatWriter, CompletionWriter
from .auth import BearerAuth
from .body import read_body
from .errors import of_status, to_api_error
from .generation import Generation
from .responses import error_response, json_response
from .settings import ServerSettings

Body = TypeVar("Body", bound=GenerationBody)

CLIENT_CLOSED_REQUEST = 499


def create_app(llm: AsyncLLM, settings: ServerSettings) -> FastAPI:
    """The application over a running model. It owns neither the model nor a socket."""
    app = FastAPI(title="formcast", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    endpoints = _Endpoints(llm, settings)
    app.add_api_route("/v1/chat/completions", endpoints.chat_completions, methods=["POST"])
    app.add_api_route("/v1/completions", endpoints.completions, methods=["POST"])
    app.add_api_route("/v1/models", endpoints.models, methods=["GET"])
    app.add_api_route("/v1/models/{name:path}", endpoints.model, methods=["GET"])
    app.add_api_route("/health", endpoints.health, methods=["GET"])
    app.add_api_route("/version", endpoints.version, methods=["GET"])
    for kind in (ApiError, FormcastError, Exception):
        app.add_exception_handler(kind, _on_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)
    if settings.api_keys:
        app.add_middleware(BearerAuth, keys=settings.api_keys)
    return app


class _Endpoints:
    """The routes, over one model."""

    def __init__(self, llm: AsyncLLM, settings: ServerSettings):
        self._llm = llm
        self._settings = settings
        self._converter = Converter(llm.runtime, tool_call_format=settings.tool_call_format)
        self._created = int(time.time())

    async def chat_completions(self, request: Request) -> Response:
        body = await self._read(request, ChatCompletionBody)
        return await self._generate(request, body, self._converter.chat, ChatWriter)

    async def completions(self, request: Request) -> Response:
        body = await self._read(request, CompletionBody)
        return await self._generate(request, body, self._converter.completion, CompletionWriter)

    async def _read(self, request: Request, kind: type[Body]) -> Body:
        raw = await read_body(request, max_bytes=self._settings.max_body_bytes, timeout_s=self._settings.body_timeout_s)
        try:
            body = kind.model_validate(parse_json_object(raw))
        except ValueError as error:
            raise to_api_error(error) from None
        self._check_model(body.model)
        return body

    def _check_model(self, name: str | None) -> None:
        names = self._settings.served_model_names
        if name is not None and name not in names:
            raise ApiError(
                404, f"model '{name[:200]}' is not served here; there is {' or '.join(names)}", param="model", code="model_not_found"
            )

    async def _generate(
        self,
        request: Request,
        body: Body,
        convert: Callable[[Body], list[Job]],
        writer: type[ChatWriter] | type[CompletionWriter],
    ) -> Response:
        jobs = await asyncio.to_thread(convert, body)
        include_usage = bool(body.stream_options and body.stream_options.include_usage)
        make_writer = writer if jobs[0].make_reader is None else partial(ToolChatWriter, make_reader=jobs[0].make_reader)
        generation = Generation(
            jobs=jobs,
            writer=make_writer(
                object_id=jobs[0].job_id,
                model=body.model or self._settings.served_model_names[0],
                token_bytes=self._llm.runtime.token_bytes,
                include_usage=include_usage,
            ),
            stream=bool(body.stream),
            include_usage=include_usage,
        )
        return await generation.respond(self._llm, request.receive)

    async def models(self) -> Response:
        return json_response({"object": "list", "data": [self._model_card(name) for name in self._settings.served_model_names]})

    async def model(self, name: str) -> Response:
        self._check_model(name)
        return json_response(self._model_card(name))

    def _model_card(self, name: str) -> dict[str, Any]:
        return {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "formcast",
            "max_model_len": self._llm.runtime.max_model_len,
        }

    async def health(self) -> Response:
        return json_response({"status": "ok"})

    async def version(self) -> Response:
        return json_response({"version": __version__})


async def _on_error(request: Request, error: Exception) -> Response:
    return error_response(to_api_error(error))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(of_status(error.status_code, request.url.path))


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED_REQUEST)
