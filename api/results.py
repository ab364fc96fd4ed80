"""What a call gives back: the prompt and its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..engine.request import RequestOutput
from .constraints import Constraint, parse_answer


@dataclass(frozen=True, kw_only=True)
class CompletionResult:
    """One finished answer.

    Attributes:
        index: which of the `n` answers of the prompt.
        text: the answer.
        token_ids: its tokens.
        finish_reason: "stop" (end token, stop text, or the constraint is complete), "length", "abort" or "error".
        stop_reason: the stop text or token id that ended it, or None.
        logprobs: per token, if they were asked for.
        parsed: the value: JSON data for a schema, an instance for a Pydantic class or `output_type`, the text for a choice; else None
            (a regex, a `Grammar`).
        parse_error: why `parsed` is None although a value was to be expected, for instance because `max_tokens` cut the answer.
        error: what failed, if finish_reason is "error".
    """

    index: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    stop_reason: str | int | None = None
    logprobs: tuple[Any, ...] | None = None
    parsed: Any = None
    parse_error: str | None = None
    error: Exception | None = None


@dataclass(frozen=True, kw_only=True)
class RequestResult:
    """The answers to one prompt.

    Attributes:
        prompt: the prompt text (the rendered conversation for a chat), or None if token ids were given.
        prompt_token_ids: what the model read.
        outputs: `n` answers.
        num_cached_tokens: how many prompt tokens were found in the prefix cache.
    """

    prompt: str | None
    prompt_token_ids: tuple[int, ...]
    outputs: tuple[CompletionResult, ...]
    num_cached_tokens: int = 0


@dataclass(kw_only=True)
class CompletionBuilder:
    """Gathers the deltas of one answer."""

    index: int = 0
    constraint: Constraint | None = None
    pieces: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)
    num_cached_tokens: int = 0
    last: RequestOutput | None = None

    def add(self, output: RequestOutput) -> None:
        self.pieces.append(output.text)
        self.token_ids.extend(output.new_token_ids)
        self.logprobs.extend(output.logprobs or ())
        self.num_cached_tokens = output.num_cached_tokens
        self.last = output

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def finished(self) -> bool:
        return self.last is not None and self.last.finished

    def build(self) -> CompletionResult:
        """The answer; call it once the last delta has come."""
        assert self.last is not None and self.last.finish_reason is not None
        text, reason, error = self.text, self.last.finish_reason, self.last.error
        answer = parse_answer(self.constraint, text, reason)
        return CompletionResult(
            index=self.index,
            text=text,
            token_ids=tuple(self.token_ids),
            finish_reason=reason,
            stop_reason=self.last.stop_reason,
            logprobs=tuple(self.logprobs) or None,
            parsed=answer.value,
            parse_error=answer.error,
            error=error,
        )
