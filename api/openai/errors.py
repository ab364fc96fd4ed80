"""Errors as OpenAI clients expect them.

    ApiError                    an HTTP status and the body {"error": {message, type, param, code}}

`ApiError` is made at the border only, by `from_exception` or by the few checks that exist in the protocol alone.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from .complaints import first_complaint

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    415: "invalid_request_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
}


_MAX_MESSAGE_CHARS = 2000


class ApiError(Exception):
    """One answer that is an error.

    Attributes:
        status: HTTP status.
        message: one sentence for a person; the middle of a very long one is left out.
        param: the request field that is wrong, as a path (`messages[0].content`), or None.
        code: a stable short name, or None.
    """

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None):
        self.status = status
        self.message = _bounded(message)
        self.param = param
        self.code = code
        super().__init__(self.message)

    @property
    def type(self) -> str:
        return _TYPES.get(self.status, "server_error")

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


def _bounded(message: str) -> str:
    """Messages quote what they refuse, and places in it, which can be as long as the request."""
    half = _MAX_MESSAGE_CHARS // 2
    return message if len(message) <= _MAX_MESSAGE_CHARS else f"{message[:half]} ... {message[-half:]}"


def bad_request(message: str, *, param: str | None = None, code: str = "invalid_value") -> ApiError:
    return ApiError(400, message, param=param, code=code)


def not_supported(what: str, *, param: str) -> ApiError:
    """A field of the protocol that is refused rather than ignored."""
    return bad_request(f"{what} is not supported", param=param, code="unsupported_parameter")


def from_validation(error: ValidationError, *, prefix: str = "") -> ApiError:
    """The first complaint of Pydantic about a request body, or about the part of one that `prefix` names."""
    return bad_request(**first_complaint(error, prefix)._asdict())
