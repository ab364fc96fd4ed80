"""Answers -> TGI's objects, whole and token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...engine.request import RequestOutput, TokenLogprob
from ..openai.logprobs import TokenBytes
from ..openai.writers import Usage
from ..results import CompletionResult
from .protocol import TgiBody


@dataclass(kw_only=True)
class TgiWriter:
    """Attributes:
    special: ids of special tokens.
    pieces, num_tokens: what has been written so far.
    """

    body: TgiBody
    num_prompt_tokens: int
    token_bytes: TokenBytes
    special: frozenset[int]
    pieces: list[str] = field(default_factory=list)
    num_tokens: int = 0

    def response(self, answers: Sequence[CompletionResult], usage: Usage) -> dict[str, Any]:
        (answer,) = answers
        shown: dict[str, Any] = {"generated_text": self._whole(answer.text)}
        if self.body.options.details:
            shown["details"] = self._end(answer.finish_reason, answer.stop_reason, len(answer.token_ids)) | {
                "prefill": [],
                "tokens": [self._token(entry.token_id, self._text(entry.token_id), entry.logprob) for entry in answer.logprobs or ()],
                "top_tokens": [self._top(entry) for entry in answer.logprobs or ()],
            }
        return shown

    def opening(self, num_answers: int) -> list[dict[str, Any]]:
        return []

    def delta(self, index: int, output: RequestOutput) -> list[dict[str, Any]]:
        """One event a token; the text of an output stands in the event of its last token, so that the texts add up exactly."""
        self.pieces.append(output.text)
        entries = list(output.logprobs or ())
        texts = [""] * (len(entries) - 1) + [output.text]
        events = [self._event(entry, text) for entry, text in zip(entries, texts, strict=False)]
        if output.finish_reason is not None:
            events = events or [{"index": self.num_tokens, "token": None, "top_tokens": []}]
            details = self._end(output.finish_reason, output.stop_reason, self.num_tokens) | {"input_length": self.num_prompt_tokens}
            events[-1] |= {"generated_text": self._whole("".join(self.pieces)), "details": details}
        return events

    def closing(self, usage: Usage) -> list[dict[str, Any]]:
        return []

    def _event(self, entry: TokenLogprob, text: str) -> dict[str, Any]:
        self.num_tokens += 1
        token = self._token(entry.token_id, text, entry.logprob)
        return {"index": self.num_tokens, "token": token, "top_tokens": self._top(entry), "generated_text": None, "details": None}

    def _token(self, token_id: int, text: str, logprob: float) -> dict[str, Any]:
        return {"id": token_id, "text": text, "logprob": logprob, "special": token_id in self.special}

    def _top(self, entry: TokenLogprob) -> list[dict[str, Any]]:
        return [self._token(token_id, self._text(token_id), logprob) for token_id, logprob in entry.top]

    def _text(self, token_id: int) -> str:
        return self.token_bytes(token_id).decode("utf-8", "replace")

    def _whole(self, text: str) -> str:
        return self.body.inputs + text if self.body.options.return_full_text else text

    def _end(self, finish_reason: str, stop_reason: str | int | None, num_tokens: int) -> dict[str, Any]:
        reason = "length" if finish_reason == "length" else "stop_sequence" if isinstance(stop_reason, str) else "eos_token"
        return {"finish_reason": reason, "generated_tokens": num_tokens, "seed": self.body.options.seed}
