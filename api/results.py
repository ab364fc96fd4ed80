"""What a call gives back: the prompt and its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..engine.request import RequestOutput
from .answers.reader import Answer, AnswerDelta, AnswerReader, ContentDelta, ToolCall
from .constraints import Constraint, ParsedAnswer, parse_answer


@dataclass(frozen=True, kw_only=True)
class CompletionResult:
    """One finished answer.

    Attributes:
        index: which of the `n` answers of the prompt.
        text: the answer as the model wrote it, thought and calls included.
        content: the text without them; None if there is nothing else.
        reasoning: what the model thought before it answered; None if it did not.
        tool_calls: the calls in it.
        token_ids: its tokens.
        finish_reason: "stop" (end token, stop text, or the constraint is complete), "length", "abort" or "error".
        stop_reason: the stop text or token id that ended it, or None.
        logprobs: per token, if they were asked for.
        parsed: the value of the content: JSON data for a schema, an instance for a Pydantic class or `output_type`, the text for a
            choice; else None (a regex, a `Grammar`).
        parse_error: why `parsed` is None although a value was to be expected, for instance because `max_tokens` cut the answer.
        error: what failed, if finish_reason is "error".
        cumulative_logprob, score: of an answer of a beam search, see `BeamSearchParams`.
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
    content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    cumulative_logprob: float | None = None
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class RequestResult:
    """The answers to one prompt.

    Attributes:
        prompt: the prompt text (the rendered conversation for a chat), or None if token ids were given.
        prompt_token_ids: what the model read.
        outputs: `n` answers; those of a beam search best first.
        num_cached_tokens: how many prompt tokens were found in the prefix cache.
    """

    prompt: str | None
    prompt_token_ids: tuple[int, ...]
    outputs: tuple[CompletionResult, ...]
    num_cached_tokens: int = 0


@dataclass(kw_only=True)
class CompletionBuilder:
    """Gathers the deltas of one answer.

    Attributes:
        constraint: of the content.
        reader: tells the content from the rest; None where the text is the content.
    """

    index: int = 0
    constraint: Constraint | None = None
    reader: AnswerReader | None = None
    answer: Answer = field(default_factory=Answer)
    pieces: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)
    num_cached_tokens: int = 0
    last: RequestOutput | None = None

    def add(self, output: RequestOutput) -> tuple[AnswerDelta, ...]:
        """What the output brings, as the reader sees it."""
        self.pieces.append(output.text)
        self.token_ids.extend(output.new_token_ids)
        self.logprobs.extend(output.logprobs or ())
        self.num_cached_tokens = output.num_cached_tokens
        self.last = output
        deltas = self._read(output)
        for delta in deltas:
            self.answer.add(delta)
        return deltas

    def _read(self, output: RequestOutput) -> tuple[AnswerDelta, ...]:
        if self.reader is None:
            return (ContentDelta(text=output.text),) if output.text else ()
        deltas = self.reader.feed(output.text, output.new_token_ids)
        return (*deltas, *(self.reader.finish() if output.finished else ()))

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
        calls, content = tuple(self.answer.calls), self.answer.content
        if content is None and not calls and self.answer.reasoning is None:
            content = ""
        beam = self.last.beams[0] if self.last.beams else None
        value = ParsedAnswer() if calls and content is None else parse_answer(self.constraint, content or "", reason)
        return CompletionResult(
            index=self.index,
            text=text,
            token_ids=tuple(self.token_ids),
            finish_reason=reason,
            stop_reason=self.last.stop_reason,
            logprobs=tuple(self.logprobs) or None,
            parsed=value.value,
            parse_error=value.error,
            error=error,
            content=content,
            reasoning=self.answer.reasoning,
            tool_calls=calls,
            cumulative_logprob=None if beam is None else beam.logprob,
            score=None if beam is None else beam.score,
        )
