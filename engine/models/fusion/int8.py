"""Products in 8-bit integers: weights quantised once by output, rows quantised as they come, each by itself.

The weights of an output are integers times one scale, symmetric around 0, as in LLM.int8() (Dettmers et al. 2022). A row would lose too
much in one byte a value, since a few of its values are much larger than the rest; it takes two, as two rows of the same product. The
weights are read once for both, and reading them is what a product costs. Integers are summed exactly, so a row's result depends on
that row alone, to the last bit.
"""

from __future__ import annotations

import functools

import torch
from torch import _int_mm  # pyright: ignore[reportPrivateImportUsage]

from ...kernels import few_rows
from ...kernels.row_math import combine_rows, num_quantized_rows, quantize_rows
from .linear import LinearWeights

_RANGE = 127


class Int8Linear(torch.nn.Module):
    """Products with quantised weights; rows go in and come out as float32."""

    def __init__(self, weights: LinearWeights):
        super().__init__()
        integers, self._scales = quantize_rows(
            weights.weight.float().contiguous(), _rounded_up(weights.weight.shape[1], few_rows.VECTOR_BYTES)
        )
        self._weight = _coarse(integers, weights.weight.shape[0])
        self._offsets = few_rows.int8_offsets(self._weight)
        self._bias = None if weights.bias is None else weights.bias.float()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """rows [T, K] contiguous -> [T, N]"""
        streamed = num_quantized_rows(rows.shape[0]) <= few_rows.MAX_ROWS or not _library_is_exact()
        integers, row_scales = quantize_rows(rows, self._weight.shape[1], offset=few_rows.ROW_OFFSET if streamed else 0)
        if streamed:
            products = few_rows.multiply_int8(integers, self._weight, self._offsets)
        else:
            products = _int_mm(integers.view(torch.int8), self._weight.t())
        out = combine_rows(products, row_scales, self._scales)
        return out if self._bias is None else out.add_(self._bias)


def _coarse(integers: torch.Tensor, num_outputs: int) -> torch.Tensor:
    """The first byte of each of N quantised rows, as int8, with rows of zeros up to a number that the kernel takes."""
    coarse = torch.zeros(_rounded_up(num_outputs, few_rows.TILE_OUTPUTS), integers.shape[1], dtype=torch.int8)
    coarse[:num_outputs] = integers[:num_outputs].view(torch.int8)
    return coarse


def _rounded_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


@functools.cache
def _library_is_exact() -> bool:
    """Whether PyTorch's product of 8-bit integers is exact on this machine: on some, pairs of products are cut off at 16 bits."""
    extremes = torch.full((64, 64), _RANGE, dtype=torch.int8)
    extremes[1::2] = -_RANGE
    try:
        return torch.equal(_int_mm(extremes, extremes.t()), extremes.int() @ extremes.int().t())
    except RuntimeError:  # no such product for this kind of machine
        return False
