"""Fetching one file over HTTP or from a `file:` URL, so that an interruption costs little.

Bytes arrive in `<target>.part`; the next call asks the server for the rest (RFC 9110, section 14) and starts over when
the server does not offer that or the sum is wrong. Only a complete, checked file ever has the target's name.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

_SCHEMES = ("https", "http", "file")
_CHUNK_BYTES = 1 << 18
_TIMEOUT_SECONDS = 60.0
_MAX_ATTEMPTS = 4
_RANGE_NOT_SATISFIABLE = 416


class TransferError(Exception):
    """A file could not be fetched; the message says why in one line."""


class _Interrupted(Exception):
    """The connection ended before the file did."""


def download(url: str, target: Path, *, sha256: str | None, on_bytes: Callable[[int], None]) -> None:
    """Fetch `url` into `target`, continuing what an earlier call left behind.

    Args:
        sha256: the checksum to insist on, in hexadecimal; None trusts what comes.
        on_bytes: told how many bytes more are here; negative when some must be fetched again.

    Raises:
        TransferError: the server refused, the connection kept breaking, or the checksum is wrong.
        OSError: the file cannot be written.
    """
    if urlsplit(url).scheme not in _SCHEMES:
        raise TransferError(f"{url} is neither an http nor a file URL")
    if sha256 is not None and target.is_file() and file_sha256(target) == sha256:
        on_bytes(target.stat().st_size)
        return
    part = target.with_name(f"{target.name}.part")
    resumed = _fetch(url, part, on_bytes)
    if not _matches(part, sha256) and resumed:
        _discard(part, on_bytes)
        _fetch(url, part, on_bytes)
    if not _matches(part, sha256):
        _discard(part, on_bytes)
        raise TransferError(f"{url} has the wrong checksum")
    os.replace(part, target)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _matches(part: Path, sha256: str | None) -> bool:
    return sha256 is None or file_sha256(part) == sha256


def _discard(part: Path, on_bytes: Callable[[int], None]) -> None:
    on_bytes(-part.stat().st_size)
    part.unlink()


def _fetch(url: str, part: Path, on_bytes: Callable[[int], None]) -> bool:
    """Bring `part` to its full length; whether bytes of an earlier call are in it."""
    start = part.stat().st_size if part.is_file() else 0
    on_bytes(start)
    resumed = start > 0
    for attempt in range(_MAX_ATTEMPTS):
        try:
            resumed &= _fetch_rest(url, part, on_bytes)
            return resumed
        except (_Interrupted, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            if attempt + 1 == _MAX_ATTEMPTS:
                raise TransferError(f"the connection to {urlsplit(url).hostname} keeps breaking") from error
    return resumed


def _fetch_rest(url: str, part: Path, on_bytes: Callable[[int], None]) -> bool:
    """One request. Returns whether the bytes that were there before still are."""
    start = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url)
    if start and urlsplit(url).scheme != "file":
        request.add_header("Range", f"bytes={start}-")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
            continues = start > 0 and _continues(response, start)
            if start and not continues:
                on_bytes(-start)
            with open(part, "ab" if continues else "wb") as file:
                _copy(response, file, on_bytes)
            return continues
    except urllib.error.HTTPError as error:
        if error.code != _RANGE_NOT_SATISFIABLE or not start:
            raise TransferError(f"the server answered {error.code} {error.reason} for {url}") from error
        _discard(part, on_bytes)
        return _fetch_rest(url, part, on_bytes)
    except urllib.error.URLError as error:
        raise TransferError(f"cannot reach {urlsplit(url).hostname or url}: {error.reason}") from error


def _continues(response: http.client.HTTPResponse, start: int) -> bool:
    """Whether the answer is the rest of the file from `start`, not the whole file."""
    content_range = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return getattr(response, "status", None) == http.HTTPStatus.PARTIAL_CONTENT and bool(content_range) and int(content_range[1]) == start


def _copy(response: http.client.HTTPResponse, file: IO[bytes], on_bytes: Callable[[int], None]) -> None:
    expected = response.headers.get("Content-Length")
    received = 0
    while chunk := response.read(_CHUNK_BYTES):
        file.write(chunk)
        received += len(chunk)
        on_bytes(len(chunk))
    file.flush()
    os.fsync(file.fileno())
    if expected is not None and received < int(expected):
        raise _Interrupted
