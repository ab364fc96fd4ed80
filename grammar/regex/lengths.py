"""Which lengths a set of strings has.

A set of lengths up to `cap` is a Python int: bit n is set if some string of n code points is in the set. For *positive*
nodes (no complement, conjunction or assertion) it follows from the structure alone, without looking at characters.
"""

from __future__ import annotations

from collections.abc import Iterator

from .budget import Budget
from .nodes import KIND_ALT, KIND_CAT, KIND_CHARS, KIND_EMPTY, KIND_EPSILON, KIND_REP, KIND_WORDS, Node


def bits_up_to(cap: int) -> int:
    return (1 << (cap + 1)) - 1


def length_bits(node: Node, cap: int, budget: Budget) -> int:
    """Lengths up to `cap` of a positive node, exact. Raises LimitError."""
    known = node.lengths
    if known is not None and known[0] >= cap:
        return known[1] & bits_up_to(cap)
    # Work is counted in units of a big-int operation on a few hundred bytes.
    price = 1 + cap // 4096
    stack = [node]
    while stack:
        current = stack[-1]
        if _has_lengths(current, cap):
            stack.pop()
            continue
        missing = [item for item in current.items if not _has_lengths(item, cap)]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        budget.spend(price)
        current.lengths = (cap, _bits_of(current, cap, budget, price))
    return length_bits(node, cap, budget)


def _has_lengths(node: Node, cap: int) -> bool:
    return node.lengths is not None and node.lengths[0] >= cap


def _bits_of(node: Node, cap: int, budget: Budget, price: int) -> int:
    full = bits_up_to(cap)
    kind = node.kind
    if kind == KIND_EMPTY:
        return 0
    if kind == KIND_EPSILON:
        return 1
    if kind == KIND_CHARS:
        return 2 & full
    if kind == KIND_WORDS:
        table, start, end, depth = node.words
        bits = 0
        for size in {len(text) for text in table.words[start:end]}:
            bits |= 1 << (size - depth)
        return bits & full
    items = [(item.lengths or (0, 0))[1] & full for item in node.items]
    if kind == KIND_ALT:
        bits = 0
        for item in items:
            bits |= item
        return bits
    if kind == KIND_CAT:
        return _sum(items[0], items[1], full, budget, price)
    if kind == KIND_REP:
        return _multiple(items[0], node.lo, node.hi, full, budget, price)
    raise AssertionError(f"a node of kind {kind} is not positive")


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """`(first, count)` of every run of ones."""
    offset = 0
    while bits:
        zeros = (bits & -bits).bit_length() - 1
        bits >>= zeros
        ones = (~bits & (bits + 1)).bit_length() - 1
        yield offset + zeros, ones
        bits >>= ones
        offset += zeros + ones


def _num_runs(bits: int) -> int:
    return (bits & ~(bits << 1)).bit_count()


def _sum(left: int, right: int, full: int, budget: Budget, price: int) -> int:
    """All sums of a length of `left` and one of `right`."""
    if _num_runs(left) > _num_runs(right):
        left, right = right, left
    result = 0
    for first, count in _runs(left):
        budget.spend(price)
        result |= _smear(right, count, full) << first
    return result & full


def _smear(bits: int, count: int, full: int) -> int:
    """`bits` shifted by each of 0 .. count - 1, joined."""
    done = 1
    while done < count:
        step = min(done, count - done)
        bits |= (bits << step) & full
        done += step
    return bits


def _multiple(bits: int, lo: int, hi: int | None, full: int, budget: Budget, price: int) -> int:
    """All sums of `lo` to `hi` lengths of `bits`."""
    required = _power(bits, lo, full, budget, price)
    optional = bits | 1
    if hi is not None:
        return _sum(required, _power(optional, hi - lo, full, budget, price), full, budget, price)
    star = optional
    while True:
        doubled = _sum(star, star, full, budget, price)
        if doubled == star:
            return _sum(required, star, full, budget, price)
        star = doubled


def _power(bits: int, times: int, full: int, budget: Budget, price: int) -> int:
    result = 1
    square = bits
    while times and result:
        if times & 1:
            result = _sum(result, square, full, budget, price)
        times >>= 1
        if times:
            following = _sum(square, square, full, budget, price)
            if following == square and times:
                return _sum(result, square, full, budget, price)
            square = following
    return result
