"""Masked sampling as it is defined, one row at a time and with a sort."""

from __future__ import annotations

import torch

from .layout import FREE_ROW, MISSING_ROW, LogitEdits, RowStatus, SampleResult, SampleSettings


def masked_sample(logits: torch.Tensor, settings: SampleSettings) -> SampleResult:
    """See `masked_sample` of the package."""
    if settings.edits is not None:
        apply_edits(logits, settings.edits, settings.mask_rows != MISSING_ROW)
    rows = [_sample_row(logits[row], settings, row) for row in range(logits.shape[0])]
    tokens, logprobs, statuses = zip(*rows, strict=True)
    return SampleResult(
        token_ids=torch.tensor(tokens, dtype=torch.int32),
        logprobs=torch.tensor(logprobs, dtype=torch.float32),
        statuses=torch.tensor(statuses, dtype=torch.int32),
    )


def apply_edits(logits: torch.Tensor, edits: LogitEdits, is_edited: torch.Tensor) -> None:
    """Changes logits [R, V] in place, in the rows for which `is_edited` [R] bool."""
    for row, (start, stop) in enumerate(zip(edits.offsets[:-1].tolist(), edits.offsets[1:].tolist(), strict=True)):
        if not is_edited[row]:
            continue
        ids, counts = edits.token_ids[start:stop].long(), edits.counts[start:stop]
        x = logits[row, ids]
        repeated = torch.where(x > 0, x / edits.repetition[row], x * edits.repetition[row])
        x = torch.where(edits.seen[start:stop], repeated, x)
        x = x - edits.frequency[row] * counts - edits.presence[row] * (counts > 0)
        logits[row, ids] = x + edits.biases[start:stop]


def unpack(mask: torch.Tensor, num_tokens: int) -> torch.Tensor:
    """[..., ceil(V / 32)] int32 -> [..., V] bool"""
    bits = torch.arange(32, dtype=torch.int32, device=mask.device)
    return ((mask.unsqueeze(-1) >> bits) & 1).bool().flatten(-2)[..., :num_tokens]


def _sample_row(logits: torch.Tensor, settings: SampleSettings, row: int) -> tuple[int, float, RowStatus]:
    mask_row = int(settings.mask_rows[row])
    if mask_row == MISSING_ROW:
        return 0, 0.0, RowStatus.HELD
    x = logits.clone()
    if mask_row != FREE_ROW:
        x[~unpack(settings.masks[mask_row], len(x))] = -torch.inf
    if not bool((x < torch.inf).all()):
        return 0, 0.0, RowStatus.NOT_A_NUMBER
    if bool((x == -torch.inf).all()):
        return 0, 0.0, RowStatus.NO_TOKEN
    logprobs = x.double().log_softmax(-1)
    token = _draw(x, settings, row) if settings.temperatures[row] > 0 else int(x.argmax())
    return token, float(logprobs[token]), RowStatus.SAMPLED


def _draw(x: torch.Tensor, settings: SampleSettings, row: int) -> int:
    temperature, top_k, top_p = float(settings.temperatures[row]), int(settings.top_ks[row]), float(settings.top_ps[row])
    probabilities = ((x.double() - x.max()) / temperature).softmax(-1)
    kept = (probabilities >= probabilities.max() * float(settings.min_ps[row])) & (x > -torch.inf)
    if 0 < top_k < int(kept.sum()):
        kept &= x >= x[kept].topk(top_k).values[-1]
    if top_p < 1:
        ordered, order = x[kept].sort(descending=True)
        mass = probabilities[kept][order].cumsum(-1)
        kept &= x >= ordered[int((mass < top_p * mass[-1]).sum())]
    kept = _typical(probabilities * kept, kept, float(settings.typical_ps[row]))
    mass = (probabilities * kept).cumsum(-1)
    return int((mass > float(settings.uniforms[row]) * mass[-1]).nonzero()[0])


def _typical(weights: torch.Tensor, kept: torch.Tensor, typical_p: float) -> torch.Tensor:
    """What typical-p leaves of the tokens kept so far, by their unnormalised probabilities."""
    if typical_p >= 1:
        return kept
    probabilities = weights[kept] / weights[kept].sum()
    entropy = -(probabilities * probabilities.log()).nan_to_num(0).sum()
    surprise = torch.full_like(weights, torch.inf)
    surprise[kept] = (probabilities.log() + entropy).abs()
    ordered, order = surprise[kept].sort()
    mass = probabilities[order].cumsum(-1)
    return surprise <= ordered[int((mass < typical_p * mass[-1]).sum())]
