"""How long a request may take."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from ..openai.errors import bad_request

HEADER = "x-request-timeout"
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")  # as JSON writes them; float() reads more


def request_timeout(headers: Mapping[str, str], most_s: float | None) -> float | None:
    """Seconds from the arrival of a request until its answer is complete: what its header says, but no more than the server allows.

    Args:
        most_s: what the server allows; None sets no limit.

    Raises:
        ApiError: 400, if the header is no positive number.
    """
    given = headers.get(HEADER)
    if given is None:
        return most_s
    seconds = float(given) if _NUMBER.fullmatch(given) else math.nan
    if not 0 < seconds < math.inf:
        message = f"the header X-Request-Timeout must be a positive number of seconds, not {given[:64]!r}"
        raise bad_request(message, param="X-Request-Timeout")
    return seconds if most_s is None else min(seconds, most_s)
