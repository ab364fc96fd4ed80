"""What can be set about the server itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Attributes:
    served_model_names: names that requests may use for the model; the first is the one in answers.
    api_keys: if any, each request needs one of them.
    allowed_origins: web pages of these origins may call the server from a browser (CORS); "*" is any.
    root_path: path under which a proxy shows the server.
    max_body_bytes: longer bodies are refused.
    max_answers: most answers that one request may ask for, over all its prompts.
    body_timeout_s: time for a body to arrive.
    header_timeout_s: time for the head of a request to arrive, once its first byte or its connection is there.
    write_timeout_s: time that a client may take no byte of what is waiting for it; then its connection is cut.
    request_timeout_s: time from the arrival of a request until its answer is complete, and so for reading it, schemas and all; None sets
        no limit. A request may ask for less (`timeout.py`).
    tool_call_format: how the model writes tool calls; None is what its chat template uses.
    reasoning_parser: how the model sets its thoughts off, "none" if it has none; None is what its chat template uses.
    shutdown_grace_s: time that running answers get to finish once the server is told to stop.
    log_prompts: log the texts that the model read, too.
    trust_request_chat_template: let requests bring a chat template of their own.
    """

    served_model_names: tuple[str, ...]
    api_keys: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    root_path: str = ""
    max_body_bytes: int = 8 << 20
    max_answers: int = 512
    body_timeout_s: float = 30.0
    header_timeout_s: float = 15.0
    write_timeout_s: float = 60.0
    request_timeout_s: float | None = None
    tool_call_format: str | None = None
    reasoning_parser: str | None = None
    shutdown_grace_s: float = 2.0
    log_prompts: bool = False
    trust_request_chat_template: bool = False
