"""What an answer says of its failure."""

from __future__ import annotations

import logging

from ..grammar.errors import FormcastError
from .kernels.masked_sample import RowStatus
from .request import GenerationError

_log = logging.getLogger(__name__)


def failure(error: Exception) -> FormcastError:
    """Errors that a user can cause are passed on; any other is logged in full and only named in the answer."""
    if isinstance(error, FormcastError):
        return error
    _log.error("a request failed", exc_info=error)
    wrapped = GenerationError(f"the engine failed: {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


def no_token(num_generated: int, status: RowStatus) -> GenerationError:
    """Why nothing was sampled behind so many tokens of an answer."""
    if status is RowStatus.NO_TOKEN:
        return GenerationError(f"no token can follow after {num_generated} generated tokens")
    return GenerationError("the model's logits are not numbers")
