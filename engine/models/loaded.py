"""What loading gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Tokenizer

from .chat_template import ChatTemplate


@dataclass(frozen=True, kw_only=True)
class TokenizerBundle:
    """A tokenizer with what belongs to it.

    Attributes:
        tokenizer: `encode(text)` adds the begin-of-text token where `add_bos`; give `add_special_tokens=False` for text
            that has it already, such as a rendered chat template.
        chat_template: None for a model without one.
        eos_token_ids: all tokens that end an answer.
        bos_token_id: the begin-of-text token, if the model has one.
        add_bos: whether the model expects the begin-of-text token before plain text.
    """

    tokenizer: Tokenizer
    chat_template: ChatTemplate | None
    eos_token_ids: frozenset[int]
    bos_token_id: int | None
    add_bos: bool


@dataclass(frozen=True, kw_only=True)
class LoadedModel(TokenizerBundle):
    """A model that is ready to run.

    Attributes:
        name: the model's name for people: of its file or folder.
        module: transformers' causal language model, in eval mode, without gradients.
        config: transformers' configuration of the text model.
        max_model_len: longest sequence in tokens, prompt and answer together.
        vocab_size: width of the logits. A tokenizer can know ids from there on, which the module cannot read.
    """

    name: str
    module: torch.nn.Module
    config: Any
    max_model_len: int
    vocab_size: int
