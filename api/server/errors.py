"""Exceptions -> error answers, in one place."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Sequence
from http import HTTPStatus

from pydantic import ValidationError

from ...engine.errors import ChatTemplateError
from ...engine.request import DeadlineExceeded, EngineOverloaded, EngineStopped, InvalidRequest, RequestOutput
from ...grammar.errors import FormcastError, GrammarError
from ..constraints import Constraint
from ..openai.constraints import refused
from ..openai.errors import ApiError, bad_request, from_validation
from ..prompts import ContextLengthExceeded
from ..tools.tool import ToolError

_MAX_PATH_CHARS = 200
logger = logging.getLogger(__name__)


def to_api_error(error: Exception, *, constraint: Constraint | None = None) -> ApiError:
    """The answer to an exception.

    Args:
        constraint: that of the request, so that a grammar that failed names its field.
    """
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ValidationError):
        return from_validation(error)
    if isinstance(error, GrammarError) and constraint is not None:
        return refused(error, field=constraint.field)
    if isinstance(error, ToolError):
        return bad_request(str(error), param=error.field, code="invalid_tool")
    if isinstance(error, ContextLengthExceeded):
        return bad_request(error.message, param=error.param, code="context_length_exceeded")
    if isinstance(error, InvalidRequest):
        return bad_request(error.message, param=error.param)
    if isinstance(error, ChatTemplateError):
        return bad_request(str(error), param="messages")
    if isinstance(error, EngineOverloaded):
        return ApiError(503, str(error) or "too many requests are waiting", code="engine_overloaded")
    if isinstance(error, EngineStopped):
        return ApiError(503, str(error) or "the engine has stopped", code="engine_stopped")
    if isinstance(error, DeadlineExceeded):
        return ApiError(504, str(error), code="deadline_exceeded")
    if isinstance(error, FormcastError):
        return ApiError(500, str(error), code="generation_failed")
    logger.error("a request failed unexpectedly", exc_info=error)
    return ApiError(500, "internal error", code="internal_error")


def failure(output: RequestOutput, constraint: Constraint | None) -> ApiError | None:
    """The error that an engine output stands for, if it does."""
    if output.finish_reason == "abort":
        return ApiError(503, "the server is shutting down", code="aborted")
    if output.error is not None:
        return to_api_error(output.error, constraint=constraint)
    return None


def of_status(status: int, path: str, *, paths: Sequence[str], allowed: str | None) -> ApiError:
    """The answer to a path or method that the server does not have.

    Args:
        paths: those that it has.
        allowed: methods that a path takes.
    """
    shown = path if len(path) <= _MAX_PATH_CHARS else path[:_MAX_PATH_CHARS] + "..."
    if status == HTTPStatus.NOT_FOUND:
        nearest = difflib.get_close_matches(shown, paths, n=1, cutoff=0.7)
        hint = f"; did you mean '{nearest[0]}'?" if nearest else "; /openapi.json lists what there is"
        return ApiError(404, f"there is no '{shown}' here{hint}", code="unknown_url")
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return ApiError(405, f"'{shown}' does not answer to this method, but to {allowed}", code="method_not_allowed")
    return ApiError(status, HTTPStatus(status).phrase.lower())
