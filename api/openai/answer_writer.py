"""Chat answers that may hold a thought and tool calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...engine.request import RequestOutput
from ..answers.reader import Answer, AnswerDelta, AnswerReader, ArgumentsDelta, CallBegin, ContentDelta, ReasoningDelta, ToolCall
from ..results import CompletionResult
from .logprobs import chat_logprobs
from .writers import ChatWriter


@dataclass(frozen=True, kw_only=True)
class AnswerChatWriter(ChatWriter):
    """`chat.completion` and its chunks, with `tool_calls`, and with thoughts under both names that clients know: `reasoning` (vLLM's
    newer one) and `reasoning_content`.

    Attributes:
        make_reader: of one answer.
        include_reasoning: thoughts are shown.
        readers: of the answers that are streamed, by index.
    """

    make_reader: Callable[[], AnswerReader]
    include_reasoning: bool = True
    readers: dict[int, AnswerReader] = field(default_factory=dict)

    def _choice(self, answer: CompletionResult) -> dict[str, Any]:
        reader = self.make_reader()
        read = Answer.of([*reader.feed(answer.text, answer.token_ids), *reader.finish()])
        choice = super()._choice(answer)
        is_empty = not read.calls and read.reasoning is None
        choice["message"]["content"] = "" if is_empty and read.content is None else read.content
        if read.reasoning is not None and self.include_reasoning:
            choice["message"] |= _thought(read.reasoning)
        if read.calls:
            choice["message"] |= self._called(read.calls)
            choice["finish_reason"] = self._finish_reason(answer.finish_reason)
        return choice

    def delta(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        if index not in self.readers:
            self.readers[index] = self.make_reader()
        reader = self.readers[index]
        deltas = reader.feed(output.text, output.new_token_ids)
        if output.finished:
            deltas += reader.finish()
        shown: list[dict[str, Any]] = [self._said(delta) for delta in deltas if self._is_shown(delta)] or ([{}] if output.logprobs else [])
        logprobs = chat_logprobs(output.logprobs, self.token_bytes) if output.logprobs else None
        chunks = [self._chunk(index, delta, logprobs=None if number else logprobs) for number, delta in enumerate(shown)]
        if output.finished:
            reason = self._finish_reason(output.finish_reason) if reader.has_calls else output.finish_reason
            chunks.append(self._chunk(index, {}, finish_reason=reason, stop_reason=output.stop_reason))
        return chunks

    def _is_shown(self, delta: AnswerDelta) -> bool:
        return self.include_reasoning or not isinstance(delta, ReasoningDelta)


    def _said(self, delta: AnswerDelta) -> dict[str, Any]:
        if isinstance(delta, ReasoningDelta):
            return _thought(delta.text)
        if isinstance(delta, ContentDelta):
            return {"content": delta.text}
        return self._call_delta(delta)

    def _called(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """What a message says of its calls."""
        return {"tool_calls": [_call(call) for call in calls]}

    def _call_delta(self, delta: CallBegin | ArgumentsDelta) -> dict[str, Any]:
        if isinstance(delta, CallBegin):
            function = {"name": delta.name, "arguments": ""}
            return {"tool_calls": [{"index": delta.index, "id": delta.call_id, "type": "function", "function": function}]}
        return {"tool_calls": [{"index": delta.index, "function": {"arguments": delta.text}}]}

    def _finish_reason(self, reason: str | None) -> str | None:
        return "tool_calls" if reason == "stop" else reason


@dataclass(frozen=True, kw_only=True)
class FunctionChatWriter(AnswerChatWriter):
    """Says `function_call` where others say `tool_calls`."""

    def _called(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        return {"function_call": {"name": calls[0].name, "arguments": calls[0].arguments}}

    def _call_delta(self, delta: CallBegin | ArgumentsDelta) -> dict[str, Any]:
        if isinstance(delta, CallBegin):
            return {"function_call": {"name": delta.name, "arguments": ""}}
        return {"function_call": {"arguments": delta.text}}

    def _finish_reason(self, reason: str | None) -> str | None:
        return "function_call" if reason == "stop" else reason


def _thought(text: str) -> dict[str, Any]:
    return {"reasoning": text, "reasoning_content": text}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
