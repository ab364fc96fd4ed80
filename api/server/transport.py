"""How a server is reached: sockets, TLS, logs."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from .logs import LogFormat

_UNIX_SOCKET_MODE = 0o660  # its owner, and a proxy in the same group


@dataclass(frozen=True, kw_only=True)
class Transport:
    """Attributes:
    tls_certificate: PEM file with the certificate and its chain; None speaks plain HTTP.
    tls_key: PEM file with the private key, if the certificate's does not hold it.
    """

    tls_certificate: str | None = None
    tls_key: str | None = None
    log_level: str = "warning"
    log_format: LogFormat = "json"


PLAIN = Transport()


def bind(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet, so that a taken port shows before a model is loaded and clients are refused until
    it is. Port 0 takes any free one. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


@contextmanager
def bind_unix(path: str) -> Iterator[socket.socket]:
    """The same on a Unix socket, which is removed at the end. One that a dead server left is replaced.

    Raises:
        OSError: the path is taken by a live server or by another kind of file, or cannot be made.
    """
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(path)
        os.chmod(path, _UNIX_SOCKET_MODE)
    except OSError:
        bound.close()
        raise
    try:
        yield bound
    finally:
        bound.close()
        with suppress(FileNotFoundError):
            os.unlink(path)


def _remove_stale(path: str) -> None:
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return  # binding will say that the path is taken
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
