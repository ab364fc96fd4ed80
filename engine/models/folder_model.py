"""A folder in Hugging Face's layout as a model: `config.json`, safetensors weights and `tokenizer.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from ..errors import UnsupportedModel
from .chat_template import ChatTemplate
from .end_tokens import end_token_ids
from .loaded import TokenizerBundle
from .quiet import one_line, without_progress_bars

_MAX_JSON_BYTES = 64 << 20


def load_folder_config(folder: Path) -> Any:
    """The transformers configuration of a folder. Code that ships with a model is never run.

    Raises:
        UnsupportedModel: the configuration is missing, malformed or of an unknown architecture.
    """
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # each configuration class checks its values in its own way
        raise UnsupportedModel(f"{folder}: {one_line(error)}") from error


def load_folder_module(folder: Path, config: Any, *, dtype: torch.dtype, attn_implementation: str) -> PreTrainedModel:
    """The module of a folder in `dtype`, on the CPU, in eval mode, without gradients. Only safetensors are read.

    Raises:
        UnsupportedModel: the weights are missing, incomplete or of an unknown architecture.
    """
    if config.model_type == "falcon":
        from .falcon import register

        register()
    try:
        with without_progress_bars():
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                folder,
                config=config,
                dtype=dtype,
                attn_implementation=attn_implementation,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
    except Exception as error:  # whatever a damaged file makes safetensors, torch or a module's constructor raise
        raise UnsupportedModel(f"{folder}: {one_line(error)}") from error
    module, report = loaded
    missing = sorted(report["missing_keys"])
    if missing:
        raise UnsupportedModel(f"{folder} lacks {len(missing)} weights, the first is {missing[0]}")
    return module.eval().requires_grad_(False)


def load_folder_tokenizer(folder: Path) -> TokenizerBundle:
    """The tokenizer, chat template and special tokens of a folder.

    Raises:
        UnsupportedModel: `tokenizer.json` is missing or malformed, or another file is.
        ChatTemplateError: the chat template is malformed.
    """
    tokenizer = _read_tokenizer(folder)
    settings = _read_json(folder / "tokenizer_config.json")
    bos, eos = _token_text(settings.get("bos_token")), _token_text(settings.get("eos_token"))
    special = {token.content: token_id for token_id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    declared = [None if eos is None else tokenizer.token_to_id(eos)]
    for name in ("generation_config.json", "config.json"):
        declared += _as_ids(_read_json(folder / name).get("eos_token_id"))
    source = _chat_template_source(folder, settings)
    bos_token_id = None if bos is None else tokenizer.token_to_id(bos)
    return TokenizerBundle(
        tokenizer=tokenizer,
        chat_template=None if source is None else ChatTemplate(source, bos, eos),
        eos_token_ids=end_token_ids(declared, special, vocab_size=tokenizer.get_vocab_size()),
        bos_token_id=bos_token_id,
        add_bos=bos_token_id is not None and tokenizer.encode("").ids[:1] == [bos_token_id],
    )


def _read_tokenizer(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise UnsupportedModel(f"{folder} has no tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the binding raises bare `Exception` for any malformed file
        raise UnsupportedModel(f"{path} is malformed: {one_line(error)}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _read_json(path: Path) -> dict[str, Any]:
    """A JSON object, empty if there is no such file."""
    if not path.is_file():
        return {}
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise UnsupportedModel(f"{path} is too large")
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UnsupportedModel(f"{path} is not valid JSON: {one_line(error)}") from error
    if not isinstance(value, dict):
        raise UnsupportedModel(f"{path} is not a JSON object")
    return value


def _chat_template_source(folder: Path, settings: dict[str, Any]) -> str | None:
    """The default template: from its own file, or from the tokenizer's settings, alone or in a list of named ones."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise UnsupportedModel(f"{path} is not UTF-8") from error
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _token_text(token: Any) -> str | None:
    """A token in `tokenizer_config.json` is a string or an object with its `content`."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _as_ids(value: Any) -> list[int]:
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, int)]
