"""Unpacking of GGUF's block-quantised values to float32.

Each type has a small numpy kernel that turns packed blocks into values, bit for bit what `gguf.quants.dequantize`
gives; types without one go through that function. Layouts: ggml's `ggml-common.h`. A tensor is unpacked in chunks
that stay in the processor's cache, spread over threads (numpy releases the interpreter lock).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize as dequantize_by_gguf

from ..errors import UnsupportedModel

Kernel = Callable[[np.ndarray, np.ndarray], None]  # (blocks [n, block_bytes] uint8, out [n, block_size] float32)

_CHUNK_ELEMENTS = 1 << 16


def dequantize(packed: np.ndarray, kind: GGMLQuantizationType, out: np.ndarray, pool: ThreadPoolExecutor | None = None) -> None:
    """Unpack `packed` (uint8 [num_bytes]) into `out` (float32, C-contiguous, any shape of as many elements).

    Raises:
        UnsupportedModel: `kind` is not known to the installed `gguf` package either.
    """
    block_size, block_bytes = GGML_QUANT_SIZES[kind]
    blocks = packed.reshape(-1, block_bytes)
    values = out.reshape(-1, block_size)
    kernel = KERNELS.get(kind) or _fallback(kind)
    step = max(1, _CHUNK_ELEMENTS // block_size)
    starts = range(0, len(blocks), step)

    def unpack(start: int) -> None:
        with np.errstate(all="ignore"):  # damaged scales give infinities and NaN, as they would anywhere
            kernel(blocks[start : start + step], values[start : start + step])

    if pool is None or len(starts) == 1:
        for start in starts:
            unpack(start)
    else:
        for _ in pool.map(unpack, starts):
            pass


def _fallback(kind: GGMLQuantizationType) -> Kernel:
    def kernel(blocks: np.ndarray, out: np.ndarray) -> None:
        try:
            out[...] = dequantize_by_gguf(blocks, kind)
        except NotImplementedError as error:
            raise UnsupportedModel(f"tensors of type {kind.name} are not supported") from error

    return kernel


def _halves(blocks: np.ndarray, start: int) -> np.ndarray:
    """The float16 at byte `start` of each block, as float32 [n, 1]."""
    return np.ascontiguousarray(blocks[:, start : start + 2]).view(np.float16).astype(np.float32)


def _nibbles(packed: np.ndarray, group: int) -> np.ndarray:
    """4-bit values of `packed` [n, m], as uint8 [n, 2m]: for each `group` bytes the low nibbles, then the high ones."""
    grouped = packed.reshape(len(packed), -1, group)
    values = np.empty((len(packed), grouped.shape[1], 2, group), np.uint8)
    np.bitwise_and(grouped, 0x0F, out=values[:, :, 0])
    np.right_shift(grouped, 4, out=values[:, :, 1])
    return values.reshape(len(packed), -1)


def _high_bits(packed: np.ndarray) -> np.ndarray:
    """The bits of 4 little-endian bytes per block [n, 4], as uint8 [n, 32] worth 16 each."""
    return np.unpackbits(packed, axis=1, bitorder="little") << 4


def _scale(values: np.ndarray, scales: np.ndarray, out: np.ndarray) -> None:
    """`out = values * scales`, in two passes: numpy's conversion inside a product is five times slower."""
    out[...] = values
    out *= scales


def _f32(blocks: np.ndarray, out: np.ndarray) -> None:
    out[...] = blocks.view(np.float32)


def _f16(blocks: np.ndarray, out: np.ndarray) -> None:
    out[...] = blocks.view(np.float16)


def _bf16(blocks: np.ndarray, out: np.ndarray) -> None:
    np.left_shift(blocks.view(np.uint16), 16, out=out.view(np.uint32), dtype=np.uint32)


def _q4_0(blocks: np.ndarray, out: np.ndarray) -> None:
    signed = _nibbles(blocks[:, 2:], 16).view(np.int8)
    signed -= np.int8(8)
    _scale(signed, _halves(blocks, 0), out)


def _q4_1(blocks: np.ndarray, out: np.ndarray) -> None:
    _scale(_nibbles(blocks[:, 4:], 16), _halves(blocks, 0), out)
    out += _halves(blocks, 2)


def _q5_0(blocks: np.ndarray, out: np.ndarray) -> None:
    values = _nibbles(blocks[:, 6:], 16)
    values |= _high_bits(blocks[:, 2:6])
    signed = values.view(np.int8)
    signed -= np.int8(16)
    _scale(signed, _halves(blocks, 0), out)


def _q5_1(blocks: np.ndarray, out: np.ndarray) -> None:
    values = _nibbles(blocks[:, 8:], 16)
    values |= _high_bits(blocks[:, 4:8])
    _scale(values, _halves(blocks, 0), out)
    out += _halves(blocks, 2)


def _q8_0(blocks: np.ndarray, out: np.ndarray) -> None:
    _scale(blocks[:, 2:].view(np.int8), _halves(blocks, 0), out)


def _k_scales(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eight 6-bit scales and minima of 12 bytes per block [n, 12], each float32 [n, 8].

    Bytes 0-3 and 4-7 hold the first four of each; their top two bits, with the nibbles of bytes 8-11, the others.
    """
    low, high, rest = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([low & 0x3F, (rest & 0x0F) | ((low >> 2) & 0x30)], axis=1)
    minima = np.concatenate([high & 0x3F, (rest >> 4) | ((high >> 2) & 0x30)], axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _scale_and_shift(values: np.ndarray, blocks: np.ndarray, out: np.ndarray) -> None:
    """`out = d * scale * value - dmin * minimum` for the super-blocks of Q4_K and Q5_K (eight groups of 32)."""
    scales, minima = _k_scales(blocks[:, 4:16])
    scales *= _halves(blocks, 0)
    minima *= _halves(blocks, 2)
    grouped = out.reshape(-1, 8, 32)
    _scale(values.reshape(-1, 8, 32), scales[:, :, None], grouped)
    grouped -= minima[:, :, None]


def _q4_k(blocks: np.ndarray, out: np.ndarray) -> None:
    _scale_and_shift(_nibbles(blocks[:, 16:], 32), blocks, out)


def _q5_k(blocks: np.ndarray, out: np.ndarray) -> None:
    values = _nibbles(blocks[:, 48:], 32)
    bit_planes = blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None]  # [n, 8, 32]
    values |= ((bit_planes & 1) << 4).reshape(len(blocks), -1)
    _scale_and_shift(values, blocks, out)


def _q6_k(blocks: np.ndarray, out: np.ndarray) -> None:
    values = _nibbles(blocks[:, :128], 64)
    pairs = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None]  # [n, 2, 4, 32]
    values |= ((pairs & 3) << 4).reshape(len(blocks), -1)
    signed = values.view(np.int8)
    signed -= np.int8(32)
    scales = blocks[:, 192:208].view(np.int8).astype(np.float32)
    scales *= _halves(blocks, 208)
    _scale(signed.reshape(-1, 16, 16), scales[:, :, None], out.reshape(-1, 16, 16))


_Type = GGMLQuantizationType
KERNELS: dict[GGMLQuantizationType, Kernel] = {
    _Type.F32: _f32,
    _Type.F16: _f16,
    _Type.BF16: _bf16,
    _Type.Q4_0: _q4_0,
    _Type.Q4_1: _q4_1,
    _Type.Q5_0: _q5_0,
    _Type.Q5_1: _q5_1,
    _Type.Q8_0: _q8_0,
    _Type.Q4_K: _q4_k,
    _Type.Q5_K: _q5_k,
    _Type.Q6_K: _q6_k,
}
