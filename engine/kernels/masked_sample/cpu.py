"""Masked sampling on a CPU: no sort of the vocabulary, and constrained rows touch allowed tokens only.

Truncation is a cut on the logit. The cut of top-k and top-p is found by one histogram pass and a sort of the one bucket in
which it lies.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import boolean, float32, float64, int32, int64, void

from ..cpu_math import exp_negative
from .layout import RowStatus

_SAMPLED, _NO_TOKEN, _NOT_A_NUMBER = (int(status) for status in (RowStatus.SAMPLED, RowStatus.NO_TOKEN, RowStatus.NOT_A_NUMBER))
_INF_BITS = np.int32(0x7F800000)
_MAGNITUDE = np.int32(0x7FFFFFFF)
_NUM_BUCKETS = 2048
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
    for run in range(num_runs):
        part = np.float32(0.0)
        for i in range(run * _RUN, min((run + 1) * _RUN, weights.shape[0])):
            part += weights[i]
        runs[run] = part
        total += part
    target = uniform * total
    below = 0.0
    last = 0
    for run in range(num_runs):
        if below + runs[run] <= target:
            below += runs[run]
            continue
        running = below
        for i in range(run * _RUN, min((run + 1) * _RUN, weights.shape[0])):
            if weights[i] > 0:
                last = i
                running += weights[i]
                if running > target:
                    return i
        return last
    return np.int64(np.argmax(weights))


@numba.njit(int64(float32[::1], float32, float32, float32, float32, int32, float32), nogil=True, cache=True)
def _draw(values, highest, uniform, temperature, min_p, top_k, top_p):
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
    return _locate(weights, float64(uniform))


@numba.njit(
    void(float32[:, ::1], int32[:, ::1], boolean[::1], float32[::1], float32[::1], int32[::1], float32[::1], float32[::1],
         int32[::1], float32[::1], int32[::1]),
    nogil=True, parallel=True, cache=True,
)  # fmt: skip
def sample_rows(logits, masks, constrained, temperatures, min_ps, top_ks, top_ps, uniforms, token_ids, logprobs, statuses):
    """Fills token_ids, logprobs and statuses [R]; the other arguments are those of `SampleSettings`."""
    num_rows, num_tokens = logits.shape
    for row in numba.prange(num_rows):
        values = logits[row]
        ids = np.empty(0, np.int32)
        if constrained[row]:
            packed = np.empty(num_tokens, np.float32)
            ids = np.empty(num_tokens, np.int32)
            values = packed[: _gather(masks[row], logits[row], packed, ids)]
        highest = _highest(values)
        statuses[row] = _SAMPLED
        if _any_bad(values):
            statuses[row] = _NOT_A_NUMBER
        elif highest == -np.inf:
            statuses[row] = _NO_TOKEN
        else:
            if temperatures[row] > 0:
                index = _draw(values, highest, uniforms[row], temperatures[row], min_ps[row], top_ks[row], top_ps[row])
            else:
                index = 0
                while values[index] != highest:
                    index += 1
            token_ids[row] = ids[index] if constrained[row] else index
            logprobs[row] = values[index] - highest - np.log(_sum_exp(values, highest))


@numba.njit(
    void(float32[:, ::1], int32[::1], int32[::1], int32[::1], boolean[::1], float32[::1], float32[::1], float32[::1], float32[::1]),
    nogil=True,
    cache=True,
)
def edit_rows(logits, offsets, token_ids, counts, seen, biases, repetition, frequency, presence):
    """Applies `LogitEdits` to logits [R, V] in place."""
    for row in range(logits.shape[0]):
        for entry in range(offsets[row], offsets[row + 1]):
            x = logits[row, token_ids[entry]]
            if seen[entry]:
                x = x / repetition[row] if x > 0 else x * repetition[row]
            x -= frequency[row] * np.float32(counts[entry])
            if counts[entry] > 0:
                x -= presence[row]
            logits[row, token_ids[entry]] = x + biases[entry]
