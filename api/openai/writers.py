"""Answers -> response objects and stream chunks, one writer an endpoint.

A writer is made for one request and keeps what all its objects share (id, time, model).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...engine.request import RequestOutput, TokenLogprob
from ..results import CompletionResult
from .logprobs import TokenBytes, chat_logprobs, completion_logprobs


@dataclass(kw_only=True)
class Usage:
    """Tokens that a request has cost so far. Each prompt counts once, however many answers it has."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
        }


class Writer(Protocol):
    def response(self, answers: Sequence[CompletionResult], usage: Usage) -> dict[str, Any]: ...

    def opening(self, num_answers: int) -> list[dict[str, Any]]:
        """Chunks that come before any text."""
        ...

    def delta(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        """Chunks for one output; none if it adds nothing to see."""
        ...

    def closing(self, usage: Usage) -> list[dict[str, Any]]:
        """Chunks that come after the last output."""
        ...


@dataclass(frozen=True, kw_only=True)
class _Shared:
    """What every object of one request repeats.

    Attributes:
        include_usage: end a stream with a chunk that holds the usage; those before it carry `usage: null`.
    """

    object_id: str
    model: str
    token_bytes: TokenBytes
    include_usage: bool = False
    created: int = field(default_factory=lambda: int(time.time()))

    def envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.object_id, "object": kind, "created": self.created, "model": self.model, "choices": choices}

    def chunk(self, kind: str, choice: dict[str, Any]) -> dict[str, Any]:
        envelope = self.envelope(kind, [choice])
        return envelope | {"usage": None} if self.include_usage else envelope

    def usage_chunk(self, kind: str, usage: Usage) -> list[dict[str, Any]]:
        return [self.envelope(kind, []) | {"usage": usage.to_json()}] if self.include_usage else []


class ChatWriter(_Shared):
    """`chat.completion` and `chat.completion.chunk`."""

    def response(self, answers: Sequence[CompletionResult], usage: Usage) -> dict[str, Any]:
        return self.envelope("chat.completion", [self._choice(answer) for answer in answers]) | {"usage": usage.to_json()}

    def _choice(self, answer: CompletionResult) -> dict[str, Any]:
        return {
            "index": answer.index,
            "message": {"role": "assistant", "content": answer.text, "refusal": None},
            "logprobs": None if answer.logprobs is None else chat_logprobs(answer.logprobs, self.token_bytes),
            "finish_reason": answer.finish_reason,
            "stop_reason": answer.stop_reason,
        }

    def opening(self, num_answers: int) -> list[dict[str, Any]]:
        return [self._chunk(index, {"role": "assistant", "content": ""}) for index in range(num_answers)]

    def delta(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        chunks = []
        if output.text or output.logprobs:
            logprobs = chat_logprobs(output.logprobs, self.token_bytes) if output.logprobs else None
            chunks.append(self._chunk(index, {"content": output.text}, logprobs=logprobs))
        if output.finished:
            chunks.append(self._chunk(index, {}, finish_reason=output.finish_reason, stop_reason=output.stop_reason))
        return chunks

    def closing(self, usage: Usage) -> list[dict[str, Any]]:
        return self.usage_chunk("chat.completion.chunk", usage)

    def _chunk(
        self, index: int, delta: dict[str, Any], *, logprobs: Any = None, finish_reason: str | None = None, **more: Any
    ) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason, **more}
        return self.chunk("chat.completion.chunk", choice)


@dataclass(frozen=True, kw_only=True)
class CompletionWriter(_Shared):
    """`text_completion`, whole and in pieces.

    Attributes:
        echo: what comes before the text of each answer; nothing if it is empty.
        offsets: characters that the tokens of each answer have spelt so far, for `logprobs.text_offset`.
    """

    echo: tuple[str, ...] = ()
    offsets: dict[int, int] = field(default_factory=dict)

    def response(self, answers: Sequence[CompletionResult], usage: Usage) -> dict[str, Any]:
        choices = [
            self._choice(answer.index, self._echo(answer.index) + answer.text, answer.logprobs, answer.finish_reason, answer.stop_reason)
            for answer in answers
        ]
        return self.envelope("text_completion", choices) | {"usage": usage.to_json()}

    def opening(self, num_answers: int) -> list[dict[str, Any]]:
        return [self.chunk("text_completion", self._choice(index, text, None, None, None)) for index, text in enumerate(self.echo)]

    def _echo(self, index: int) -> str:
        return self.echo[index] if self.echo else ""

    def delta(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        if not (output.text or output.logprobs or output.finished):
            return []
        choice = self._choice(index, output.text, output.logprobs, output.finish_reason, output.stop_reason)
        return [self.chunk("text_completion", choice)]

    def closing(self, usage: Usage) -> list[dict[str, Any]]:
        return self.usage_chunk("text_completion", usage)

    def _choice(self, index: int, text: str, logprobs: Any, finish_reason: str | None, stop_reason: str | int | None) -> dict[str, Any]:
        shown = self._logprobs(index, logprobs) if logprobs else None
        return {"index": index, "text": text, "logprobs": shown, "finish_reason": finish_reason, "stop_reason": stop_reason}

    def _logprobs(self, index: int, logprobs: Sequence[TokenLogprob]) -> dict[str, Any]:
        shown = completion_logprobs(logprobs, self.token_bytes, offset=self.offsets.get(index, 0))
        self.offsets[index] = self.offsets.get(index, 0) + sum(map(len, shown["tokens"]))
        return shown
