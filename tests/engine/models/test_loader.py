"""Loading models: a file or folder written from a transformers module gives that module back."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from gguf_samples import (
    byte_level_metadata,
    byte_level_tokenizer,
    gguf_tensors,
    hyperparameters,
    tiny_model,
    write_gguf,
    write_model,
)
from transformers import PreTrainedModel

from formcast.engine.attention import IMPLEMENTATION
from formcast.engine.config import Quantization
from formcast.engine.errors import ModelError, ModelNotFound, UnsupportedModel
from formcast.engine.models.fusion.int8 import Int8Linear
from formcast.engine.models.loader import load_model, load_tokenizer_only

IDS = torch.tensor([[5, 99, 1, 0, 398, 17, 256, 3, 3, 42]])


def logits(module: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return module(IDS).logits


LLAMA_VARIANTS = {
    "tied": {},
    "untied": {"tie_word_embeddings": False},
    "one key per query": {"num_key_value_heads": 4},
    "one key for all": {"num_key_value_heads": 1},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "other theta": {"rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0}},
}


@pytest.mark.parametrize("variant", LLAMA_VARIANTS)
def test_llama(tmp_path: Path, variant: str):
    module = tiny_model("llama", **LLAMA_VARIANTS[variant])
    loaded = load_model(write_model(tmp_path / "m.gguf", "llama", module))
    torch.testing.assert_close(logits(loaded.module), logits(module), atol=1e-5, rtol=1e-5)


def test_gemma3(tmp_path: Path):
    module = tiny_model("gemma3_text", num_hidden_layers=7, sliding_window=4, query_pre_attn_scalar=32)
    loaded = load_model(write_model(tmp_path / "m.gguf", "gemma3", module))
    assert loaded.config.layer_types == 5 * ["sliding_attention"] + ["full_attention", "sliding_attention"]
    assert loaded.config.sliding_window == 4
    torch.testing.assert_close(logits(loaded.module), logits(module), atol=1e-4, rtol=1e-4)


def test_gemma3_states_its_own_window_pattern_and_scaling(tmp_path: Path):
    layer_types = ["full_attention", "sliding_attention", "full_attention"]
    rope = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
    }
    module = tiny_model(
        "gemma3_text", num_hidden_layers=3, sliding_window=4, query_pre_attn_scalar=32, layer_types=layer_types, rope_parameters=rope
    )
    path = write_model(
        tmp_path / "m.gguf",
        "gemma3",
        module,
        gemma3__attention__sliding_window_pattern=[False, True, False],
        gemma3__rope__scaling__type="linear",
        gemma3__rope__scaling__factor=8.0,
    )
    torch.testing.assert_close(logits(load_model(path).module), logits(module), atol=1e-4, rtol=1e-4)


def test_linear_rope_scaling_of_llama(tmp_path: Path):
    module = tiny_model("llama", rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0})
    path = write_model(tmp_path / "m.gguf", "llama", module, llama__rope__scaling__type="linear", llama__rope__scaling__factor=4.0)
    torch.testing.assert_close(logits(load_model(path).module), logits(module), atol=1e-5, rtol=1e-5)


def test_llama3_rope_scaling_is_stored_as_factors(tmp_path: Path):
    rope = {
        "rope_type": "llama3",
        "rope_theta": 10_000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    }
    module = tiny_model("llama", rope_parameters=rope)
    plain = 1.0 / 10_000.0 ** (np.arange(0, 32, 2, dtype=np.float32) / 32)
    factors = plain / module.model.rotary_emb.inv_freq.numpy()
    metadata = {**hyperparameters("llama", module.config), **byte_level_metadata(byte_level_tokenizer())}
    path = write_gguf(tmp_path / "m.gguf", "llama", metadata, {**gguf_tensors("llama", module), "rope_freqs.weight": factors})
    torch.testing.assert_close(logits(load_model(path).module), logits(module), atol=1e-4, rtol=1e-4)


def test_quantised_weights_are_unpacked(tmp_path: Path):
    kinds = {"attn_q": GGMLQuantizationType.Q4_1, "ffn_up": GGMLQuantizationType.Q5_0, "attn_v": GGMLQuantizationType.F16}

    def type_of(name: str, values: np.ndarray) -> GGMLQuantizationType:
        fallback = GGMLQuantizationType.F32 if "norm" in name else GGMLQuantizationType.Q8_0
        return kinds.get(name.split(".")[2] if name.startswith("blk") else name, fallback)

    module = tiny_model("llama")
    tensors = gguf_tensors("llama", module)
    rounded = {name: dequantize(quantize(values, type_of(name, values)), type_of(name, values)) for name, values in tensors.items()}
    metadata = {**hyperparameters("llama", module.config), **byte_level_metadata(byte_level_tokenizer())}
    packed = write_gguf(tmp_path / "packed.gguf", "llama", metadata, tensors, type_of=type_of)
    plain = write_gguf(tmp_path / "plain.gguf", "llama", metadata, rounded)
    torch.testing.assert_close(logits(load_model(packed).module), logits(load_model(plain).module), atol=0, rtol=0)
    cases: list[tuple[Path, Quantization | None, bool]] = [
        (packed, None, True),
        (packed, "none", False),
        (plain, None, False),
        (plain, "int8", True),
    ]
    for path, quantization, expected in cases:
        module = load_model(path, attn_implementation=IMPLEMENTATION, quantization=quantization).module
        assert any(isinstance(part, Int8Linear) for part in module.modules()) == expected


def test_what_a_loaded_model_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    path = write_model(tmp_path / "tiny.gguf", "llama", tiny_model("llama"))
    loaded = load_model(str(path), dtype=torch.bfloat16)
    assert loaded.name == "tiny"
    assert (loaded.max_model_len, loaded.vocab_size) == (256, 400)
    assert (loaded.bos_token_id, loaded.add_bos) == (1, False)
    assert loaded.eos_token_ids == {0, 2}  # the declared end of turn, and the end of text by its spelling
    assert loaded.chat_template is not None
    assert loaded.chat_template.render([{"role": "user", "content": "hi"}]) == "<|im_start|>user\nhi<|im_end|>\n"
    assert not loaded.module.training
    assert {parameter.dtype for parameter in loaded.module.parameters()} == {torch.bfloat16}
    assert not any(parameter.requires_grad for parameter in loaded.module.parameters())
    assert not any(parameter.is_meta for parameter in [*loaded.module.parameters(), *loaded.module.buffers()])
    module: Any = loaded.module
    assert module.get_output_embeddings().weight is module.get_input_embeddings().weight
    assert capfd.readouterr() == ("", "")


def test_the_attention_implementation_is_the_callers(tmp_path: Path):
    path = write_model(tmp_path / "m.gguf", "llama", tiny_model("llama"))
    assert load_model(path, attn_implementation="eager").config._attn_implementation == "eager"


def test_the_tokenizer_alone(tmp_path: Path):
    path = write_model(tmp_path / "m.gguf", "llama", tiny_model("llama"))
    bundle = load_tokenizer_only(path)
    assert bundle.tokenizer.encode("The quick").ids == byte_level_tokenizer().encode("The quick").ids
    assert bundle.eos_token_ids == {0, 2}


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({"general__architecture": "mamba"}, "'mamba' is not supported"),
        ({"llama__expert_count": 8}, "mixture-of-experts"),
        ({"llama__block_count": 3}, "lacks 9 tensors, the first for model.layers.2"),
        ({"llama__block_count": 1}, "has no place in a llama model"),
        ({"llama__block_count": 4_000_000_000}, "block_count is 4000000000"),
        ({"llama__block_count": 1_000_000}, "declares 1000000 layers"),
        ({"llama__embedding_length": 128}, "has shape"),
        ({"llama__feed_forward_length": 97}, "has shape"),
        ({"llama__attention__head_count": 0}, "head_count is 0"),
        ({"llama__attention__head_count": 3}, "impossible model|has shape"),
        ({"llama__attention__head_count": [4, 4]}, "unexpected type"),
        ({"llama__attention__value_length": 16}, "of different length"),
        ({"llama__rope__dimension_count": 16}, "part of the head"),
        ({"llama__rope__scaling__type": "yarn"}, "'yarn' is not supported"),
        ({"split__count": 2}, "split over several files"),
        ({"tokenizer__ggml__pre": "unheard-of"}, "pre-tokenizer 'unheard-of'"),
        ({"tokenizer__ggml__model": "rwkv"}, "tokenizer model 'rwkv'"),
        ({"tokenizer__ggml__eos_token_id": 400}, "not in the vocabulary"),
        ({"tokenizer__ggml__token_type": [1, 2]}, "different lengths"),
        ({"tokenizer__ggml__merges": ["ab"]}, "not a pair"),
        ({"tokenizer__ggml__merges": ["zzz yyy"]}, "malformed tokenizer"),
    ],
)
def test_what_cannot_be_loaded_exactly_is_refused(tmp_path: Path, extra: dict, reason: str):
    architecture = extra.pop("general__architecture", "llama")
    metadata = {
        **hyperparameters("llama", tiny_model("llama").config),
        **byte_level_metadata(byte_level_tokenizer()),
        **{key.replace("__", "."): value for key, value in extra.items()},
    }
    path = write_gguf(tmp_path / "m.gguf", architecture, metadata, gguf_tensors("llama", tiny_model("llama")))
    with pytest.raises(UnsupportedModel, match=reason) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_loaded_or_refused_never_a_crash(tmp_path: Path):
    path = write_model(tmp_path / "m.gguf", "llama", tiny_model("llama"))
    image = path.read_bytes()
    rng = random.Random(0)
    for _ in range(150):
        damaged = bytearray(image)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(20_000)] = rng.randrange(256)  # the metadata, and the names and types of the tensors
        path.write_bytes(damaged)
        try:
            load_model(path)
        except ModelError as error:
            assert "\n" not in str(error)


def test_a_missing_path(tmp_path: Path):
    with pytest.raises(ModelNotFound, match="no such file"):
        load_model(tmp_path / "absent.gguf")


# -------------------------------------------------------------------------------------------------------- folders


def save_folder(folder: Path, module: PreTrainedModel) -> Path:
    module.save_pretrained(folder)
    byte_level_tokenizer().save(str(folder / "tokenizer.json"))
    settings = {
        "bos_token": "<|im_start|>",
        "eos_token": {"content": "<|im_end|>"},
        "chat_template": "{{ bos_token }}{{ messages|length }}",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 7]}))
    return folder


@pytest.mark.parametrize("model_type", ["llama", "qwen2", "gpt_neox"])
def test_a_folder(tmp_path: Path, model_type: str, capfd: pytest.CaptureFixture[str]):
    module = tiny_model(model_type, head_dim=16) if model_type != "gpt_neox" else tiny_model(model_type)
    folder = save_folder(tmp_path / "model", module)
    capfd.readouterr()
    loaded = load_model(folder)
    torch.testing.assert_close(logits(loaded.module), logits(module))
    assert loaded.name == "model"
    assert loaded.eos_token_ids == {0, 2, 7}
    assert loaded.bos_token_id == 1
    assert not loaded.add_bos
    assert loaded.chat_template is not None
    assert loaded.chat_template.render([{}]) == "<|im_start|>1"
    assert capfd.readouterr() == ("", "")


def test_a_folder_with_one_gguf_file(tmp_path: Path):
    write_model(tmp_path / "m.gguf", "llama", tiny_model("llama"))
    assert load_model(tmp_path).name == tmp_path.name


def test_a_folder_with_several_gguf_files(tmp_path: Path):
    path = write_model(tmp_path / "a.gguf", "llama", tiny_model("llama"))
    shutil.copy(path, tmp_path / "b.gguf")
    with pytest.raises(UnsupportedModel, match=r"name one of a\.gguf, b\.gguf"):
        load_model(tmp_path)


def test_a_chat_template_of_its_own_file_comes_first(tmp_path: Path):
    folder = save_folder(tmp_path / "model", tiny_model("llama"))
    (folder / "chat_template.jinja").write_text("own file")
    template = load_tokenizer_only(folder).chat_template
    assert template is not None
    assert template.render([]) == "own file"


def test_the_default_of_several_chat_templates(tmp_path: Path):
    folder = save_folder(tmp_path / "model", tiny_model("llama"))
    templates = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": templates}))
    template = load_tokenizer_only(folder).chat_template
    assert template is not None
    assert template.render([]) == "plain"


def drop_weights(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def drop_a_tensor(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    tensors.pop("model.norm.weight")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (drop_weights, "neither safetensors"),
        (drop_a_tensor, "lacks 1 weights, the first is model.norm.weight"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "malformed"),
        (lambda folder: (folder / "tokenizer_config.json").write_text("[" * 100_000), "not valid JSON"),
        (lambda folder: (folder / "tokenizer_config.json").write_text("[]"), "not a JSON object"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "unheard-of"}'), "unheard-of"),
        (lambda folder: (folder / "config.json").write_text("{"), "model"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\x08" + b"\x00" * 20), "model"),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path: Path, damage, reason: str):
    folder = save_folder(tmp_path / "model", tiny_model("llama"))
    damage(folder)
    with pytest.raises(UnsupportedModel, match=reason) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)


def test_code_that_ships_with_a_model_is_never_run(tmp_path: Path):
    folder = save_folder(tmp_path / "model", tiny_model("llama"))
    marker = tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w')\nclass Config: pass\nclass Model: pass\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedModel):
        load_model(folder)
    assert not marker.exists()
