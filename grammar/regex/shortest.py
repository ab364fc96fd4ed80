"""Length of a shortest string of any node, exact, and whether there is one in a window of lengths.

A* over the derivatives (Hart, Nilsson and Raphael 1968). What a search learns stays in the nodes, so that the next one, from a node
nearby, looks at little more than what is new (adaptive A*, Koenig and Likhachev 2005).
"""

from __future__ import annotations

from heapq import heappop, heappush

from .budget import Budget
from .derivative import locate, row
from .nodes import KIND_AND, KIND_CAT, KIND_CHARS, KIND_REP, NO_STRING, Node, conj, rep

_DIVE = 32  # nodes in a row that a dive looks at without coming closer to the end

_Seen = dict[int, tuple[Node, Node | None]]  # by uid: a node and the one before it


def shortest(node: Node, budget: Budget, most: int = NO_STRING - 1) -> int | None:
    """Length of a shortest string of `node`; None if it has none of at most `most` code points. Raises LimitError."""
    if node.least < node.reach and node.least <= most:
        _search(node, most, budget)
    return node.least if node.least <= most else None


def has_length(node: Node, lo: int, hi: int, budget: Budget) -> bool | None:
    """Whether `node` has a string of `lo` to `hi` code points; None where a shortest one doesn't tell. Raises LimitError."""
    if node.least <= hi and not _reaches(node, lo, hi):
        _dive(node, hi, budget)
    if _reaches(node, lo, hi):
        return True
    if shortest(node, budget, hi) is None:
        return False
    return True if _reaches(node, lo, hi) else None


def bounded_core(node: Node) -> tuple[Node, int, int] | None:
    """A conjunction with "`lo` to `hi` characters of a set": all of it without the counts, and these; None if it is no such thing."""
    if node.core is None and node.kind == KIND_AND:
        for run in node.items:
            body = run.items[0] if run.kind == KIND_REP else run
            if body.kind == KIND_CHARS and run.max_len is not None:
                others = [item for item in node.items if item is not run]
                node.core = conj([*others, rep(body, 0, None)]), run.min_len, run.max_len
                break
    return node.core


def _reaches(node: Node, lo: int, hi: int) -> bool:
    return node.reach <= hi and (node.reach >= lo or node.padded)


def _dive(root: Node, most: int, budget: Budget) -> None:
    """Looks for any string of at most `most` code points, for as long as the search comes closer to one."""
    seen: _Seen = {root.uid: (root, None)}
    best = _remaining(root)
    heap = [(best, root.uid, 0, root)]
    patience = _DIVE
    while heap and patience:
        remaining, _, depth, node = heappop(heap)
        patience = _DIVE if remaining < best else patience - 1
        best = min(best, remaining)
        if _settle(node, budget):
            _settle_path(node, seen)
            return
        for target in _targets(node, budget):
            if target.uid not in seen and depth + 1 + target.least <= most:
                seen[target.uid] = target, node
                heappush(heap, (_remaining(target), target.uid, depth + 1, target))


def _search(root: Node, most: int, budget: Budget) -> None:
    """Finds a shortest string, or raises `least` above `most`."""
    depths = {root.uid: 0}
    seen: _Seen = {root.uid: (root, None)}
    heap = [(root.least, 0, root.uid, 0, root)]
    bound = NO_STRING
    while heap:
        total, _, _, depth, node = heappop(heap)
        if total > most:
            bound = most + 1
            break
        if depth > depths[node.uid]:
            continue
        if node.least == node.reach or _settle(node, budget):
            bound = depth + node.reach
            _settle_path(node, seen)
            break
        for target in _targets(node, budget):
            if depths.get(target.uid, NO_STRING) > depth + 1:
                depths[target.uid] = depth + 1
                seen[target.uid] = target, node
                heappush(heap, (max(total, depth + 1 + target.least), _remaining(target), target.uid, depth + 1, target))
    for uid, (node, _) in seen.items():
        if bound == NO_STRING:
            node.live = False
            node.least = NO_STRING
        else:
            node.least = max(node.least, bound - depths[uid])


def _targets(node: Node, budget: Budget) -> list[Node]:
    pairs = row(node, budget)
    budget.spend(1 + len(pairs))
    targets = [locate(target) for _, target in pairs]
    return [target for target in targets if target.live is not False]


def _remaining(node: Node) -> int:
    """What all parts of a conjunction still need, so that none is lost sight of."""
    return sum([item.min_len for item in node.items]) if node.kind == KIND_AND else node.min_len


def _settle(node: Node, budget: Budget) -> bool:
    """Notes a shortest string of a node that shows one."""
    if node.positive:
        node.padded = _has_open_run(node)
    elif node.nullable:
        node.padded = any(target is node for target in _targets(node, budget))
    else:
        return False
    node.least = node.reach = node.min_len
    return True


def _has_open_run(node: Node) -> bool:
    """Whether a positive node shows that its shortest string can be drawn out to any length."""
    while node.kind == KIND_CAT:
        if _has_open_run(node.items[0]):
            return True
        node = node.items[1]
    return node.kind == KIND_REP and node.hi is None and node.items[0].kind == KIND_CHARS


def _settle_path(end: Node, seen: _Seen) -> None:
    """Notes the strings that lead to `end` and on."""
    reach, padded = end.reach, end.padded
    node = seen[end.uid][1]
    while node is not None:
        reach += 1
        padded = padded or any(target is node for _, target in node.row or ())
        node.live = True
        if reach < node.reach:
            node.reach, node.padded = reach, padded
        node = seen[node.uid][1]
