# ruff: noqa: RUF001 (other scripts are what is tested)
"""The built-in models against transformers' own GGUF path, which takes up to a minute each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from formcast.engine.models.loaded import LoadedModel
from formcast.engine.models.loader import load_model
from formcast.engine.models.store import ModelStore

pytestmark = pytest.mark.slow

PARAGRAPHS = [
    "The quick brown fox jumps over the lazy dog. I'm sure you're right; they'll see it's 3,141.59 times worse!",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ґанок, їжак, Ёлка.",
    "你好，世界。人工智能正在改变世界。日本語のテキスト、カタカナ、ひらがな。한국어 문장입니다.",
    "مرحبا بالعالم، كيف حالك اليوم؟ ١٢٣٤٥ שלום עולם ไทยภาษา हिन्दी तमिऴ் தமிழ் Ελληνικά",
    "🎉👍🏽👩‍👩‍👧‍👦🏳️‍🌈 é é ñ ß ﬁ Å ﷺ 𝕳𝖊𝖑𝖑𝖔 𐍈 \u200b\u00a0\u3000\u2028\ufeff\ufffd\x00\x7f",
    "def f(x: int) -> str:\n    return f'{x:>10}'  # comment\n\n\n\nclass A:\n\tpass\n\t\tif x == 0x1F and y != 1e-10:\r\n",
    '{"a": [1, 2.5e-10, null, true], "b": {"c": "\\u00e9\\n"}, "d": ""}',
    "0 1 12 123 1234 12345 1,234,567.89 -1.5e+10 ½ ² Ⅷ ٣ 2024-02-29T23:59:60Z",
    " ", "  ", "   a", "a   ", "\n", "\n\n\n\n", "\t\t\t", " \n \n  \n", " " * 33, "\n" * 33, "x" * 300,
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|> <|im_start|>",
    "<bos><start_of_turn>user\nhi<end_of_turn>\n<eos> <unused5>[multimodal]<pad><mask>",
    "",
]  # fmt: skip
FRAGMENTS = [
    *"abcXYZ019 \n\t.,'\"<>|{}[]éüжЩ中文字かな한ا١🎉\u200d▁_-",
    "  ",
    "    ",
    "\n\n",
    "the",
    " of",
    "ing",
    "'s",
    "<|im_end|>",
    "<eos>",
]


def corpus() -> Iterator[str]:
    yield from PARAGRAPHS
    yield " ".join(PARAGRAPHS)
    rng = random.Random(0)
    for _ in range(2000):
        yield "".join(rng.choice(FRAGMENTS) for _ in range(rng.randint(1, 60)))


@pytest.fixture(scope="module", params=["smollm2-135m", "gemma3-270m"])
def path(request: pytest.FixtureRequest) -> Path:
    return ModelStore().resolve(request.param).path


@pytest.fixture(scope="module")
def loaded(path: Path) -> LoadedModel:
    return load_model(path)


def test_token_ids_and_text(path: Path, loaded: LoadedModel):
    reference = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    for text in corpus():
        ids = loaded.tokenizer.encode(text).ids
        assert ids == reference.encode(text), repr(text)
        assert loaded.tokenizer.decode(ids, skip_special_tokens=False) == reference.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )


def test_logits(path: Path, loaded: LoadedModel):
    pytest.importorskip("accelerate", reason="transformers' GGUF path needs it")
    reference = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    ids = torch.tensor([loaded.tokenizer.encode(" ".join(PARAGRAPHS[:4])).ids])
    with torch.no_grad():
        torch.testing.assert_close(loaded.module(ids).logits, reference(ids).logits, atol=1e-3, rtol=0)


def test_what_the_files_say(path: Path, loaded: LoadedModel):
    expected = {
        "SmolLM2-135M-Instruct.Q4_1": ({0, 2}, 1, False, 8192, 49152, True),
        "gemma-3-270m-q4_k_m": ({1, 106}, 2, True, 32768, 262144, False),
    }
    eos_ids, bos_id, add_bos, max_model_len, vocab_size, has_template = expected[loaded.name]
    assert loaded.eos_token_ids == eos_ids
    assert (loaded.bos_token_id, loaded.add_bos) == (bos_id, add_bos)
    assert (loaded.max_model_len, loaded.vocab_size) == (max_model_len, vocab_size)
    assert (loaded.chat_template is not None) == has_template


def test_it_speaks(loaded: LoadedModel):
    ids = torch.tensor([loaded.tokenizer.encode("The capital of France is").ids])
    with torch.no_grad():
        best = loaded.module(ids).logits[0, -1].topk(10).indices.tolist()
    assert "Paris" in {loaded.tokenizer.decode([token_id]).strip() for token_id in best}
