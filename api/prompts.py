"""Prompts: text, token ids or a conversation -> the tokens that the model reads.

InvalidRequest              (engine/request.py)
  ContextLengthExceeded     prompt and answer together do not fit into the context
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.request import InvalidRequest
from .control_tokens import ControlTokens, Piece
from .ports import ChatTemplate, ServedModel


class ContextLengthExceeded(InvalidRequest):
    """Prompt and answer together do not fit into the context of the model."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What the model reads.

    Attributes:
        text: None if token ids were given.
        token_ids: at least one, unless it was asked for otherwise.
        source: the argument or request field it came from; errors name it.
    """

    text: str | None
    token_ids: tuple[int, ...]
    source: str


class PromptEncoder:
    """Turns what people write into tokens of one model."""

    def __init__(self, model: ServedModel):
        self._model = model
        added = model.tokenizer.get_added_tokens_decoder().values()
        self._control_tokens = ControlTokens(token.content for token in added if token.special)

    @property
    def chat_template(self) -> ChatTemplate | None:
        """That of the model."""
        return self._model.chat_template

    def of_text(self, text: str, *, source: str = "prompt", begin: bool = True, may_be_empty: bool = False) -> Prompt:
        """Plain text, continued as it stands.

        Args:
            begin: add the begin token if the model was trained with one.
            may_be_empty: no tokens will do; such a prompt cannot be answered.
        """
        token_ids = (self._begin() if begin else []) + self._encode(text, source)
        return self._prompt(text, token_ids, source, may_be_empty=may_be_empty)

    def of_token_ids(self, token_ids: Sequence[int], *, source: str = "prompt") -> Prompt:
        """Tokens as they are, without a begin token."""
        for token in token_ids:
            if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < self._model.vocab_size:
                raise InvalidRequest(f"{token!r} is not a token id of this model (0 to {self._model.vocab_size - 1})", param=source)
        return self._prompt(None, list(token_ids), source)

    def of_chat(
        self, messages: Sequence[dict[str, Any]], *, source: str = "messages", template: ChatTemplate | None = None, **variables: Any
    ) -> Prompt:
        """A conversation through a chat template, ready for the assistant's next turn.

        Whatever the messages and variables spell, it is read as plain text: only the template writes control tokens.

        Args:
            template: None is the model's own.
            variables: further names for the template, also `add_generation_prompt`.

        Raises:
            InvalidRequest: if the model has no chat template.
            ChatTemplateError: if the template refuses the messages.
        """
        template = template or self._model.chat_template
        if template is None:
            raise InvalidRequest(f"model {self._model.name} has no chat template: give it a plain prompt instead", param=source)
        hidden = self._control_tokens.hide([list(messages), variables])
        safe_messages, safe_variables = hidden.value
        rendered = hidden.pieces(template.render(safe_messages, **safe_variables))
        token_ids = [token for piece in rendered for token in self._encode_piece(piece, source)]
        return self._prompt("".join(piece.text for piece in rendered), token_ids, source)

    def _encode_piece(self, piece: Piece, source: str) -> list[int]:
        if not piece.is_plain:
            return self._encode(piece.text, source)
        return [token for part in self._control_tokens.broken(piece.text) for token in self._encode(part, source)]

    def _begin(self) -> list[int]:
        begin = self._model.bos_token_id
        return [begin] if self._model.add_bos and begin is not None else []

    def _encode(self, text: str, source: str) -> list[int]:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"the text holds a lone surrogate (at character {error.start})", param=source) from None
        token_ids = self._model.tokenizer.encode(text, add_special_tokens=False).ids
        if any(token >= self._model.vocab_size for token in token_ids):
            raise InvalidRequest("the text holds a special token that this model cannot read", param=source)
        return token_ids

    def _prompt(self, text: str | None, token_ids: list[int], source: str, *, may_be_empty: bool = False) -> Prompt:
        if not token_ids and not may_be_empty:
            raise InvalidRequest("the prompt is empty", param=source)
        return Prompt(text=text, token_ids=tuple(token_ids), source=source)


def check_length(prompt: Prompt, *, max_tokens: int | None, max_model_len: int, field: str = "max_tokens") -> None:
    """Refuse what can never fit, before it is queued.

    Args:
        field: name of the argument that gave `max_tokens`.

    Raises:
        ContextLengthExceeded: with `param` the prompt's source or `field`.
    """
    num_prompt_tokens = len(prompt.token_ids)
    room = max_model_len - num_prompt_tokens
    if room < 1:
        raise ContextLengthExceeded(
            f"the prompt has {num_prompt_tokens} tokens and leaves no room for an answer: the context is {max_model_len} tokens",
            param=prompt.source,
        )
    if max_tokens is not None and max_tokens > room:
        raise ContextLengthExceeded(
            f"{field} is {max_tokens}, but a prompt of {num_prompt_tokens} tokens leaves {room} of the context of {max_model_len} tokens",
            param=field,
        )
