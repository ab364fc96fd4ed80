"""Log-probabilities in the two shapes of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.request import TokenLogprob

TokenBytes = Callable[[int], bytes]


def chat_logprobs(entries: Sequence[TokenLogprob], token_bytes: TokenBytes) -> dict[str, Any]:
    """`choices[].logprobs` of a chat completion."""
    return {"content": [_chat_entry(entry, token_bytes) for entry in entries], "refusal": None}


def _chat_entry(entry: TokenLogprob, token_bytes: TokenBytes) -> dict[str, Any]:
    top = [_chat_token(token, logprob, token_bytes) for token, logprob in entry.top]
    return {**_chat_token(entry.token_id, entry.logprob, token_bytes), "top_logprobs": top}


def _chat_token(token_id: int, logprob: float, token_bytes: TokenBytes) -> dict[str, Any]:
    exact = token_bytes(token_id)
    return {"token": exact.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(exact)}


def completion_logprobs(entries: Sequence[TokenLogprob], token_bytes: TokenBytes, *, offset: int = 0) -> dict[str, Any]:
    """`choices[].logprobs` of a completion; `offset` is where the first token starts in the text, in characters."""
    tokens = [_text(entry.token_id, token_bytes) for entry in entries]
    offsets = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token)
    return {
        "tokens": tokens,
        "token_logprobs": [entry.logprob for entry in entries],
        "top_logprobs": [{_text(token, token_bytes): logprob for token, logprob in entry.top} for entry in entries],
        "text_offset": offsets,
    }


def _text(token_id: int, token_bytes: TokenBytes) -> str:
    return token_bytes(token_id).decode("utf-8", "replace")
