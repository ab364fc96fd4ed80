"""Matrix products of a fused decoder layer."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class MergedLinear(torch.nn.Module):
    """Several linear modules over the same rows as one product.

    Rows go in and come out as float32, whatever the weights are.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=False)
        self.bias = None if bias is None else torch.nn.Parameter(bias, requires_grad=False)

    @classmethod
    def of(cls, parts: Sequence[torch.nn.Linear]) -> MergedLinear:
        """Outputs of the parts side by side. The memory of a single part is shared, that of several is copied."""
        if len(parts) == 1:
            return cls(parts[0].weight.data, None if parts[0].bias is None else parts[0].bias.data)
        biases = [torch.zeros(part.out_features).to(part.weight) if part.bias is None else part.bias for part in parts]
        bias = torch.cat(biases) if any(part.bias is not None for part in parts) else None
        return cls(torch.cat([part.weight for part in parts]), bias)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """rows [T, K] float32 -> [T, N] float32"""
        if self.weight.dtype == torch.float32:
            return torch.nn.functional.linear(rows, self.weight, self.bias)
        return torch.nn.functional.linear(rows.to(self.weight.dtype), self.weight, self.bias).float()
