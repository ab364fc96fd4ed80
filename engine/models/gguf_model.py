"""A GGUF file as a model: its tokenizer with what belongs to it, and its module."""

from __future__ import annotations

from .chat_template import ChatTemplate
from .end_tokens import end_token_ids
from .gguf_file import GgufFile
from .gguf_tokenizer import TokenKind, build_tokenizer, read_vocabulary
from .loaded import TokenizerBundle

_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


def load_gguf_tokenizer(file: GgufFile) -> TokenizerBundle:
    """The tokenizer, chat template and special tokens of a file.

    Raises:
        UnsupportedModel: a tokenizer that cannot be rebuilt exactly.
        ChatTemplateError: the file's chat template is malformed.
    """
    vocabulary = read_vocabulary(file)
    special = {
        token: index
        for index, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.kinds, strict=True))
        if kind == TokenKind.CONTROL
    }
    declared = [file.get(f"tokenizer.ggml.{key}", int) for key in _END_KEYS]
    source = file.get("tokenizer.chat_template", str)
    bos, eos = vocabulary.token(vocabulary.bos_token_id), vocabulary.token(vocabulary.eos_token_id)
    return TokenizerBundle(
        tokenizer=build_tokenizer(file, vocabulary),
        chat_template=ChatTemplate(source, bos, eos) if source else None,
        eos_token_ids=end_token_ids(declared, special, vocab_size=len(vocabulary.tokens)),
        bos_token_id=vocabulary.bos_token_id,
        add_bos=vocabulary.add_bos and vocabulary.bos_token_id is not None,
    )
