"""Grammar mask, penalties, temperature, truncation and sampling in one kernel: the one entry for all devices."""

from __future__ import annotations

import torch

from .layout import FREE_ROW, MISSING_ROW, LogitEdits, RowStatus, SampleResult, SampleSettings

__all__ = ["FREE_ROW", "MISSING_ROW", "LogitEdits", "RowStatus", "SampleResult", "SampleSettings", "masked_sample"]


def masked_sample(logits: torch.Tensor, settings: SampleSettings) -> SampleResult:
    """Samples one token per row.

    The order is edits, mask, temperature, min-p, top-k, top-p, typical-p. Each of the last four cuts what the one before left,
    and keeps or drops tokens of equal logits together.

    Args:
        logits: [R, V] float32, contiguous. Edits change it in place; nothing else does.
        settings: tensors on the device of the logits.
    """
    _check(logits, settings)
    if logits.device.type == "cpu":
        return _on_cpu(logits, settings)
    from . import triton

    return triton.masked_sample(logits, settings)


def _on_cpu(logits: torch.Tensor, settings: SampleSettings) -> SampleResult:
    from . import cpu

    num_rows = logits.shape[0]
    result = SampleResult(
        token_ids=torch.zeros(num_rows, dtype=torch.int32),
        logprobs=torch.zeros(num_rows, dtype=torch.float32),
        statuses=torch.zeros(num_rows, dtype=torch.int32),
    )
    edits = settings.edits
    if edits is not None:
        fields = (
            settings.mask_rows, edits.offsets, edits.token_ids, edits.counts, edits.seen, edits.biases, edits.repetition, edits.frequency,
            edits.presence,
        )  # fmt: skip
        cpu.edit_rows(logits.numpy(), *(field.numpy() for field in fields))
    inputs = (
        settings.masks, settings.mask_rows, settings.temperatures, settings.min_ps, settings.top_ks, settings.top_ps, settings.typical_ps,
        settings.uniforms, result.token_ids, result.logprobs, result.statuses,
    )  # fmt: skip
    cpu.sample_rows(logits, *inputs)
    return result


def _check(logits: torch.Tensor, settings: SampleSettings) -> None:
    num_rows, num_tokens = logits.shape
    assert logits.dtype == torch.float32 and logits.is_contiguous()
    assert settings.masks.shape[1:] == (-(-num_tokens // 32),) and settings.masks.dtype == torch.int32
    assert settings.masks.is_contiguous()
    _check_rows(settings.mask_rows, num_rows, torch.int32)
    _check_rows(settings.top_ks, num_rows, torch.int32)
    for tensor in (settings.temperatures, settings.min_ps, settings.top_ps, settings.typical_ps, settings.uniforms):
        _check_rows(tensor, num_rows, torch.float32)
    if settings.edits is not None:
        _check_edits(settings.edits, num_rows)


def _check_edits(edits: LogitEdits, num_rows: int) -> None:
    _check_rows(edits.offsets, num_rows + 1, torch.int32)
    num_entries = edits.token_ids.shape[0]
    for tensor in (edits.token_ids, edits.counts):
        _check_rows(tensor, num_entries, torch.int32)
    _check_rows(edits.seen, num_entries, torch.bool)
    _check_rows(edits.biases, num_entries, torch.float32)
    for tensor in (edits.repetition, edits.frequency, edits.presence):
        _check_rows(tensor, num_rows, torch.float32)


def _check_rows(tensor: torch.Tensor, length: int, dtype: torch.dtype) -> None:
    assert tensor.shape == (length,) and tensor.dtype == dtype and tensor.is_contiguous(), (tensor.shape, tensor.dtype)
