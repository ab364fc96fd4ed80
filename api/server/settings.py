"""What can be set about the server itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Attributes:
    served_model_names: names that requests may use for the model; the first is the one in answers.
    api_keys: if any, each request needs one of them.
    max_body_bytes: longer bodies are refused.
    body_timeout_s: time for a body to arrive.
    tool_call_format: how the model writes tool calls; None is what its chat template uses.
    shutdown_grace_s: time that running answers get to finish once the server is told to stop.
    """

    served_model_names: tuple[str, ...]
    api_keys: tuple[str, ...] = ()
    max_body_bytes: int = 8 << 20
    body_timeout_s: float = 30.0
    shutdown_grace_s: float = 2.0
    tool_call_format: str | None = None
