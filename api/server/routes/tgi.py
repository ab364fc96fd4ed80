"""`/generate` and `/generate_stream`: TGI's protocol, also at `/`, where Hugging Face's clients send it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .... import __version__
from ...tgi.convert import TgiConverter
from ...tgi.protocol import TgiBody
from ...tgi.writer import TgiWriter
from ..dialects import TGI
from ..responses import json_response
from ..service import Service


class TgiRoutes:
    def __init__(self, service: Service):
        self._service = service
        self._converter = TgiConverter(service.llm.runtime)
        added = service.llm.runtime.model.tokenizer.get_added_tokens_decoder()
        self._special = frozenset(token_id for token_id, token in added.items() if token.special)

    def routes(self) -> list[Route]:
        return [
            Route("/", self.either, methods=["POST"]),
            Route("/generate", self.generate, methods=["POST"]),
            Route("/generate_stream", self.generate_stream, methods=["POST"]),
            Route("/info", self.info, methods=["GET"]),
        ]

    async def either(self, request: Request) -> Response:
        body = await self._service.read(request, TgiBody)
        return await self._answer(request, body, stream=bool(body.stream))

    async def generate(self, request: Request) -> Response:
        return await self._answer(request, await self._service.read(request, TgiBody), stream=False)

    async def generate_stream(self, request: Request) -> Response:
        return await self._answer(request, await self._service.read(request, TgiBody), stream=True)

    async def _answer(self, request: Request, body: TgiBody, *, stream: bool) -> Response:
        jobs = await self._service.jobs(request, self._converter.generate, body)
        writer = TgiWriter(
            body=body,
            num_prompt_tokens=len(jobs[0].prompt.token_ids),
            token_bytes=self._service.llm.runtime.token_bytes,
            special=self._special,
        )
        return await self._service.answer(request, jobs, writer, stream=stream, dialect=TGI)

    async def info(self, request: Request) -> Response:
        runtime = self._service.llm.runtime
        return json_response(
            {
                "model_id": self._service.settings.served_model_names[0],
                "max_input_tokens": runtime.max_model_len - 1,
                "max_total_tokens": runtime.max_model_len,
                "max_concurrent_requests": runtime.max_waiting,
                "max_best_of": 1,
                "version": __version__,
                "router": "formcast",
            }
        )
