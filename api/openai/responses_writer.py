"""Answers -> response objects and events of `/v1/responses`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...engine.request import RequestOutput, TokenLogprob
from ..jobs import new_id
from ..results import CompletionResult
from .errors import ApiError
from .logprobs import TokenBytes, chat_logprobs
from .responses_body import ResponsesBody, TextFormat
from .writers import Usage

_PLACE = {"output_index": 0, "content_index": 0}


@dataclass(kw_only=True)
class ResponsesWriter:
    """One message with one text. The fields are what the response repeats of its request, and what has been written so far."""

    body: ResponsesBody
    object_id: str
    model: str
    token_bytes: TokenBytes
    created: int = field(default_factory=lambda: int(time.time()))
    item_id: str = field(default_factory=lambda: new_id("msg"))
    num_events: int = 0
    pieces: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: str | None = None

    def response(self, answers: Sequence[CompletionResult], usage: Usage) -> dict[str, Any]:
        (answer,) = answers
        return self._response(self._item(answer.text, answer.logprobs or (), answer.finish_reason), answer.finish_reason, usage)

    def opening(self, num_answers: int) -> list[dict[str, Any]]:
        begun = self._response(None, None, None)
        return [
            self._event("response.created", response=begun),
            self._event("response.in_progress", response=begun),
            self._event("response.output_item.added", output_index=0, item=self._item(None, (), None)),
            self._event("response.content_part.added", item_id=self.item_id, **_PLACE, part=self._part("", ())),
        ]

    def delta(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        self.finish_reason = output.finish_reason
        self.pieces.append(output.text)
        self.logprobs += output.logprobs or ()
        if not (output.text or output.logprobs):
            return []
        shown = self._logprobs(output.logprobs or ())
        return [self._event("response.output_text.delta", item_id=self.item_id, **_PLACE, delta=output.text, logprobs=shown)]

    def closing(self, usage: Usage) -> list[dict[str, Any]]:
        text, logprobs = "".join(self.pieces), self.logprobs
        item = self._item(text, logprobs, self.finish_reason)
        last = "response.incomplete" if self.finish_reason == "length" else "response.completed"
        return [
            self._event("response.output_text.done", item_id=self.item_id, **_PLACE, text=text, logprobs=self._logprobs(logprobs)),
            self._event("response.content_part.done", item_id=self.item_id, **_PLACE, part=self._part(text, logprobs)),
            self._event("response.output_item.done", output_index=0, item=item),
            self._event(last, response=self._response(item, self.finish_reason, usage)),
        ]

    def error(self, error: ApiError) -> dict[str, Any]:
        """The last event of a stream that failed."""
        return self._event("error", code=error.code, message=error.message, param=error.param, **error.body())

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.num_events += 1
        return {"type": kind, "sequence_number": self.num_events - 1, **fields}

    def _response(self, item: dict[str, Any] | None, finish_reason: str | None, usage: Usage | None) -> dict[str, Any]:
        body = self.body
        return {
            "id": self.object_id,
            "object": "response",
            "created_at": self.created,
            "completed_at": None if finish_reason is None else int(time.time()),
            "status": _status(finish_reason),
            "background": False,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if finish_reason == "length" else None,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "max_tool_calls": None,
            "model": self.model,
            "output": [] if item is None else [item],
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": None,
            "prompt_cache_key": body.prompt_cache_key,
            "reasoning": {"effort": None, "summary": None},
            "safety_identifier": body.safety_identifier,
            "service_tier": "default",
            "store": False,
            "temperature": 1.0 if body.temperature is None else body.temperature,
            "text": {"format": _format(body.text.format if body.text else None)},
            "tool_choice": body.tool_choice or "auto",
            "tools": [],
            "top_logprobs": body.top_logprobs or 0,
            "top_p": 1.0 if body.top_p is None else body.top_p,
            "truncation": "disabled",
            "usage": None if usage is None else _usage(usage),
            "user": body.user,
            "metadata": body.metadata or {},
        }

    def _item(self, text: str | None, logprobs: Sequence[TokenLogprob], finish_reason: str | None) -> dict[str, Any]:
        content = [] if text is None else [self._part(text, logprobs)]
        return {"id": self.item_id, "type": "message", "status": _status(finish_reason), "role": "assistant", "content": content}

    def _part(self, text: str, logprobs: Sequence[TokenLogprob]) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": self._logprobs(logprobs)}

    def _logprobs(self, logprobs: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
        return chat_logprobs(logprobs, self.token_bytes)["content"]


def _status(finish_reason: str | None) -> str:
    if finish_reason is None:
        return "in_progress"
    return "incomplete" if finish_reason == "length" else "completed"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _format(given: TextFormat | None) -> dict[str, Any]:
    return {"type": "text"} if given is None else given.model_dump(by_alias=True, exclude_none=True)
