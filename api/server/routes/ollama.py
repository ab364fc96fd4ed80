"""`/api/...`: Ollama's protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .... import __version__
from ...jobs import Job
from ...ollama.convert import OllamaConverter
from ...ollama.model_card import card, description
from ...ollama.protocol import ChatBody, GenerateBody, OllamaBody, ShowBody
from ...ollama.writers import ChatWriter, GenerateWriter
from ...openai.errors import ApiError
from ..dialects import OLLAMA
from ..responses import json_response
from ..service import Service

if TYPE_CHECKING:
    from ....engine.models.model_info import ModelInfo

Body = TypeVar("Body", bound=OllamaBody)


class OllamaRoutes:
    def __init__(self, service: Service):
        self._service = service
        self._converter = OllamaConverter(service.llm.runtime, service.conversations)

    def routes(self) -> list[Route]:
        return [
            Route("/api/chat", self.chat, methods=["POST"]),
            Route("/api/generate", self.generate, methods=["POST"]),
            Route("/api/tags", self.tags, methods=["GET"]),
            Route("/api/ps", self.running, methods=["GET"]),
            Route("/api/show", self.show, methods=["POST"]),
            Route("/api/version", self.version, methods=["GET"]),
        ]

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, ChatBody, self._converter.chat, ChatWriter)

    async def generate(self, request: Request) -> Response:
        return await self._answer(request, GenerateBody, self._converter.generate, GenerateWriter)

    async def _answer(
        self,
        request: Request,
        kind: type[Body],
        convert: Callable[[Body], list[Job]],
        make_writer: type[ChatWriter] | type[GenerateWriter],
    ) -> Response:
        body = await self._service.read(request, kind)
        jobs = await self._service.jobs(request, convert, body)
        make_reader = jobs[0].make_reader if jobs else None
        writer = make_writer(
            model=body.model,
            token_bytes=self._service.llm.runtime.token_bytes,
            reader=None if make_reader is None else make_reader(),
        )
        if not jobs:
            return json_response(writer.loaded())
        return await self._service.answer(request, jobs, writer, stream=body.stream is not False, dialect=OLLAMA)

    async def tags(self, request: Request) -> Response:
        return json_response({"models": await self._cards()})

    async def running(self, request: Request) -> Response:
        """The model stays loaded as long as the server runs."""
        more = {"expires_at": "9999-12-31T23:59:59Z", "size_vram": 0, "context_length": self._service.llm.runtime.max_model_len}
        return json_response({"models": [shown | more for shown in await self._cards()]})

    async def show(self, request: Request) -> Response:
        body = await self._service.read(request, ShowBody)
        if body.model is None and body.name is None:
            raise ApiError(400, "'model' is needed", param="model", code="missing_value")
        self._service.model_name(body.model or body.name)
        template = self._service.llm.runtime.model.chat_template
        thinks = self._service.conversations.thinks
        return json_response(description(await self._info(), getattr(template, "source", ""), thinks=thinks))

    async def version(self, request: Request) -> Response:
        return json_response({"version": __version__})

    async def _cards(self) -> list[dict[str, Any]]:
        info = await self._info()
        return [card(name, info) for name in self._service.settings.served_model_names]

    async def _info(self) -> ModelInfo | None:
        return await asyncio.to_thread(self._service.llm.runtime.model_info)
