"""Request bodies of `/tokenize` and `/detokenize`, as vLLM has them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from .errors import bad_request, not_supported
from .messages import Message
from .strict import StrictModel


class TokenizeBody(StrictModel):
    """A text or a conversation."""

    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = Field(default=None, min_length=1)
    add_special_tokens: bool | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    return_token_strs: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    def refuse_unsupported(self) -> None:
        """Raise for what contradicts itself or cannot be done."""
        if (self.prompt is None) == (self.messages is None):
            raise bad_request("exactly one of 'prompt' and 'messages' is needed", param="prompt")
        if self.continue_final_message:
            raise not_supported("'continue_final_message': true", param="continue_final_message")
        if self.messages is not None and self.add_special_tokens:
            raise not_supported("'add_special_tokens': true with 'messages', whose template holds them,", param="add_special_tokens")
        for field in ("add_generation_prompt", "chat_template_kwargs"):
            if self.messages is None and getattr(self, field) is not None:
                raise bad_request(f"'{field}' does not go with 'prompt'", param=field)


class DetokenizeBody(StrictModel):
    model: str | None = None
    tokens: list[int]
