"""What operators and tools ask: health, version, metrics, tokens."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .... import __version__
from ...openai.tokenize import DetokenizeBody, TokenizeBody
from ..openapi import document
from ..operations import OPERATIONS
from ..responses import json_response
from ..service import Service


class SystemRoutes:
    def __init__(self, service: Service):
        self._service = service

    def routes(self) -> list[Route]:
        return [
            Route("/health", self.health, methods=["GET"]),
            Route("/version", self.version, methods=["GET"]),
            Route("/metrics", self.metrics, methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            Route("/tokenize", self.tokenize, methods=["POST"]),
            Route("/detokenize", self.detokenize, methods=["POST"]),
        ]

    async def health(self, request: Request) -> Response:
        """503 once the engine has failed or was closed, so that whoever watches can start another."""
        if self._service.llm.runtime.engine.alive:
            return json_response({"status": "ok"})
        return json_response({"status": "engine stopped"}, status=503)

    async def version(self, request: Request) -> Response:
        return json_response({"version": __version__})

    async def metrics(self, request: Request) -> Response:
        return Response(self._service.metrics.render(), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    async def openapi(self, request: Request) -> Response:
        return json_response(document(OPERATIONS, self._service.settings))

    async def tokenize(self, request: Request) -> Response:
        body = await self._service.read(request, TokenizeBody)
        return json_response(await self._service.run(request, self._service.converter.tokenize, body))

    async def detokenize(self, request: Request) -> Response:
        body = await self._service.read(request, DetokenizeBody)
        return json_response(await self._service.run(request, self._service.converter.detokenize, body))
