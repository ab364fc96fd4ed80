"""Unpacking block-quantised values: bit for bit what the format's own library gives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize as oracle
from hypothesis import given
from hypothesis import strategies as st

from formcast.engine.errors import UnsupportedModel
from formcast.engine.models.gguf_quants import KERNELS, dequantize

Kind = GGMLQuantizationType
WITHOUT_KERNEL = [Kind.Q2_K, Kind.Q3_K, Kind.IQ4_NL, Kind.TQ1_0, Kind.MXFP4]


def random_blocks(kind: GGMLQuantizationType, count: int, seed: int = 0) -> np.ndarray:
    """Blocks of random bytes: scales become anything, infinities and NaN too."""
    block_bytes = GGML_QUANT_SIZES[kind][1]
    return np.random.default_rng(seed).integers(0, 256, (count, block_bytes), dtype=np.uint8)


def unpacked(kind: GGMLQuantizationType, blocks: np.ndarray, pool: ThreadPoolExecutor | None = None) -> np.ndarray:
    out = np.full((len(blocks), GGML_QUANT_SIZES[kind][0]), 42, np.float32)
    dequantize(blocks.reshape(-1), kind, out, pool)
    return out


def expected(kind: GGMLQuantizationType, blocks: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return oracle(blocks, kind).reshape(len(blocks), -1)


@pytest.mark.parametrize("kind", [*KERNELS, *WITHOUT_KERNEL], ids=lambda kind: kind.name)
def test_every_type_equals_the_oracle(kind: GGMLQuantizationType):
    blocks = random_blocks(kind, 500)
    np.testing.assert_array_equal(unpacked(kind, blocks), expected(kind, blocks))


@given(kind=st.sampled_from(list(KERNELS)), count=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_any_number_of_blocks(kind: GGMLQuantizationType, count: int, seed: int):
    blocks = random_blocks(kind, count, seed)
    np.testing.assert_array_equal(unpacked(kind, blocks), expected(kind, blocks))


@pytest.mark.parametrize("count", [2047, 2048, 2049, 4097])
def test_chunks_meet_without_a_gap_alone_and_in_threads(count: int):
    blocks = random_blocks(Kind.Q8_0, count)  # chunks hold 2,048 blocks of this type
    with ThreadPoolExecutor(3) as pool:
        threaded = unpacked(Kind.Q8_0, blocks, pool)
    np.testing.assert_array_equal(threaded, expected(Kind.Q8_0, blocks))
    np.testing.assert_array_equal(unpacked(Kind.Q8_0, blocks), threaded)


def test_bytes_are_not_changed():
    blocks = random_blocks(Kind.Q6_K, 10)
    before = blocks.copy()
    unpacked(Kind.Q6_K, blocks)
    np.testing.assert_array_equal(blocks, before)


def test_a_type_nobody_can_unpack_is_refused():
    with pytest.raises(UnsupportedModel, match="Q8_K"):
        unpacked(Kind.Q8_K, random_blocks(Kind.Q8_K, 2))
