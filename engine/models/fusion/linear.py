"""Matrix products of fused modules: rows go in and come out as float32, whatever the weights are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from ...kernels import few_rows


class LinearWeights(NamedTuple):
    """Weights [N, K] and biases [N] in the type of the model."""

    weight: torch.Tensor
    bias: torch.Tensor | None


def merge(parts: Sequence[torch.nn.Linear]) -> LinearWeights:
    """The outputs of the parts side by side. The memory of a single part is shared, that of several is copied."""
    if len(parts) == 1:
        bias = parts[0].bias
        return LinearWeights(parts[0].weight.data, None if bias is None else bias.data)
    weight = torch.cat([part.weight.data for part in parts])
    if all(part.bias is None for part in parts):
        return LinearWeights(weight, None)
    biases = [weight.new_zeros(part.out_features) if part.bias is None else part.bias.data for part in parts]
    return LinearWeights(weight, torch.cat(biases))


class RowLinear(torch.nn.Module):
    """Exact products: few rows by a kernel that reads the weights once, many by the library."""

    def __init__(self, weights: LinearWeights):
        super().__init__()
        self.weight = torch.nn.Parameter(weights.weight, requires_grad=False)
        self.bias = None if weights.bias is None else torch.nn.Parameter(weights.bias, requires_grad=False)
        self._streams = few_rows.supports(self.weight)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """rows [T, K] contiguous -> [T, N]"""
        if self._streams and rows.shape[0] <= few_rows.MAX_ROWS:
            out = few_rows.multiply(rows, self.weight)
            return out if self.bias is None else out.add_(self.bias)
        return torch.nn.functional.linear(rows.to(self.weight.dtype), self.weight, self.bias).float()


class Head(torch.nn.Module):
    """Stands in for the language model head, `torch.nn.Linear` without bias."""

    def __init__(self, linear: torch.nn.Module, dtype: torch.dtype):
        super().__init__()
        self.linear = linear
        self._dtype = dtype

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[1, R, C] -> [1, R, V]"""
        return self.linear(hidden_states[0].float().contiguous()).to(self._dtype).unsqueeze(0)
