"""Products in 8-bit integers: weights quantised once by output, rows quantised as they come, each by itself.

The weights of an output are integers times one scale, symmetric around 0, as in LLM.int8() (Dettmers et al. 2022). A row would lose too
much in one byte a value, since a few of its values are much larger than the rest; it takes two, as two rows of the same product. The
weights are read once for both, and reading them is what a product costs. Integers are summed exactly, so a row's result depends on
that row alone, to the last bit.
"""

from __future__ import annotations

import functools

import torch

from ...errors import UnsupportedModel
from ...kernels.row_math import combine_rows, quantize_rows
from .linear import LinearWeights

_FULL_RANGE = 127
_UNSATURATED_RANGE = 64
"""Weights of at most this magnitude fit machines whose byte products add up in pairs to 16 bits: 2 * 255 * 64 < 2^15."""


class Int8Linear(torch.nn.Module):
    """Products with quantised weights; rows go in and come out as float32.

    Raises:
        UnsupportedModel: this build of PyTorch has no exact integer products.
    """

    def __init__(self, weights: LinearWeights):
        super().__init__()
        weight = weights.weight.float()
        limit = _weight_limit()
        scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny) / limit
        self._weight = _packed((weight / scales.unsqueeze(1)).round_().to(torch.int8))
        self._scales = scales
        self._offsets = torch.zeros(weight.shape[0], dtype=torch.int64)
        self._bias = None if weights.bias is None else weights.bias.float()
        self._num_outputs = weight.shape[0]

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """rows [T, K] contiguous -> [T, N]"""
        if rows.shape[0] == 0:
            return rows.new_empty(0, self._num_outputs)
        quantized, row_scales = quantize_rows(rows)
        out = combine_rows(_product(quantized, self._weight, self._scales, self._offsets), row_scales)
        return out if self._bias is None else out.add_(self._bias)


def _packed(weight: torch.Tensor) -> torch.Tensor:
    """int8 weights [N, K] in the layout that oneDNN wants."""
    return torch.ops.onednn.qlinear_prepack(weight, None)


def _product(rows: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """int8 rows [T, K] times packed weights, times scales [N] -> [T, N] float32"""
    return torch.ops.onednn.qlinear_pointwise(
        rows, 1.0, 0, packed, scales, offsets, None, 1.0, 0, torch.float32, "none", [], ""
    )  # fmt: skip


@functools.cache
def _weight_limit() -> int:
    """The largest magnitude of weights with which products are exact on this machine, found by trying the extremes."""
    for limit in (_FULL_RANGE, _UNSATURATED_RANGE):
        if _is_exact(limit):
            return limit
    raise UnsupportedModel("int8: this build of PyTorch has no exact products of 8-bit integers on this machine")


def _is_exact(limit: int, num_outputs: int = 16, width: int = 64) -> bool:
    signs = torch.where(torch.arange(num_outputs) % 2 == 0, 1, -1).to(torch.int8)
    weight = (signs * limit).unsqueeze(1).expand(num_outputs, width).contiguous()
    rows = torch.full((2, width), _FULL_RANGE, dtype=torch.int8)
    rows[1] = -_FULL_RANGE
    try:
        actual = _product(rows, _packed(weight), torch.ones(num_outputs), torch.zeros(num_outputs, dtype=torch.int64))
    except (RuntimeError, AttributeError):  # no such operator in this build, or none for this machine
        return False
    return torch.equal(actual, (rows.int() @ weight.int().t()).float())
