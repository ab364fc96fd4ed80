"""The OpenAPI document: what the routes take and give, from the models that read the bodies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ... import __version__
from .settings import ServerSettings

Schema = dict[str, Any]

EVENTS = "text/event-stream"
LINES = "application/x-ndjson"
_COMPONENT = "#/components/schemas/{model}"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one path.

    Attributes:
        path: with its parameters in braces.
        body: model of the request body; None for a request without one.
        answer: JSON Schema of a JSON answer; None for `media` alone.
        media: a further media type of answers.
        statuses: what may come besides 200 and the errors that any request can meet.
        parameters: names in the path.
        generates: it makes answers, in a time that a header may bound.
    """

    method: str
    path: str
    tag: str
    summary: str
    body: type[BaseModel] | None = None
    answer: Schema | None = None
    media: str | None = None
    statuses: tuple[int, ...] = ()
    parameters: tuple[str, ...] = ()
    generates: bool = False


def an_object(**properties: Schema) -> Schema:
    """An object that has these members, and may have others."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def a_list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}

_ERRORS = {
    400: "the request is wrong; the error names the field",
    401: "a valid API key is needed",
    404: "there is no such model or path",
    408: "the body did not arrive in time",
    413: "the body is too large",
    415: "the body is compressed",
    500: "the answer failed",
    503: "the queue is full, or the engine has stopped",
    504: "the answer took too long",
}
_BODY_ERRORS = (400, 404, 408, 413, 415, 500, 503, 504)


_PARAMETERS: Schema = {
    "RequestId": {
        "name": "X-Request-Id",
        "in": "header",
        "description": "comes back with the answer, if it is printable ASCII of at most 128 characters; else a new one does",
        "schema": TEXT,
    },
    "RequestTimeout": {
        "name": "X-Request-Timeout",
        "in": "header",
        "description": "seconds from the arrival of the request until its answer is complete; no more than the server allows",
        "schema": {"type": "number", "exclusiveMinimum": 0},
    },
}
_HEADERS: Schema = {
    "RequestId": {"description": "that of the request, or a new one", "required": True, "schema": {"type": "string", "minLength": 1}},
    "RetryAfter": {"description": "seconds until another try makes sense", "schema": {"type": "integer", "minimum": 0}},
}
_ID_HEADER: Schema = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}
_RETRY_HEADER: Schema = {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}


def document(operations: Iterable[Operation], settings: ServerSettings) -> Schema:
    """The whole document (OpenAPI 3.1)."""
    listed = list(operations)
    models = [operation.body for operation in listed if operation.body is not None]
    _, definitions = models_json_schema([(model, "validation") for model in models], by_alias=True, ref_template=_COMPONENT)
    paths: dict[str, Schema] = {}
    for operation in listed:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, needs_key=bool(settings.api_keys))
    components: Schema = {"schemas": definitions.get("$defs", {}), "parameters": _PARAMETERS, "headers": _HEADERS}
    if settings.api_keys:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    made: Schema = {"openapi": "3.1.0", "info": {"title": "formcast", "version": __version__}, "paths": paths, "components": components}
    return made | ({"servers": [{"url": settings.root_path}]} if settings.root_path else {})


def _operation(operation: Operation, *, needs_key: bool) -> Schema:
    open_path = operation.path == "/health"
    statuses = {*operation.statuses, *(_BODY_ERRORS if operation.body else ()), *((401,) if needs_key and not open_path else ())}
    made: Schema = {
        "tags": [operation.tag],
        "summary": operation.summary,
        "operationId": f"{operation.method.lower()}{operation.path}".replace("/", "_").replace("{", "").replace("}", ""),
        "responses": {"200": _answer(operation)} | {str(status): _error(status, operation.tag) for status in sorted(statuses)},
    }
    made["parameters"] = [
        *({"name": name, "in": "path", "required": True, "schema": TEXT} for name in operation.parameters),
        {"$ref": "#/components/parameters/RequestId"},
        *([{"$ref": "#/components/parameters/RequestTimeout"}] if operation.generates else ()),
    ]
    if operation.body is not None:
        schema = {"$ref": _COMPONENT.format(model=operation.body.__name__)}
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if needs_key and not open_path:
        made["security"] = [{"key": []}]
    return made


def _answer(operation: Operation) -> Schema:
    content: Schema = {}
    if operation.answer is not None:
        content["application/json"] = {"schema": operation.answer}
    if operation.media is not None:
        content[operation.media] = {}  # a stream of such objects: OpenAPI 3.1 has no schema for it
    return {"description": "the answer", "headers": _ID_HEADER, "content": content}


def _error(status: int, tag: str) -> Schema:
    if tag == "system" and status == 503:
        schema = an_object(status=TEXT)
    elif tag in ("ollama", "tgi"):
        schema = an_object(error=TEXT)
    else:
        schema = an_object(error=an_object(message=TEXT, type=TEXT, param={}, code={}))
    headers = _ID_HEADER | (_RETRY_HEADER if status == 503 else {})
    return {"description": _ERRORS[status], "headers": headers, "content": {"application/json": {"schema": schema}}}
