"""`formcast serve`: the HTTP server."""

from __future__ import annotations

import argparse
import json
import shlex
import socket
import sys

from ..async_engine import AsyncLLM
from ..server.serve import bind, serve
from ..server.settings import ServerSettings
from . import options
from .errors import OK, CommandFailed
from .loading import load

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def run(args: argparse.Namespace) -> int:
    settings = ServerSettings(
        served_model_names=tuple(args.served_model_name or [args.model]),
        api_keys=options.api_keys(args),
        max_body_bytes=args.max_request_bytes,
        shutdown_grace_s=args.shutdown_timeout,
        tool_call_format=args.tool_call_format,
    )
    runtime_options = options.runtime_options(args)
    with _bind(args.host, args.port) as listener, load(runtime_options) as runtime:
        url = _url(args.host, listener)
        serve(AsyncLLM(runtime), settings, listener, on_ready=lambda: _announce(url, settings), log_level=args.log_level)
    return OK


def _bind(host: str, port: int) -> socket.socket:
    try:
        return bind(host, port)
    except OSError as error:
        raise CommandFailed(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def _url(host: str, listener: socket.socket) -> str:
    shown = _ANY_ADDRESS.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{listener.getsockname()[1]}"


def _announce(url: str, settings: ServerSettings) -> None:
    """The ready line, and a request to paste. On stderr, like all that is not an answer."""
    body = {"model": settings.served_model_names[0], "messages": [{"role": "user", "content": "Say hello."}]}
    key = " -H 'Authorization: Bearer '$FORMCAST_API_KEY" if settings.api_keys else ""
    print(f"formcast: ready on {url}", file=sys.stderr)
    print(
        f"curl {url}/v1/chat/completions -H 'Content-Type: application/json'{key} -d {shlex.quote(json.dumps(body))}",
        file=sys.stderr,
        flush=True,
    )
