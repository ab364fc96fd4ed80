"""`formcast serve`: the HTTP server."""

from __future__ import annotations

import argparse
import gc
import json
import shlex
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..async_engine import AsyncLLM
from ..server.serve import serve
from ..server.settings import ServerSettings
from ..server.transport import Transport, bind, bind_unix
from . import options
from .errors import OK, CommandFailed, UsageError
from .loading import load

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def run(args: argparse.Namespace) -> int:
    settings = _settings(args)
    transport = _transport(args)
    runtime_options = options.runtime_options(args)
    with _listener(args) as listener, load(runtime_options) as runtime:

        def on_ready() -> None:
            # Half a million objects of modules, which live as long as the process: a garbage collection that visits them holds up every
            # stream for 0.2 s. The model is loaded, and what loading left is gone.
            gc.collect()
            gc.freeze()
            _announce(args, listener, settings)

        try:
            serve(AsyncLLM(runtime), settings, listener, on_ready=on_ready, transport=transport)
        finally:
            gc.unfreeze()  # extension modules count what the end of the process frees
    return OK


def _settings(args: argparse.Namespace) -> ServerSettings:
    if args.root_path and not args.root_path.startswith("/"):
        raise UsageError("--root-path must begin with '/'")
    return ServerSettings(
        served_model_names=tuple(args.served_model_name or [args.model]),
        api_keys=options.api_keys(args),
        allowed_origins=tuple(args.allowed_origins),
        root_path=args.root_path.rstrip("/"),
        max_body_bytes=args.max_request_bytes,
        request_timeout_s=args.request_timeout,
        shutdown_grace_s=args.shutdown_timeout,
        tool_call_format=args.tool_call_format,
        reasoning_parser=args.reasoning_parser,
        log_prompts=args.log_prompts,
        trust_request_chat_template=args.trust_request_chat_template,
    )


def _transport(args: argparse.Namespace) -> Transport:
    if args.ssl_keyfile and not args.ssl_certfile:
        raise UsageError("--ssl-keyfile needs --ssl-certfile")
    _check_tls(args.ssl_certfile, args.ssl_keyfile)
    return Transport(tls_certificate=args.ssl_certfile, tls_key=args.ssl_keyfile, log_level=args.log_level, log_format=args.log_format)


def _check_tls(certificate: str | None, key: str | None) -> None:
    """Before a model is loaded, rather than after."""
    for path in filter(None, (certificate, key)):
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
    if certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        files = certificate if key is None else f"{certificate} and {key}"
        raise UsageError(f"cannot speak TLS with {files}: not a PEM certificate and its private key without a password ({error})") from None


@contextmanager
def _listener(args: argparse.Namespace) -> Iterator[socket.socket]:
    with ExitStack() as stack:
        try:
            listener = stack.enter_context(bind(args.host, args.port) if args.uds is None else bind_unix(args.uds))
        except OSError as error:
            place = f"{args.host}:{args.port}" if args.uds is None else args.uds
            raise CommandFailed(f"cannot listen on {place}: {error.strerror or error}") from None
        yield listener


def _announce(args: argparse.Namespace, listener: socket.socket, settings: ServerSettings) -> None:
    """The ready line, and a request to paste. On stderr, like all that is not an answer."""
    url = _url(args, listener)
    # Bounded, because a small model may not find an end by itself.
    body = {"model": settings.served_model_names[0], "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 64}
    flags = (f" --unix-socket {shlex.quote(args.uds)}" if args.uds else "") + (" -k" if args.ssl_certfile else "")
    key = " -H 'Authorization: Bearer '$FORMCAST_API_KEY" if settings.api_keys else ""
    place = f"{url} (unix socket {args.uds})" if args.uds else url
    print(f"formcast: ready on {place}", file=sys.stderr)
    print(
        f"curl{flags} {url}/v1/chat/completions -H 'Content-Type: application/json'{key} -d {shlex.quote(json.dumps(body))}",
        file=sys.stderr,
        flush=True,
    )


def _url(args: argparse.Namespace, listener: socket.socket) -> str:
    scheme = "https" if args.ssl_certfile else "http"
    if args.uds:
        return f"{scheme}://localhost"
    host: str = args.host
    shown = _ANY_ADDRESS.get(host, host)
    return f"{scheme}://{f'[{shown}]' if ':' in shown else shown}:{listener.getsockname()[1]}"
