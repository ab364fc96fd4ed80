"""Answers -> response objects and events of `/v1/responses`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...engine.request import RequestOutput, TokenLogprob
from ..answers.reader import AnswerReader, ContentDelta
from ..results import CompletionResult
from .content_logprobs import ContentLogprobs, Piece
from .errors import ApiError
from .logprobs import TokenBytes
from .responses_body import ResponsesBody, TextFormat
from .responses_items import Items
from .strict import StrictModel
from .writers import Usage


@dataclass(kw_only=True)
class ResponsesWriter:
    """Attributes:
    body: the response repeats some of it.
    reader: of an answer that may hold a thought or calls; None where it is just text.
    """

    body: ResponsesBody
    object_id: str
    model: str
    token_bytes: TokenBytes
    reader: AnswerReader | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    num_events: int = 0
    finish_reason: str | None = None

    def __post_init__(self) -> None:
        self._items = Items(self._event, self.token_bytes)
        self._by_token = None if self.reader is None else ContentLogprobs(self.reader, self.token_bytes)

    def response(self, answers: Sequence[CompletionResult], usage: Usage) -> dict[str, Any]:
        (answer,) = answers
        for piece in self._pieces(answer.text, answer.token_ids, answer.logprobs or (), finished=True):
            self._items.add(*piece)
        self._items.end(_status(answer.finish_reason))
        return self._response(answer.finish_reason, usage)

    def opening(self, num_answers: int) -> list[dict[str, Any]]:
        begun = self._response(None, None)
        return [self._event("response.created", response=begun), self._event("response.in_progress", response=begun)]

    def delta(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        self.finish_reason = output.finish_reason
        pieces = self._pieces(output.text, output.new_token_ids, output.logprobs or (), finished=output.finished)
        return [event for piece in pieces for event in self._items.add(*piece)]

    def closing(self, usage: Usage) -> list[dict[str, Any]]:
        ended = self._items.end(_status(self.finish_reason))
        last = "response.incomplete" if self.finish_reason == "length" else "response.completed"
        return [*ended, self._event(last, response=self._response(self.finish_reason, usage))]

    def _pieces(self, text: str, token_ids: Sequence[int], logprobs: Sequence[TokenLogprob], *, finished: bool) -> Iterator[Piece]:
        if self.reader is None or self._by_token is None:
            if text or logprobs:
                yield Piece(ContentDelta(text=text), tuple(logprobs))
        elif logprobs:
            yield from self._by_token.feed(text, logprobs)
        else:
            yield from (Piece(delta, ()) for delta in self.reader.feed(text, token_ids))
        if finished and self._by_token is not None:
            yield from self._by_token.finish()

    def error(self, error: ApiError) -> dict[str, Any]:
        """The last event of a stream that failed."""
        return self._event("error", code=error.code, message=error.message, param=error.param, **error.body())

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.num_events += 1
        return {"type": kind, "sequence_number": self.num_events - 1, **fields}

    def _response(self, finish_reason: str | None, usage: Usage | None) -> dict[str, Any]:
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
            "output": [] if finish_reason is None else self._items.to_json(),
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": None,
            "prompt_cache_key": body.prompt_cache_key,
            "reasoning": {"effort": body.reasoning.effort if body.reasoning else None, "summary": None},
            "safety_identifier": body.safety_identifier,
            "service_tier": "default",
            "store": False,
            "temperature": 1.0 if body.temperature is None else body.temperature,
            "text": {"format": _format(body.text.format if body.text else None)},
            "tool_choice": _shown(body.tool_choice) or "auto",
            "tools": [tool.model_dump() | {"strict": tool.strict is not False} for tool in body.tools or ()],
            "top_logprobs": body.top_logprobs or 0,
            "top_p": 1.0 if body.top_p is None else body.top_p,
            "truncation": "disabled",
            "usage": None if usage is None else _usage(usage),
            "user": body.user,
            "metadata": body.metadata or {},
        }


def _status(finish_reason: str | None) -> str:
    if finish_reason is None:
        return "in_progress"
    return "incomplete" if finish_reason == "length" else "completed"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _format(given: TextFormat | None) -> dict[str, Any]:
    return {"type": "text"} if given is None else given.model_dump(by_alias=True, exclude_none=True)


def _shown(given: StrictModel | str | None) -> Any:
    return given.model_dump() if isinstance(given, StrictModel) else given
