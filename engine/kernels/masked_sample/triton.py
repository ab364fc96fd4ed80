"""Masked sampling on a GPU: one program per row, everything in one launch.

The row is read a few times from the second-level cache. Cuts of top-k and top-p are found by bisection over the order of
floats seen as integers, so nothing is sorted.
"""

# pyright: reportCallIssue=false, reportArgumentType=false, reportOperatorIssue=false
# Triton's decorators change what a call means.

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .layout import LogitEdits, SampleResult, SampleSettings

BLOCK = 2048
EDIT_BLOCK = 128
NUM_WARPS = 8


@triton.jit
def _order_key(x):
    """int32 keys in the order of the floats: 0 and -0 differ, which no cut notices."""
    bits = x.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _load(logits, mask, constrained, start, num_tokens, BLOCK: tl.constexpr):
    """One block of a row, -inf where it is masked."""
    tokens = start + tl.arange(0, BLOCK)
    inside = tokens < num_tokens
    allowed = inside
    if constrained:
        words = tl.load(mask + (tokens >> 5), mask=inside, other=0)
        allowed = inside & (((words >> (tokens & 31)) & 1) != 0)
    return tl.load(logits + tokens, mask=allowed, other=float("-inf"))


@triton.jit
def _weight(x, highest, inverse_temperature, cut):
    return tl.where((_order_key(x) >= cut) & (x > float("-inf")), tl.exp((x - highest) * inverse_temperature), 0.0)


@triton.jit
def _find_cut(
    logits, mask, constrained, num_tokens, highest, inverse_temperature, cut, share, count, COUNT: tl.constexpr, BLOCK: tl.constexpr
):
    """The largest key at or above which `count` tokens lie (COUNT) or `share` of the mass above `cut`; at least `cut`."""
    low = cut.to(tl.int64)
    high = _order_key(highest).to(tl.int64)
    target = count.to(tl.float32)
    if not COUNT:
        mass = tl.zeros((), tl.float32)
        for start in range(0, num_tokens, BLOCK):
            x = _load(logits, mask, constrained, start, num_tokens, BLOCK)
            mass += tl.sum(_weight(x, highest, inverse_temperature, cut))
        target = share * mass
    while low < high:
        middle = (low + high + 1) >> 1
        key = middle.to(tl.int32)
        above = tl.zeros((), tl.float32)
        for start in range(0, num_tokens, BLOCK):
            x = _load(logits, mask, constrained, start, num_tokens, BLOCK)
            if COUNT:
                above += tl.sum(((_order_key(x) >= key) & (x > float("-inf"))).to(tl.int32)).to(tl.float32)
            else:
                above += tl.sum(_weight(x, highest, inverse_temperature, key))
        enough = above >= target
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle - 1)
    return low.to(tl.int32)


@triton.jit
def _edit_row(logits, token_ids, counts, seen, biases, start, stop, repetition, frequency, presence, EDIT_BLOCK: tl.constexpr):
    for first in range(start, stop, EDIT_BLOCK):
        entries = first + tl.arange(0, EDIT_BLOCK)
        inside = entries < stop
        tokens = tl.load(token_ids + entries, mask=inside, other=0)
        count = tl.load(counts + entries, mask=inside, other=0)
        was_seen = tl.load(seen + entries, mask=inside, other=0) != 0
        x = tl.load(logits + tokens, mask=inside, other=0.0)
        x = tl.where(was_seen, tl.where(x > 0, x / repetition, x * repetition), x)
        x = x - frequency * count.to(tl.float32) - tl.where(count > 0, presence, 0.0)
        tl.store(logits + tokens, x + tl.load(biases + entries, mask=inside, other=0.0), mask=inside)
    tl.debug_barrier()


@triton.jit
def masked_sample_kernel(
    logits_ptr, masks_ptr, mask_rows_ptr, temperatures_ptr, min_ps_ptr, top_ks_ptr, top_ps_ptr, typical_ps_ptr, uniforms_ptr,
    offsets_ptr, edit_tokens_ptr, counts_ptr, seen_ptr, biases_ptr, repetition_ptr, frequency_ptr, presence_ptr,
    token_ids_ptr, logprobs_ptr, statuses_ptr,
    num_tokens, mask_width,
    HAS_EDITS: tl.constexpr, BLOCK: tl.constexpr, EDIT_BLOCK: tl.constexpr,
):  # fmt: skip
    """One row; the pointers are the fields of `SampleSettings`, `LogitEdits` and `SampleResult`."""
    row = tl.program_id(0).to(tl.int64)
    logits = logits_ptr + row * num_tokens
    mask_row = tl.load(mask_rows_ptr + row)
    if mask_row == -2:
        tl.store(statuses_ptr + row, 3)
        return
    mask = masks_ptr + mask_row.to(tl.int64) * mask_width
    constrained = mask_row >= 0
    if HAS_EDITS:
        _edit_row(logits, edit_tokens_ptr, counts_ptr, seen_ptr, biases_ptr, tl.load(offsets_ptr + row), tl.load(offsets_ptr + row + 1),
                  tl.load(repetition_ptr + row), tl.load(frequency_ptr + row), tl.load(presence_ptr + row), EDIT_BLOCK)  # fmt: skip

    highest = tl.full((), float("-inf"), tl.float32)
    token = tl.zeros((), tl.int32)
    bad = tl.zeros((), tl.int32)
    for start in range(0, num_tokens, BLOCK):
        x = _load(logits, mask, constrained, start, num_tokens, BLOCK)
        bad += tl.sum(((x != x) | (x == float("inf"))).to(tl.int32))
        best, index = tl.max(x, axis=0, return_indices=True)
        token = tl.where(best > highest, start + index, token)
        highest = tl.maximum(highest, best)

    if bad > 0:
        tl.store(statuses_ptr + row, 2)
    elif highest == float("-inf"):
        tl.store(statuses_ptr + row, 1)
    else:
        total = tl.zeros((), tl.float32)
        for start in range(0, num_tokens, BLOCK):
            total += tl.sum(tl.exp(_load(logits, mask, constrained, start, num_tokens, BLOCK) - highest))
        temperature = tl.load(temperatures_ptr + row)
        if temperature > 0:
            inverse_temperature = 1.0 / temperature
            cut = tl.full((), -2147483648, tl.int32)
            min_p = tl.load(min_ps_ptr + row)
            if min_p > 0:
                cut = _order_key(highest + temperature * tl.log(min_p))
            top_k = tl.load(top_ks_ptr + row)
            if top_k > 0:
                cut = _find_cut(logits, mask, constrained, num_tokens, highest, inverse_temperature, cut, 1.0, top_k, True, BLOCK)
            top_p = tl.load(top_ps_ptr + row)
            if top_p < 1:
                cut = _find_cut(logits, mask, constrained, num_tokens, highest, inverse_temperature, cut, top_p, top_k, False, BLOCK)
            mean = tl.zeros((), tl.float32)
            reach = tl.full((), float("inf"), tl.float32)
            typical_p = tl.load(typical_ps_ptr + row)
            if typical_p < 1:
                mean = _mean(logits, mask, constrained, num_tokens, highest, inverse_temperature, cut, BLOCK)
                reach = _find_reach(logits, mask, constrained, num_tokens, highest, inverse_temperature, cut, mean, typical_p, BLOCK)
            uniform = tl.load(uniforms_ptr + row)
            token = _locate(
                logits, mask, constrained, num_tokens, highest, inverse_temperature, cut, mean, reach, uniform, token, BLOCK
            )  # fmt: skip
        tl.store(statuses_ptr + row, 0)
        tl.store(token_ids_ptr + row, token)
        tl.store(logprobs_ptr + row, tl.load(logits + token) - highest - tl.log(total))


@triton.jit
def _typical_weight(x, highest, inverse_temperature, cut, mean, reach):
    """The weight of values whose distance from the mean is within reach."""
    distance = tl.abs((x - highest) * inverse_temperature - mean)
    return tl.where(distance <= reach, _weight(x, highest, inverse_temperature, cut), 0.0)


@triton.jit
def _mean(logits, mask, constrained, num_tokens, highest, inverse_temperature, cut, BLOCK: tl.constexpr):
    """The mean of the scaled values, which lies as far from each of them as the mean log-probability from theirs."""
    mass = tl.zeros((), tl.float32)
    moment = tl.zeros((), tl.float32)
    for start in range(0, num_tokens, BLOCK):
        x = _load(logits, mask, constrained, start, num_tokens, BLOCK)
        weights = _weight(x, highest, inverse_temperature, cut)
        mass += tl.sum(weights)
        moment += tl.sum(tl.where(weights > 0, weights * ((x - highest) * inverse_temperature), 0.0))
    return moment / mass


@triton.jit
def _find_reach(
    logits, mask, constrained, num_tokens, highest, inverse_temperature, cut, mean, share, BLOCK: tl.constexpr
):  # fmt: skip
    """The smallest distance from the mean within which `share` of the mass lies. Distances are in the order of their bits."""
    mass = tl.zeros((), tl.float32)
    for start in range(0, num_tokens, BLOCK):
        x = _load(logits, mask, constrained, start, num_tokens, BLOCK)
        mass += tl.sum(_weight(x, highest, inverse_temperature, cut))
    low = tl.zeros((), tl.int32)
    high = tl.full((), 0x7F7FFFFF, tl.int32)
    while low < high:
        middle = low + ((high - low) >> 1)
        within = tl.zeros((), tl.float32)
        for start in range(0, num_tokens, BLOCK):
            x = _load(logits, mask, constrained, start, num_tokens, BLOCK)
            within += tl.sum(_typical_weight(x, highest, inverse_temperature, cut, mean, middle.to(tl.float32, bitcast=True)))
        enough = within >= share * mass
        low = tl.where(enough, low, middle + 1)
        high = tl.where(enough, middle, high)
    return low.to(tl.float32, bitcast=True)


@triton.jit
def _locate(
    logits, mask, constrained, num_tokens, highest, inverse_temperature, cut, mean, reach, uniform, likeliest, BLOCK: tl.constexpr
):  # fmt: skip
    """The first token at which the running mass exceeds `uniform` of the whole; the likeliest if rounding leaves none."""
    mass = tl.zeros((), tl.float32)
    for start in range(0, num_tokens, BLOCK):
        x = _load(logits, mask, constrained, start, num_tokens, BLOCK)
        mass += tl.sum(_typical_weight(x, highest, inverse_temperature, cut, mean, reach))
    target = uniform * mass
    below = tl.zeros((), tl.float32)
    found = tl.zeros((), tl.int32)
    token = likeliest
    start = 0
    while (start < num_tokens) & (found == 0):
        x = _load(logits, mask, constrained, start, num_tokens, BLOCK)
        weights = _typical_weight(x, highest, inverse_temperature, cut, mean, reach)
        in_block = tl.sum(weights)
        if below + in_block > target:
            running = below + tl.cumsum(weights)
            hit = (running > target) & (weights > 0)
            index = tl.min(tl.where(hit, tl.arange(0, BLOCK), BLOCK))
            if index < BLOCK:
                token = start + index
                found = 1
        below += in_block
        start += BLOCK
    return token


def masked_sample(logits: torch.Tensor, settings: SampleSettings) -> SampleResult:
    """See `masked_sample` of the package."""
    num_rows, num_tokens = logits.shape
    device = logits.device
    result = SampleResult(
        token_ids=torch.zeros(num_rows, dtype=torch.int32, device=device),
        logprobs=torch.zeros(num_rows, dtype=torch.float32, device=device),
        statuses=torch.zeros(num_rows, dtype=torch.int32, device=device),
    )
    masked_sample_kernel[(num_rows,)](
        logits, settings.masks, settings.mask_rows, settings.temperatures, settings.min_ps, settings.top_ks, settings.top_ps,
        settings.typical_ps, settings.uniforms, *_edit_pointers(settings.edits, logits), result.token_ids, result.logprobs, result.statuses,
        num_tokens, settings.masks.shape[1],
        HAS_EDITS=settings.edits is not None, BLOCK=BLOCK, EDIT_BLOCK=EDIT_BLOCK, num_warps=NUM_WARPS,
    )  # fmt: skip
    return result


def _edit_pointers(edits: LogitEdits | None, unused: torch.Tensor) -> tuple[torch.Tensor, ...]:
    if edits is None:
        return (unused,) * 8
    return (
        edits.offsets, edits.token_ids, edits.counts, edits.seen, edits.biases, edits.repetition, edits.frequency, edits.presence,
    )  # fmt: skip
