"""Masked sampling on a CPU: no sort of the vocabulary, and constrained rows touch allowed tokens only.

Truncation is a cut on the logit. The cut of top-k and top-p is found by one histogram pass and a sort of the one bucket in
which it lies.
"""

# pyright: reportCallIssue=false, reportPrivateImportUsage=false
# Numba's decorators change what a call means.

from __future__ import annotations

import numba
import numpy as np
import torch
from numba import boolean, float32, float64, int32, int64, void

from ..cpu_math import exp_negative
from ..parallel import KERNEL, claim, pointer, run
from .layout import FREE_ROW, MISSING_ROW, RowStatus

_SAMPLED, _NO_TOKEN, _NOT_A_NUMBER, _HELD = (int(status) for status in RowStatus)
_INF_BITS = np.int32(0x7F800000)
_MAGNITUDE = np.int32(0x7FFFFFFF)
_NUM_BUCKETS = 2048
_WORTH_A_TEAM = 30_000
"""Logits from which several threads are worth their start."""
_RUN = 256
"""Weights are summed in runs of so many, so that the drawn one is found by skipping runs."""

_FAST = {"contract", "nsz", "reassoc"}
_FINITE = {"contract", "nsz", "reassoc", "nnan"}


@numba.njit(int32(int32[::1], float32[::1], float32[::1], int32[::1]), nogil=True, cache=True)
def _gather(mask, logits, allowed, allowed_ids):
    """Packs the allowed logits and their ids; returns how many there are."""
    count = int32(0)
    for word_index in range(mask.shape[0]):
        word = mask[word_index]
        if word == 0:
            continue
        base = word_index * 32
        for bit in range(min(32, logits.shape[0] - base)):
            if (word >> bit) & 1:
                allowed[count] = logits[base + bit]
                allowed_ids[count] = base + bit
                count += int32(1)
    return count


@numba.njit(boolean(float32[::1]), nogil=True, cache=True)
def _any_bad(values):
    """Whether any value is NaN or +inf. On bits, since compiled float code may assume that there is none."""
    bits = values.view(np.int32)
    bad = int32(0)
    for i in range(bits.shape[0]):
        bad |= int32((bits[i] & _MAGNITUDE) > _INF_BITS) | int32(bits[i] == _INF_BITS)
    return bad != 0


@numba.njit(float32(float32[::1]), nogil=True, cache=True, fastmath=_FINITE)
def _highest(values):
    highest = np.float32(-np.inf)
    for i in range(values.shape[0]):
        highest = max(highest, values[i])
    return highest


@numba.njit(float32(float32[::1], float32), nogil=True, cache=True, fastmath=_FAST)
def _sum_exp(values, highest):
    total = np.float32(0.0)
    for i in range(values.shape[0]):
        total += exp_negative(values[i] - highest)
    return total


@numba.njit(float32(float32[::1], float32, float32, float32, float32[::1]), nogil=True, cache=True, fastmath=_FAST)
def _weigh(values, highest, inverse_temperature, cut, weights):
    """Unnormalised probabilities of the values at or above the cut; returns their sum."""
    total = np.float32(0.0)
    for i in range(values.shape[0]):
        weight = exp_negative((values[i] - highest) * inverse_temperature)
        weights[i] = weight if values[i] >= cut else np.float32(0.0)
        total += weights[i]
    return total


@numba.njit(float32(float32[::1], float32[::1], float32, float32, float64), nogil=True, cache=True)
def _find_cut(values, weights, highest, lowest, target):
    """The largest value v for which the weights of all values >= v sum to at least the target.

    Values below `lowest` are left out.
    """
    scale = np.float32(_NUM_BUCKETS - 1) / max(highest - lowest, np.float32(1e-20))
    sums = np.zeros(_NUM_BUCKETS, np.float64)
    for i in range(values.shape[0]):
        if values[i] >= lowest:
            sums[min(int64((highest - values[i]) * scale), _NUM_BUCKETS - 1)] += weights[i]
    bucket = 0
    above = 0.0
    while bucket < _NUM_BUCKETS - 1 and above + sums[bucket] < target:
        above += sums[bucket]
        bucket += 1
    members = np.empty(values.shape[0], np.int64)
    count = 0
    for i in range(values.shape[0]):
        if values[i] >= lowest and min(int64((highest - values[i]) * scale), _NUM_BUCKETS - 1) == bucket:
            members[count] = i
            count += 1
    order = members[:count][np.argsort(-values[members[:count]])]
    for i in order:
        above += weights[i]
        if above >= target:
            return values[i]
    return lowest


@numba.njit(float32(float32[::1], float32), nogil=True, cache=True)
def _lowest_above(values, cut):
    """The smallest value that is at least the cut and not -inf."""
    lowest = np.float32(np.inf)
    for i in range(values.shape[0]):
        if values[i] >= cut and values[i] > -np.inf and values[i] < lowest:
            lowest = values[i]
    return lowest


@numba.njit(int64(float32[::1], float64), nogil=True, cache=True, fastmath=_FAST)
def _locate(weights, uniform):
    """The first index at which the running sum exceeds `uniform` times the whole sum."""
    num_runs = (weights.shape[0] + _RUN - 1) // _RUN
    runs = np.empty(num_runs, np.float32)
    total = 0.0
    for part in range(num_runs):
        subtotal = np.float32(0.0)
        for i in range(part * _RUN, min((part + 1) * _RUN, weights.shape[0])):
            subtotal += weights[i]
        runs[part] = subtotal
        total += subtotal
    target = uniform * total
    below = 0.0
    last = 0
    for part in range(num_runs):
        if below + runs[part] <= target:
            below += runs[part]
            continue
        running = below
        for i in range(part * _RUN, min((part + 1) * _RUN, weights.shape[0])):
            if weights[i] > 0:
                last = i
                running += weights[i]
                if running > target:
                    return i
        return last
    return np.int64(np.argmax(weights))


@numba.njit(void(float32[::1], float32[::1], float32, float32, float32), nogil=True, cache=True)
def _keep_typical(values, weights, highest, inverse_temperature, typical_p):
    """Clears the weights of all but the typical values. The distance of log-probabilities is that of the scaled values."""
    total = 0.0
    moment = 0.0
    for i in range(values.shape[0]):
        if weights[i] > 0:
            total += weights[i]
            moment += weights[i] * ((values[i] - highest) * inverse_temperature)
    mean = np.float32(moment / total)
    nearness = np.empty(values.shape[0], np.float32)
    nearest, farthest = np.float32(-np.inf), np.float32(np.inf)
    for i in range(values.shape[0]):
        nearness[i] = -abs((values[i] - highest) * inverse_temperature - mean) if weights[i] > 0 else -np.float32(np.inf)
        if weights[i] > 0:
            nearest, farthest = max(nearest, nearness[i]), min(farthest, nearness[i])
    cut = _find_cut(nearness, weights, nearest, farthest, float64(typical_p) * total)
    for i in range(values.shape[0]):
        if nearness[i] < cut:
            weights[i] = np.float32(0.0)


@numba.njit(int64(float32[::1], float32, float32, float32, float32, int32, float32, float32), nogil=True, cache=True)
def _draw(values, highest, uniform, temperature, min_p, top_k, top_p, typical_p):
    """The index of the drawn value."""
    inverse_temperature = np.float32(1.0) / temperature
    weights = np.empty(values.shape[0], np.float32)
    cut = np.float32(-np.inf)
    if min_p > 0:
        cut = highest + temperature * np.log(min_p)
    if 0 < top_k < values.shape[0]:
        weights[:] = np.float32(1.0)
        cut = max(cut, _find_cut(values, weights, highest, _lowest_above(values, cut), float64(top_k)))
    total = _weigh(values, highest, inverse_temperature, cut, weights)
    if top_p < 1:
        # Below this the weights are 0: they cannot hold the cut, and a short range keeps the buckets fine.
        lowest = max(_lowest_above(values, cut), highest - np.float32(90.0) * temperature)
        cut = _find_cut(values, weights, highest, lowest, float64(top_p) * total)
        _weigh(values, highest, inverse_temperature, cut, weights)
    if typical_p < 1:
        _keep_typical(values, weights, highest, inverse_temperature, typical_p)
    return _locate(weights, float64(uniform))


@numba.njit(cache=True)
def _sample_row(logits, mask, constrained, temperature, min_p, top_k, top_p, typical_p, uniform):
    """Token, log-probability and status of one row."""
    values, ids = logits, np.empty(0, np.int32)
    if constrained:
        packed = np.empty(logits.shape[0], np.float32)
        ids = np.empty(logits.shape[0], np.int32)
        values = packed[: _gather(mask, logits, packed, ids)]
    if _any_bad(values):
        return 0, np.float32(0.0), _NOT_A_NUMBER
    highest = _highest(values)
    if highest == -np.inf:
        return 0, np.float32(0.0), _NO_TOKEN
    index = 0
    if temperature > 0:
        index = _draw(values, highest, uniform, temperature, min_p, top_k, top_p, typical_p)
    else:
        while values[index] != highest:
            index += 1
    logprob = values[index] - highest - np.log(_sum_exp(values, highest))
    return (int64(ids[index]) if constrained else index), logprob, _SAMPLED


@numba.cfunc(KERNEL, cache=True)
def _sample(words):
    num_rows, num_tokens, num_masks, mask_width = words[1], words[14], words[15], words[16]
    logits = numba.carray(pointer(words[2]), (num_rows, num_tokens), np.float32)
    masks = numba.carray(pointer(words[3]), (num_masks, mask_width), np.int32)
    mask_rows = numba.carray(pointer(words[4]), (num_rows,), np.int32)
    temperatures = numba.carray(pointer(words[5]), (num_rows,), np.float32)
    min_ps = numba.carray(pointer(words[6]), (num_rows,), np.float32)
    top_ks = numba.carray(pointer(words[7]), (num_rows,), np.int32)
    top_ps = numba.carray(pointer(words[8]), (num_rows,), np.float32)
    typical_ps = numba.carray(pointer(words[9]), (num_rows,), np.float32)
    uniforms = numba.carray(pointer(words[10]), (num_rows,), np.float32)
    token_ids = numba.carray(pointer(words[11]), (num_rows,), np.int32)
    logprobs = numba.carray(pointer(words[12]), (num_rows,), np.float32)
    statuses = numba.carray(pointer(words[13]), (num_rows,), np.int32)
    while True:
        row = claim(words)
        if row >= num_rows:
            return
        mask_row = mask_rows[row]
        if mask_row == MISSING_ROW:
            statuses[row] = _HELD
            continue
        constrained = mask_row != FREE_ROW
        mask = masks[mask_row] if constrained else masks.reshape(-1)[:0]
        token_ids[row], logprobs[row], statuses[row] = _sample_row(
            logits[row], mask, constrained, temperatures[row], min_ps[row], top_ks[row], top_ps[row], typical_ps[row],
            uniforms[row],
        )  # fmt: skip


def sample_rows(logits: torch.Tensor, *columns: torch.Tensor) -> None:
    """Samples logits [R, V].

    Args:
        columns: masks, mask_rows, temperatures, min_ps, top_ks, top_ps, typical_ps and uniforms of `SampleSettings`, then token_ids,
            logprobs and statuses of `SampleResult`, which are filled. All are contiguous.
    """
    words = (*(tensor.data_ptr() for tensor in (logits, *columns)), logits.shape[1], *columns[0].shape)
    run(_sample, logits.shape[0], words, parallel=logits.numel() > _WORTH_A_TEAM)


@numba.njit(
    void(
        float32[:, ::1],
        int32[::1],
        int32[::1],
        int32[::1],
        int32[::1],
        boolean[::1],
        float32[::1],
        float32[::1],
        float32[::1],
        float32[::1],
    ),
    nogil=True,
    cache=True,
)
def edit_rows(logits, mask_rows, offsets, token_ids, counts, seen, biases, repetition, frequency, presence):
    """Applies `LogitEdits` to logits [R, V] in place, but for rows that are held."""
    for row in range(logits.shape[0]):
        if mask_rows[row] == MISSING_ROW:
            continue
        for entry in range(offsets[row], offsets[row + 1]):
            x = logits[row, token_ids[entry]]
            if seen[entry]:
                x = x / repetition[row] if x > 0 else x * repetition[row]
            x -= frequency[row] * np.float32(counts[entry])
            if counts[entry] > 0:
                x -= presence[row]
            logits[row, token_ids[entry]] = x + biases[entry]
