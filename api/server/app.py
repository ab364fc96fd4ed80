"""The HTTP application."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from ...grammar.errors import FormcastError
from ..async_engine import AsyncLLM
from ..openai.errors import ApiError
from .auth import BearerAuth, route_path
from .dialects import dialect_of
from .errors import of_status, to_api_error
from .observer import Observer
from .record import record_of
from .responses import error_response
from .routes.ollama import OllamaRoutes
from .routes.openai import OpenAIRoutes
from .routes.system import SystemRoutes
from .routes.tgi import TgiRoutes
from .service import Service
from .settings import ServerSettings

CLIENT_CLOSED_REQUEST = 499
_FAMILIES = (OpenAIRoutes, OllamaRoutes, TgiRoutes, SystemRoutes)


def create_app(llm: AsyncLLM, settings: ServerSettings) -> ASGIApp:
    """The application over a running model. It owns neither the model nor a socket."""
    service = Service(llm, settings)
    routes = service_routes(service)
    paths = [route.path for route in routes]
    handlers = dict.fromkeys((ApiError, FormcastError, Exception), _on_error)
    app: ASGIApp = FastAPI(
        openapi_url=None,  # the document is one of the routes
        routes=list[BaseRoute](routes),
        exception_handlers={**handlers, HTTPException: partial(_on_http_exception, paths), ClientDisconnect: _on_disconnect},
    )
    if settings.api_keys:
        app = BearerAuth(app, keys=settings.api_keys)
    if settings.allowed_origins:
        app = CORSMiddleware(app, allow_origins=settings.allowed_origins, allow_methods=("GET", "POST"), allow_headers=("*",))
    return Observer(app, metrics=service.metrics, paths={route.endpoint: route.path for route in routes})


def service_routes(service: Service) -> list[Route]:
    """All routes."""
    return [route for family in _FAMILIES for route in family(service).routes()]


def _answer(request: Request, error: ApiError) -> Response:
    record_of(request.scope).error_code = error.code
    return error_response(error, dialect_of(route_path(request.scope)))


async def _on_error(request: Request, error: Exception) -> Response:
    return _answer(request, to_api_error(error))


async def _on_http_exception(paths: Sequence[str], request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = error.headers or {}
    answer = _answer(request, of_status(error.status_code, request.url.path, paths=paths, allowed=headers.get("Allow")))
    answer.headers.update(headers)
    return answer


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED_REQUEST)
