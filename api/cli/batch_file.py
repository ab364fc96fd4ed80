"""The two files of `formcast generate --batch`: what is asked, and what is answered so far.

A line of the input is a prompt: a JSON text, or an object with `prompt` or `messages`, and an `id` of the user's choice. A line of the
output holds the index of its input line and a digest of it, so that an interrupted run can go on and nobody goes on with other prompts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .errors import CommandFailed, UsageError

_KNOWN = {"id", "prompt", "messages"}


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
    digest = hashlib.sha256(line).hexdigest()[:16]
    return BatchItem(index=index, digest=digest, item_id=fields.get("id"), prompt=prompt, messages=messages)


def _is_conversation(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str) for turn in value)
    )


class BatchOutput:
    """The output file, open for appending. Each answer is one whole line, or not there at all.

    Attributes:
        done: indexes of the input lines that are answered already.
    """

    def __init__(self, path: str, items: list[BatchItem]):
        self.done: set[int] = set()
        try:
            self._file: BinaryIO = open(path, "a+b")  # noqa: SIM115  it is closed by `close`
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        try:
            self._resume(path, {item.index: item.digest for item in items})
        except BaseException:
            self._file.close()
            raise

    def _resume(self, path: str, digests: dict[int, str]) -> None:
        self._file.seek(0)
        end = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break  # cut by whatever ended the run before
            index, digest = _key(line, path)
            if digests.get(index) != digest:
                raise UsageError(f"{path} holds answers to other prompts (see its line for index {index}): name another file or remove it")
            self.done.add(index)
            end += len(line)
        self._file.truncate(end)

    def write(self, item: BatchItem, answer: dict[str, Any]) -> None:
        """Append an answer.

        Raises:
            CommandFailed: the disk is full, for instance.
        """
        named = {} if item.item_id is None else {"id": item.item_id}
        line = json.dumps({"index": item.index, "digest": item.digest, **named, **answer}, ensure_ascii=False)
        try:
            self._file.write(line.encode("utf-8", "replace") + b"\n")
            self._file.flush()
        except OSError as error:
            raise CommandFailed(f"cannot write an answer: {error.strerror}") from None
        self.done.add(item.index)

    def close(self) -> None:
        os.fsync(self._file.fileno())
        self._file.close()


def pending(items: list[BatchItem], output: BatchOutput) -> Iterator[BatchItem]:
    """Items without an answer."""
    return (item for item in items if item.index not in output.done)


def _key(line: bytes, path: str) -> tuple[int, str]:
    try:
        value = json.loads(line)
        index, digest = value["index"], value["digest"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UsageError(f"{path} is not the output of a batch: name another file or remove it") from None
    if not isinstance(index, int) or not isinstance(digest, str):
        raise UsageError(f"{path} is not the output of a batch: name another file or remove it")
    return index, digest
