"""Answers -> Ollama's objects, whole and in pieces."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ...engine.request import RequestOutput, TokenLogprob
from ..answers.reader import Answer, AnswerDelta, AnswerReader, ArgumentsDelta, CallBegin, ReasoningDelta, ToolCall
from ..openai.logprobs import TokenBytes, chat_logprobs
from ..openai.writers import Usage
from ..results import CompletionResult


@dataclass(kw_only=True)
class _OllamaWriter:
    """What both endpoints share. A call is shown once it is complete, since its arguments are a value here.

    Attributes:
        model: the name that the request used.
        reader: of an answer that may hold a thought or calls; None where it is just text.
        started, first: nanoseconds on a monotonic clock: of the start, of the first output.
        call: the one that is being read.
    """

    model: str
    token_bytes: TokenBytes
    reader: AnswerReader | None = None
    started: int = field(default_factory=time.perf_counter_ns)
    first: int | None = None
    finish_reason: str | None = None
    call: ToolCall | None = None

    def shown(self, text: str, *, thinking: str = "", calls: Sequence[ToolCall] = ()) -> dict[str, Any]:
        """Where text, thought and calls stand in an object."""
        raise NotImplementedError

    def response(self, answers: Sequence[CompletionResult], usage: Usage) -> dict[str, Any]:
        (answer,) = answers
        text, thinking, calls = answer.text, "", []
        if self.reader is not None:
            read = Answer.of([*self.reader.feed(answer.text, answer.token_ids), *self.reader.finish()])
            text, thinking, calls = read.content or "", read.reasoning or "", [call for call in read.calls if call.parsed is not None]
        shown = self.shown(text, thinking=thinking, calls=calls)
        return self._object(shown, answer.logprobs) | self._end(answer.finish_reason, usage)

    def opening(self, num_answers: int) -> list[dict[str, Any]]:
        return []

    def delta(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        self.first = self.first or time.perf_counter_ns()
        self.finish_reason = output.finish_reason
        pieces = self._pieces(output) or ([self.shown("")] if output.logprobs else [])
        return [self._object(piece, None if number else output.logprobs) | {"done": False} for number, piece in enumerate(pieces)]

    def _pieces(self, output: RequestOutput) -> list[dict[str, Any]]:
        if self.reader is None:
            return [self.shown(output.text)] if output.text else []
        deltas = self.reader.feed(output.text, output.new_token_ids)
        pieces = [piece for delta in deltas for piece in self._read(delta)]
        if output.finished:
            pieces += [piece for delta in self.reader.finish() for piece in self._read(delta)]
            pieces += self._ended_call()
        return pieces

    def _read(self, delta: AnswerDelta) -> list[dict[str, Any]]:
        if isinstance(delta, ArgumentsDelta):
            assert self.call is not None
            self.call.arguments += delta.text
            return []
        ended = self._ended_call()
        if isinstance(delta, CallBegin):
            self.call = ToolCall(call_id=delta.call_id, name=delta.name)
            return ended
        return [*ended, self.shown("", thinking=delta.text) if isinstance(delta, ReasoningDelta) else self.shown(delta.text)]

    def _ended_call(self) -> list[dict[str, Any]]:
        call, self.call = self.call, None
        return [] if call is None or call.parsed is None else [self.shown("", calls=[call])]

    def closing(self, usage: Usage) -> list[dict[str, Any]]:
        return [self._object(self.shown(""), None) | self._end(self.finish_reason, usage)]

    def loaded(self) -> dict[str, Any]:
        """The answer to a request that only asked for the model to be loaded."""
        return self._object(self.shown(""), None) | {"done": True, "done_reason": "load"}

    def _object(self, piece: dict[str, Any], logprobs: Sequence[TokenLogprob] | None) -> dict[str, Any]:
        more = {"logprobs": chat_logprobs(logprobs, self.token_bytes)["content"]} if logprobs else {}
        return {"model": self.model, "created_at": now(), **piece, **more}

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
    def shown(self, text: str, *, thinking: str = "", calls: Sequence[ToolCall] = ()) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if thinking:
            message["thinking"] = thinking
        if calls:
            message["tool_calls"] = [{"id": call.call_id, "function": {"name": call.name, "arguments": call.parsed}} for call in calls]
        return {"message": message}


class GenerateWriter(_OllamaWriter):
    def shown(self, text: str, *, thinking: str = "", calls: Sequence[ToolCall] = ()) -> dict[str, Any]:
        return {"response": text, "thinking": thinking} if thinking else {"response": text}


def now() -> str:
    """RFC 3339."""
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
