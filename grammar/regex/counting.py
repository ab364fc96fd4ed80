"""How many strings a node accepts, and of which lengths: exact answers within a budget."""

from __future__ import annotations

from .budget import Budget
from .charset import CharSet
from .derivative import locate, row
from .emptiness import is_live, length_window
from .lengths import bits_up_to, length_bits
from .nodes import EMPTY, KIND_WORDS, Node


def live_row(node: Node, budget: Budget) -> list[tuple[CharSet, Node]]:
    """`row` without the pairs that lead to no string, located where they lead."""
    pairs = [(cell, locate(target)) for cell, target in row(node, budget)]
    return [(cell, target) for cell, target in pairs if is_live(target, budget)]


def count_strings(node: Node, cap: int, budget: Budget) -> int | None:
    """The number of strings of a live node, None if it is more than `cap` or infinite. Raises LimitError."""
    counts: dict[int, int] = {}
    open_rows: dict[int, list[tuple[CharSet, Node]]] = {}
    # with each node: strings that lead to it along one way, and strings accepted before it on that way
    stack = [(node, 1, 0)]
    while stack:
        current, ways, accepted = stack[-1]
        if current.uid in counts:
            stack.pop()
            continue
        known = _count_at_once(current)
        if known is not None:
            if known > cap:
                return None
            counts[current.uid] = known
            continue
        pairs = open_rows.get(current.uid)
        if pairs is None:
            if current.positive and current.max_len is None:
                return None
            # Every live node leads to at least one string.
            if ways + accepted > cap:
                return None
            pairs = open_rows[current.uid] = live_row(current, budget)
            if sum([cell.size for cell, _ in pairs]) > cap:
                return None
            missing = [(target, ways * cell.size, accepted + current.nullable) for cell, target in pairs if target.uid not in counts]
            if any(target.uid in open_rows for target, _, _ in missing):
                return None  # a cycle of live states
            if missing:
                stack.extend(missing)
                continue
        total = int(current.nullable) + sum([cell.size * counts[target.uid] for cell, target in pairs])
        if total > cap:
            return None
        counts[current.uid] = total
        del open_rows[current.uid]
    return counts[node.uid]


def _count_at_once(node: Node) -> int | None:
    if node is EMPTY:
        return 0
    if node.kind == KIND_WORDS:
        _, start, end, _ = node.words
        return end - start
    return None


def tail_length_bits(node: Node, cap: int, budget: Budget) -> int:
    """Lengths up to `cap` of the strings of `node`, as the bits of an int. Raises LimitError."""
    frontier = {node.uid: node}
    first_seen: dict[frozenset[int], int] = {}
    levels: list[int] = []
    for depth in range(cap + 1):
        level = frozenset(frontier)
        if not level:
            break
        if level in first_seen:
            # From here on the levels repeat: so do the lengths that they add.
            cycle = _join(levels[first_seen[level] :])
            levels.append(_repeated(cycle, depth - first_seen[level], cap))
            break
        first_seen[level] = depth
        bits, frontier = _level(frontier, cap - depth, budget)
        levels.append(bits << depth)
    return _join(levels) & bits_up_to(cap)


def _level(frontier: dict[int, Node], cap: int, budget: Budget) -> tuple[int, dict[int, Node]]:
    """Lengths known at once for the nodes of one level, and the next level of the others."""
    budget.spend(len(frontier))
    bits = 0
    following: dict[int, Node] = {}
    for node in frontier.values():
        known = _length_bits_at_once(node, cap, budget)
        if known is not None:
            bits |= known
            continue
        if node.nullable:
            bits |= 1
        for _, target in live_row(node, budget):
            following[target.uid] = target
    return bits, following


def _length_bits_at_once(node: Node, cap: int, budget: Budget) -> int | None:
    if node.positive:
        return length_bits(node, cap, budget)
    window = length_window(node)
    if window is None:
        return None
    positive, lo, hi = window
    top = cap if hi is None else min(cap, hi)
    return (length_bits(positive, top, budget) >> lo) << lo if top >= lo else 0


def _join(levels: list[int]) -> int:
    result = 0
    for bits in levels:
        result |= bits
    return result


def _repeated(bits: int, period: int, cap: int) -> int:
    """`bits` moved by every positive multiple of `period` up to `cap`."""
    moved = bits << period
    while period <= cap:
        moved |= moved << period
        moved &= bits_up_to(cap)
        period *= 2
    return moved
