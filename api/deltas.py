"""Answers as they grow."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.request import RequestOutput, TokenLogprob
from . import constraints
from .answers.reader import AnswerDelta
from .results import CompletionBuilder, CompletionResult


@dataclass(frozen=True, kw_only=True)
class Delta:
    """What was added to one answer.

    Attributes:
        index: which of the `n` answers.
        text: new text, often empty.
        token_ids: new tokens.
        logprobs: one entry a new token, if they were asked for.
        said: what the text says: pieces of the thought, of the content and of calls.
        result: the whole answer, in its last delta only.
    """

    index: int
    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] | None = None
    said: tuple[AnswerDelta, ...] = ()
    result: CompletionResult | None = None


def delta_of(output: RequestOutput, builder: CompletionBuilder) -> Delta:
    """What an output adds to the answer that `builder` gathers.

    Raises:
        GrammarError: the constraint turned out not to be enforceable.
    """
    constraints.raise_refusal(output.error)
    said = builder.add(output)
    return Delta(
        index=builder.index,
        text=output.text,
        token_ids=output.new_token_ids,
        logprobs=output.logprobs,
        said=said,
        result=builder.build() if output.finished else None,
    )
