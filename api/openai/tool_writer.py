"""Chat answers that may hold tool calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...engine.request import RequestOutput
from ..results import CompletionResult
from ..tools.reader import Answer, AnswerDelta, AnswerReader, CallBegin, ContentDelta, ToolCall
from .logprobs import chat_logprobs
from .writers import ChatWriter


@dataclass(frozen=True, kw_only=True)
class ToolChatWriter(ChatWriter):
    """`chat.completion` and its chunks, with `tool_calls`.

    Attributes:
        make_reader: of one answer.
        readers: of the answers that are streamed, by index.
    """

    make_reader: Callable[[], AnswerReader]
    readers: dict[int, AnswerReader] = field(default_factory=dict)

    def _choice(self, answer: CompletionResult) -> dict[str, Any]:
        reader = self.make_reader()
        read = Answer.of([*reader.feed(answer.text, answer.token_ids), *reader.finish()])
        choice = super()._choice(answer)
        choice["message"]["content"] = read.content if read.calls else answer.text
        if read.calls:
            choice["message"]["tool_calls"] = [_call(call) for call in read.calls]
            choice["finish_reason"] = _finish_reason(answer.finish_reason)
        return choice

    def delta(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        if index not in self.readers:
            self.readers[index] = self.make_reader()
        reader = self.readers[index]
        deltas = reader.feed(output.text, output.new_token_ids)
        if output.finished:
            deltas += reader.finish()
        shown: list[dict[str, Any]] = [_delta(delta) for delta in deltas] or ([{}] if output.logprobs else [])
        logprobs = chat_logprobs(output.logprobs, self.token_bytes) if output.logprobs else None
        chunks = [self._chunk(index, delta, logprobs=None if number else logprobs) for number, delta in enumerate(shown)]
        if output.finished:
            reason = _finish_reason(output.finish_reason) if reader.has_calls else output.finish_reason
            chunks.append(self._chunk(index, {}, finish_reason=reason, stop_reason=output.stop_reason))
        return chunks


def _finish_reason(reason: str | None) -> str | None:
    return "tool_calls" if reason == "stop" else reason


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _delta(delta: AnswerDelta) -> dict[str, Any]:
    if isinstance(delta, ContentDelta):
        return {"content": delta.text}
    if isinstance(delta, CallBegin):
        function = {"name": delta.name, "arguments": ""}
        return {"tool_calls": [{"index": delta.index, "id": delta.call_id, "type": "function", "function": function}]}
    return {"tool_calls": [{"index": delta.index, "function": {"arguments": delta.text}}]}
