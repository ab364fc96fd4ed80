"""Whether any string is left.

Positive nodes are never empty, and a conjunction of a positive node with a pure length is decided by its set of
lengths. Another one with a bounded number of characters is decided by a shortest string of the rest, since that mostly can be
drawn out to any length. Everything else is explored, shortest promise first, until an accepting or live node turns up. Answers are
kept in the nodes, so that a path that was found once also answers for every node on it.
"""

from __future__ import annotations

from heapq import heappop, heappush

from ..errors import LimitError
from .budget import Budget
from .charset import ALL_CHARS
from .derivative import locate, row
from .lengths import length_bits
from .nodes import EPSILON, KIND_ALT, KIND_AND, KIND_CAT, KIND_CHARS, KIND_REP, Node
from .shortest import bounded_core, has_length

# A set of lengths is a big int: beyond this many bits exploring is cheaper.
_MAX_LENGTH_CAP = 1 << 20


def is_live(node: Node, budget: Budget) -> bool:
    """Whether `node` accepts some string. Raises LimitError when the exploration is too large."""
    live = _structural(node, budget)
    return _explore(node, budget) if live is None else live


def length_window(node: Node) -> tuple[Node, int, int | None] | None:
    """`(positive node, lo, hi)` of a conjunction "that node, lo to hi code points long", else None."""
    if node.kind != KIND_AND or len(node.items) != 2:
        return None
    first, second = node.items
    for window, other in ((first, second), (second, first)):
        if other.positive and _is_length(window):
            return other, window.min_len, window.max_len
    return None


def _is_length(node: Node) -> bool:
    if node is EPSILON:
        return True
    body = node.items[0] if node.kind == KIND_REP else node
    return body.kind == KIND_CHARS and body.chars is ALL_CHARS


def _structural(node: Node, budget: Budget) -> bool | None:
    """The answer by structure and memory; None if it takes an exploration."""
    if node.live is None and not node.located:
        if node.kind == KIND_ALT:
            node.live = _any([item.live for item in node.items])
        elif node.kind == KIND_CAT or node.kind == KIND_REP:
            node.live = _all([item.live for item in node.items])
        elif node.kind == KIND_AND:
            node.live = _window_live(node, budget)
    return node.live


def _any(answers: list[bool | None]) -> bool | None:
    if True in answers:
        return True
    return None if None in answers else False


def _all(answers: list[bool | None]) -> bool | None:
    if False in answers:
        return False
    return None if None in answers else True


def _window_live(node: Node, budget: Budget) -> bool | None:
    window = length_window(node)
    if window is None:
        bounded = bounded_core(node)
        return None if bounded is None else has_length(*bounded, budget)
    positive, lo, hi = window
    # The bounds of a positive node are lengths it really has.
    if positive.min_len >= lo and (hi is None or positive.min_len <= hi):
        return True
    if positive.max_len is None:
        if hi is None:
            return True
        cap = hi
    else:
        if positive.max_len >= lo and (hi is None or positive.max_len <= hi):
            return True
        cap = positive.max_len if hi is None else hi
    if cap > _MAX_LENGTH_CAP:
        return None
    return bool(length_bits(positive, cap, budget) >> lo)


def _explore(root: Node, budget: Budget) -> bool:
    parents: dict[int, tuple[Node, Node | None]] = {root.uid: (root, None)}
    heap: list[tuple[int, int, Node]] = [(_distance(root), root.uid, root)]
    while heap:
        current = heappop(heap)[2]
        pairs = row(current, budget)
        budget.spend(1 + len(pairs))
        for _, target in pairs:
            target = locate(target)
            if target.uid in parents:
                continue
            live = _structural(target, budget)
            if live:
                _mark_path(current, parents)
                return True
            if live is None:
                parents[target.uid] = (target, current)
                heappush(heap, (_distance(target), target.uid, target))
                if len(parents) > budget.limits.max_states:
                    raise LimitError(f"an emptiness test needs more than {budget.limits.max_states} states")
    for node, _ in parents.values():
        node.live = False
    return False


def _distance(node: Node) -> int:
    """How far a node is from accepting: of a conjunction, what all its parts together still need, so that none is lost sight of."""
    return sum([item.min_len for item in node.items]) if node.kind == KIND_AND else node.min_len


def _mark_path(node: Node | None, parents: dict[int, tuple[Node, Node | None]]) -> None:
    while node is not None:
        node.live = True
        node = parents[node.uid][1]
