"""Arrays on disk, by what they were made of.

A file is the SHA-256 of what follows it, and then a safetensors file whose metadata repeats the key. It is written beside its place and
moved there whole, so that readers and other writers, and whoever is killed in the middle, leave nothing half done.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

_log = logging.getLogger(__name__)

_DIGEST_BYTES = hashlib.sha256().digest_size
_SUFFIX, _UNFINISHED = ".tables", ".unfinished"
_ABANDONED_AFTER = 3600  # seconds: no writer takes so long
_DEFAULT_MAX_BYTES = 1 << 30


class ArrayStore:
    """Named arrays by key, in a folder that processes may share. What cannot be read or written is as if it were not there: it is logged,
    once, and never raised.

    The folder has to be as trustworthy as the code: the digests find damage, not forgery. It is made for its user alone.

    Args:
        folder: made when something is first written.
        max_bytes: of all files together; those used longest ago go first.
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int = _DEFAULT_MAX_BYTES):
        self._folder = Path(folder)
        self._max_bytes = max_bytes
        self._complaints: set[str] = set()

    def get(self, key: str) -> dict[str, np.ndarray] | None:
        """What was put under a key, if it is there and whole. The arrays are writable and their own.

        Args:
            key: says all that the arrays depend on, the version of the code that made them included.
        """
        path = self._path(key)
        try:
            arrays = _parse(path.read_bytes(), key)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._complain(f"{path} cannot be read: {error}")
            return None
        except ValueError as error:
            self._complain(f"{path} is made anew: {error}")
            return None
        with suppress(OSError):
            os.utime(path)  # used now, see `_make_room`
        return arrays

    def put(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keeps arrays under a key, in place of what was there."""
        data = _format(arrays, key)
        if len(data) > self._max_bytes:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room(len(data))
            self._write(self._path(key), data)
        except OSError as error:
            self._complain(f"tables cannot be kept in {self._folder}: {error}")

    def _path(self, key: str) -> Path:
        return self._folder / (hashlib.sha256(key.encode()).hexdigest()[:32] + _SUFFIX)

    def _write(self, path: Path, data: bytes) -> None:
        descriptor, name = tempfile.mkstemp(_UNFINISHED, dir=self._folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        _sync_folder(self._folder)

    def _make_room(self, num_bytes: int) -> None:
        """Removes what writers that were killed left behind, and what was used longest ago, until so much more fits."""
        files: list[tuple[float, int, Path]] = []
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):  # another process makes room too
                facts = entry.stat()
                if entry.name.endswith(_SUFFIX):
                    files.append((facts.st_mtime, facts.st_size, Path(entry.path)))
                elif entry.name.endswith(_UNFINISHED) and facts.st_mtime < time.time() - _ABANDONED_AFTER:
                    os.unlink(entry.path)
        total = num_bytes + sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._max_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size

    def _complain(self, message: str) -> None:
        if message not in self._complaints:
            self._complaints.add(message)
            _log.warning("%s", message)


def _format(arrays: Mapping[str, np.ndarray], key: str) -> bytes:
    from safetensors.numpy import save

    body = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {"key": key})
    return hashlib.sha256(body).digest() + body


def _parse(data: bytes, key: str) -> dict[str, np.ndarray]:
    """Raises ValueError if this is not what `_format` made of the same key."""
    from safetensors.numpy import load

    digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("the file is damaged")
    header_stop = 8 + int.from_bytes(body[:8], "little")
    if json.loads(body[8:header_stop]).get("__metadata__") != {"key": key}:
        raise ValueError("the file holds something else, or is of another version")
    return load(body)


def _sync_folder(folder: Path) -> None:
    """Makes the move of a file last, where the file system can say so."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
