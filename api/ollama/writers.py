"""Answers -> Ollama's objects, whole and in pieces."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ...engine.request import RequestOutput, TokenLogprob
from ..openai.logprobs import TokenBytes, chat_logprobs
from ..openai.writers import Usage
from ..results import CompletionResult


@dataclass(kw_only=True)
class _OllamaWriter:
    """What both endpoints share.

    Attributes:
        model: the name that the request used.
        started, first: nanoseconds on a monotonic clock: of the start, of the first output.
    """

    model: str
    token_bytes: TokenBytes
    started: int = field(default_factory=time.perf_counter_ns)
    first: int | None = None
    finish_reason: str | None = None

    def text(self, text: str) -> dict[str, Any]:
        """Where the text stands in an object."""
        raise NotImplementedError

    def response(self, answers: Sequence[CompletionResult], usage: Usage) -> dict[str, Any]:
        (answer,) = answers
        return self._object(answer.text, answer.logprobs) | self._end(answer.finish_reason, usage)

    def opening(self, num_answers: int) -> list[dict[str, Any]]:
        return []

    def delta(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        self.first = self.first or time.perf_counter_ns()
        self.finish_reason = output.finish_reason
        if not (output.text or output.logprobs):
            return []
        return [self._object(output.text, output.logprobs) | {"done": False}]

    def closing(self, usage: Usage) -> list[dict[str, Any]]:
        return [self._object("", None) | self._end(self.finish_reason, usage)]

    def loaded(self) -> dict[str, Any]:
        """The answer to a request that only asked for the model to be loaded."""
        return self._object("", None) | {"done": True, "done_reason": "load"}

    def _object(self, text: str, logprobs: Sequence[TokenLogprob] | None) -> dict[str, Any]:
        shown = {"logprobs": chat_logprobs(logprobs, self.token_bytes)["content"]} if logprobs else {}
        return {"model": self.model, "created_at": now(), **self.text(text), **shown}

    def _end(self, finish_reason: str | None, usage: Usage) -> dict[str, Any]:
        last = time.perf_counter_ns()
        first = self.first or last
        return {
            "done": True,
            "done_reason": finish_reason,
            "total_duration": last - self.started,
            "load_duration": 0,
            "prompt_eval_count": usage.prompt_tokens,
            "prompt_eval_duration": first - self.started,
            "eval_count": usage.completion_tokens,
            "eval_duration": last - first,
        }


class ChatWriter(_OllamaWriter):
    def text(self, text: str) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": text}}


class GenerateWriter(_OllamaWriter):
    def text(self, text: str) -> dict[str, Any]:
        return {"response": text}


def now() -> str:
    """RFC 3339."""
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
