"""Sampling parameters of a body, whatever its fields are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.request import InvalidRequest, SamplingParams
from .errors import bad_request


def sampling_params(given: Mapping[str, Any], renamed: Mapping[str, str]) -> SamplingParams:
    """Parameters from values; None means the default.

    Args:
        renamed: parameter -> field of the body, where they differ; errors name the field.

    Raises:
        ApiError: 400, for a value out of range.
    """
    try:
        return SamplingParams(**{name: value for name, value in given.items() if value is not None})
    except InvalidRequest as error:
        field = renamed.get(error.param or "", error.param)
        named = error.param is not None and error.message.startswith(error.param)
        message = f"{field}{error.message[len(error.param or '') :]}" if named else f"{field}: {error.message}"
        raise bad_request(message, param=field) from None
