"""The two files of `formcast generate --batch`: what is asked, and what is answered so far.

A line of the input is a prompt: a JSON text, or an object with `prompt` or `messages`, and an `id` of the user's choice. A line of the
output holds the index of its input line and a digest of that line and of all settings, so that an interrupted run can go on, and only as it
began.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .batch_settings import Settings, digest
from .errors import CommandFailed, UsageError

_KNOWN = {"id", "prompt", "messages"}
_BEGINNING = b'{"index": '


@dataclass(frozen=True, kw_only=True)
class BatchItem:
    """One input line.

    Attributes:
        index: of the line, from 0.
        digest: of its bytes.
        item_id: `id`, if it has one.
        prompt: a text; None for a conversation.
        messages: a conversation; None for a text.
    """

    index: int
    digest: str
    item_id: Any
    prompt: str | None
    messages: list[dict[str, Any]] | None


def read_items(path: str) -> list[BatchItem]:
    """All lines of an input file; empty ones are skipped.

    Raises:
        UsageError: it cannot be read, or a line is malformed; the message names the line.
    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    return [_item(index, line, path) for index, line in enumerate(lines) if line.strip()]


def _item(index: int, line: bytes, path: str) -> BatchItem:
    place = f"{path}, line {index + 1}"
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise UsageError(f"{place} is not valid JSON") from None
    fields: Any = {"prompt": value} if isinstance(value, str) else value
    if not isinstance(fields, dict):
        raise UsageError(f"{place} must be a text or an object")
    unknown = sorted(fields.keys() - _KNOWN)
    if unknown:
        raise UsageError(f"{place} has an unknown field '{unknown[0]}'; there are {', '.join(sorted(_KNOWN))}")
    prompt, messages = fields.get("prompt"), fields.get("messages")
    if (prompt is None) == (messages is None):
        raise UsageError(f"{place} needs either 'prompt' or 'messages'")
    if prompt is not None and not isinstance(prompt, str):
        raise UsageError(f"{place}: 'prompt' must be a text")
    if messages is not None and not _is_conversation(messages):
        raise UsageError(f"{place}: 'messages' must be a list of objects with 'role' and 'content'")
    return BatchItem(index=index, digest=digest(line, length=16), item_id=fields.get("id"), prompt=prompt, messages=messages)


def _is_conversation(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str) for turn in value)
    )


class BatchOutput:
    """The output file, open for appending. Each answer is one whole line, or not there at all.

    Args:
        settings: with which the answers are made.
        restart: forget the answers that are there.

    Attributes:
        done: indexes of the input lines that are answered already.

    Raises:
        UsageError: the file cannot be written, is something else than answers, answers other lines or was made with other settings, or
            another run writes to it. It is as it was.
    """

    def __init__(self, path: str, items: list[BatchItem], settings: Settings, *, restart: bool = False):
        self.done: set[int] = set()
        self._path = path
        self._digests = {item.index: "-".join((item.digest, *settings.values())) for item in items}
        self._aspects = ("line", *settings)
        try:
            self._file: BinaryIO = open(path, "a+b")  # noqa: SIM115  it is closed by `close`
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        try:
            self._lock()
            end = self._read(restart=restart)
            self._file.truncate(0 if restart else end)
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            raise UsageError(f"cannot write answers to {self._path}: it is not a file")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another run is writing answers to {self._path}") from None

    def _read(self, *, restart: bool) -> int:
        """Notes what is done; the number of bytes of whole lines."""
        self._file.seek(0)
        end = 0
        for line in self._file:
            if not line.endswith(b"\n") and (line.startswith(_BEGINNING) or _BEGINNING.startswith(line)):
                break  # cut by whatever ended the run before
            index, made_of = self._key(line)
            if restart:
                continue
            self._check(index, made_of)
            self.done.add(index)
            end += len(line)
        return end

    def _key(self, line: bytes) -> tuple[int, str]:
        try:
            value = json.loads(line)
            index, made_of = value["index"], value["digest"]
        except (ValueError, TypeError, KeyError, RecursionError):
            index = made_of = None
        if not isinstance(index, int) or not isinstance(made_of, str):
            raise UsageError(f"{self._path} is not the output of a batch: name another file or remove it")
        return index, made_of

    def _check(self, index: int, made_of: str) -> None:
        now = self._digests.get(index)
        if now == made_of:
            return
        pairs = zip(self._aspects, (now or "").split("-"), made_of.split("-"), strict=False)
        other = [aspect for aspect, here, there in pairs if here != there]
        if "line" in other:
            what = f"answers to other prompts (its index {index} is not line {index + 1} of the input)"
        else:
            what = f"answers made with other settings ({', '.join(other)})"
        raise UsageError(f"{self._path} holds {what}: name another file, or --restart to answer all lines anew")

    def write(self, item: BatchItem, answer: dict[str, Any]) -> None:
        """Append an answer.

        Raises:
            CommandFailed: the disk is full, for instance.
        """
        named = {} if item.item_id is None else {"id": item.item_id}
        line = json.dumps({"index": item.index, "digest": self._digests[item.index], **named, **answer}, ensure_ascii=False)
        try:
            self._file.write(line.encode("utf-8", "replace") + b"\n")
            self._file.flush()
        except OSError as error:
            with contextlib.suppress(OSError):  # closing tries once more
                self._file.close()
            raise CommandFailed(f"cannot write answers to {self._path}: {error.strerror}") from None
        self.done.add(item.index)

    def close(self) -> None:
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()


def pending(items: list[BatchItem], output: BatchOutput) -> Iterator[BatchItem]:
    """Items without an answer."""
    return (item for item in items if item.index not in output.done)

