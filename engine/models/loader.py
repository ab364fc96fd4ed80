"""Loading a model from a local GGUF file or a folder in Hugging Face's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from ..attention import IMPLEMENTATION
from ..config import Quantization
from ..errors import ModelNotFound, UnsupportedModel
from .folder_model import load_folder_config, load_folder_module, load_folder_tokenizer
from .fusion.passes import fuse as fuse_module
from .gguf_file import GgufFile
from .gguf_model import load_gguf_tokenizer
from .gguf_weights import build_config, build_module
from .loaded import LoadedModel, TokenizerBundle
from .model_files import ModelFiles, find_model_files

_LENGTH_ATTRIBUTES = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")


def load_model(
    source: Path | str,
    *,
    dtype: torch.dtype = torch.float32,
    attn_implementation: str = "sdpa",
    device: torch.device | str = "cpu",
    fuse: bool = True,
    quantization: Quantization | None = "none",
) -> LoadedModel:
    """Load a model that is on this machine; `ModelStore.resolve` turns a name into a path.

    Args:
        source: a `.gguf` file, a folder with one, or a folder with `config.json`, safetensors and `tokenizer.json`.
        dtype: of the weights. Quantised weights are unpacked.
        attn_implementation: a name of transformers' attention interface.
        device: where the module goes.
        fuse: replace the module's parts by lean ones where they are known. Only with our own attention, on a CPU.
        quantization: of the weights of layers and head, see `engine.models.fusion.int8`; None: as they are stored, where that is
            possible.

    Raises:
        ModelNotFound: there is no such file or folder.
        UnsupportedModel: it cannot be loaded exactly.
        ChatTemplateError: its chat template is malformed.
    """
    files = _existing(source)
    if files.gguf is not None:
        file = GgufFile(files.gguf)
        tokenizer = load_gguf_tokenizer(file)
        config = build_config(file)
        module = build_module(file, config, dtype=dtype, attn_implementation=attn_implementation)
        stored: Quantization = "int8" if file.is_quantised else "none"
    else:
        tokenizer = load_folder_tokenizer(files.path)
        config = load_folder_config(files.path)
        module = load_folder_module(files.path, config, dtype=dtype, attn_implementation=attn_implementation)
        stored = "none"
    model = _assemble(files.name, tokenizer, _placed(module, device))
    if fuse and attn_implementation == IMPLEMENTATION:
        fuse_module(model.module, quantization=quantization or stored, must_quantise=quantization is not None)
    elif quantization == "int8":
        raise UnsupportedModel(f"{quantization} needs fused layers and our own attention")
    return model


def load_tokenizer_only(source: Path | str) -> TokenizerBundle:
    """The tokenizer of a model, for tools that need no weights; otherwise like `load_model`."""
    files = _existing(source)
    return load_gguf_tokenizer(GgufFile(files.gguf)) if files.gguf is not None else load_folder_tokenizer(files.path)


def _existing(source: Path | str) -> ModelFiles:
    path = Path(source).expanduser()
    if not path.exists():
        raise ModelNotFound(str(source), "no such file or folder")
    return find_model_files(path)


def _assemble(name: str, bundle: TokenizerBundle, module: PreTrainedModel) -> LoadedModel:
    config = module.config.get_text_config()
    vocab_size = _logits_width(name, module)
    return LoadedModel(
        name=name,
        module=module,
        config=config,
        tokenizer=bundle.tokenizer,
        chat_template=bundle.chat_template,
        eos_token_ids=frozenset(token_id for token_id in bundle.eos_token_ids if token_id < vocab_size),
        bos_token_id=bundle.bos_token_id,
        add_bos=bundle.add_bos,
        max_model_len=_max_model_len(name, config),
        vocab_size=vocab_size,
    )


def _placed(module: PreTrainedModel, device: torch.device | str) -> PreTrainedModel:
    torch.nn.Module.to(module, device)
    return module


def _logits_width(name: str, module: PreTrainedModel) -> int:
    head = module.get_output_embeddings()
    if head is None:
        raise UnsupportedModel(f"{name} has no language model head")
    return head.weight.shape[0]


def _max_model_len(name: str, config: Any) -> int:
    for attribute in _LENGTH_ATTRIBUTES:
        length = getattr(config, attribute, None)
        if isinstance(length, int):
            return length
    raise UnsupportedModel(f"{name} does not state its context length")
