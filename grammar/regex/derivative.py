"""Derivatives by all characters at once.

`row(node)` lists what is left of a node after each possible first character, as disjoint sets of characters with the
remaining node (Brzozowski's derivative over the minterms of Owens, Reppy and Turon, "Regular-expression derivatives
re-examined", 2009). Counters stay counters: the derivative of `x{m,n}` is the derivative of `x`, then `x{m-1,n-1}`.

`shifts(node)` lists how a *located* node changes when a character passes before it is reached: its lookbehinds move
on (after Moseley et al., "Derivative Based Nonbacktracking Real-World Regex Matching with Backtracking Semantics", 2023).

Both are memoised in the node and computed without recursion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import nodes
from .budget import NODE_PRICE, PART_PRICE, ROW_PRICE, Budget
from .charset import ALL_CHARS, CharSet, joined, partition, set_of
from .nodes import (
    EMPTY,
    EPSILON,
    KIND_ALT,
    KIND_AND,
    KIND_BEHIND,
    KIND_CAT,
    KIND_CHARS,
    KIND_EMPTY,
    KIND_EPSILON,
    KIND_LOOP,
    KIND_NOT,
    KIND_REP,
    KIND_SEAL,
    KIND_STATE,
    KIND_VAR,
    KIND_WORDS,
    Node,
    Row,
)

_ROW = 0
_SHIFTS = 1
_Task = tuple[Node, int]
_Pairs = Iterable[tuple[CharSet, Node]]


def row(node: Node, budget: Budget) -> Row:
    """Disjoint `(characters, rest)` of `node`; characters that no pair lists lead nowhere. Raises LimitError."""
    if node.row is None:
        _evaluate(node, budget)
    return node.row or ()


def locate(node: Node) -> Node:
    """`node` with the lookbehinds that stand at its very start decided: they see exactly what was read."""
    if not node.located:
        return node
    stack = [node]
    while stack:
        current = stack[-1]
        if current.here is not None:
            stack.pop()
            continue
        parts = _heads(current)
        missing = [part for part in parts if part.located and part.here is None]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        current.here = _located(current, [part.here if part.here is not None else part for part in parts])
    return node.here or node


def _heads(node: Node) -> tuple[Node, ...]:
    if node.kind in (KIND_ALT, KIND_AND, KIND_NOT):
        return node.items
    if node.kind == KIND_CAT and node.items[0].kind == KIND_BEHIND and node.items[0].nullable:
        return node.items[1:]
    return ()


def _located(node: Node, parts: list[Node]) -> Node:
    if node.kind == KIND_BEHIND:
        return EPSILON if node.nullable else EMPTY
    if node.kind == KIND_CAT and node.items[0].kind == KIND_BEHIND:
        return parts[0] if parts else EMPTY
    return nodes.rebuild(node, tuple(parts)) if parts else node


def unroll(node: Node, budget: Budget) -> Node:
    """A LOOP as its first round, or its tail if no round is left to do."""
    if node.first_round is None:
        body, tail = node.items
        fewer = None if node.hi is None else node.hi - 1
        rest = nodes.loop(body, tail, max(node.lo - 1, 0), fewer, node.var)
        first = substitute(body, node.var, rest, budget)
        node.first_round = first if node.lo else nodes.alt([first, tail])
    return node.first_round


def substitute(node: Node, var: int, value: Node, budget: Budget) -> Node:
    """`node` with every free `VAR(var)` replaced by `value`."""
    bit = 1 << var
    memo: dict[int, Node] = {}
    stack = [node]
    while stack:
        current = stack[-1]
        if current.uid in memo:
            stack.pop()
        elif not current.free & bit:
            memo[current.uid] = current
        elif current.kind == KIND_VAR:
            memo[current.uid] = value
        else:
            missing = [item for item in current.items if item.uid not in memo]
            if missing:
                stack.extend(missing)
            else:
                stack.pop()
                budget.spend(NODE_PRICE * len(current.items))
                memo[current.uid] = nodes.rebuild(current, tuple([memo[item.uid] for item in current.items]))
    return memo[node.uid]


def _evaluate(node: Node, budget: Budget) -> None:
    stack: list[_Task] = [(node, _ROW)]
    while stack:
        current, want = stack[-1]
        if (current.row if want == _ROW else current.shifts) is not None:
            stack.pop()
            continue
        needed = _row_needs(current, budget) if want == _ROW else _shift_needs(current)
        missing = [task for task in needed if (task[0].row if task[1] == _ROW else task[0].shifts) is None]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        budget.spend(ROW_PRICE)
        if want == _ROW:
            current.row = _row(current, budget)
        else:
            current.shifts = _shifts(current, budget)


def _row_needs(node: Node, budget: Budget) -> Sequence[_Task]:
    kind = node.kind
    if kind == KIND_CAT:
        head, tail = node.items
        needs = [(head, _ROW)]
        if tail.located:
            needs.append((tail, _SHIFTS))
        if head.nullable:
            needs.append((tail, _ROW))
        return needs
    if kind in (KIND_ALT, KIND_AND, KIND_NOT, KIND_REP, KIND_SEAL):
        return [(item, _ROW) for item in node.items]
    if kind == KIND_LOOP:
        return [(unroll(node, budget), _ROW)]
    return ()


def _row(node: Node, budget: Budget) -> Row:
    kind = node.kind
    if kind == KIND_CHARS:
        return ((node.chars, EPSILON),)
    if kind == KIND_WORDS:
        return tuple(nodes.word_row(node))
    if kind == KIND_STATE:
        recognizer, state = node.state
        moves = [(set_of(ranges), nodes.state(recognizer, target)) for ranges, target in recognizer.moves(state)]
        budget.spend(NODE_PRICE * len(moves))
        return _merged(moves)
    if kind == KIND_CAT:
        return _cat_row(node, budget)
    if kind == KIND_REP:
        body = node.items[0]
        rest = nodes.rep(body, max(node.lo - 1, 0), None if node.hi is None else node.hi - 1)
        return _appended(body.row or (), rest, budget)
    if kind == KIND_ALT:
        return _union([item.row or () for item in node.items], budget)
    if kind == KIND_AND:
        return _meet([item.row or () for item in node.items], budget)
    if kind == KIND_NOT:
        return _negated(node.items[0].row or ())
    if kind == KIND_SEAL:
        return node.items[0].row or ()
    if kind == KIND_LOOP:
        return unroll(node, budget).row or ()
    if kind in (KIND_EMPTY, KIND_EPSILON, KIND_BEHIND):
        return ()
    raise AssertionError(f"a node of kind {kind} has no derivative")


def _cat_row(node: Node, budget: Budget) -> Row:
    head, tail = node.items
    first = _moved(head.row or (), tail.shifts or (), budget) if tail.located else _appended(head.row or (), tail, budget)
    if not head.nullable or not tail.row:
        return first
    return _union([first, tail.row], budget) if first else tail.row


def _appended(before: Row, rest: Node, budget: Budget) -> Row:
    """`before` with `rest` after every remainder."""
    if rest is EPSILON:
        return before
    return _merged([(cell, _append(target, rest, budget)) for cell, target in before])


def _append(target: Node, rest: Node, budget: Budget) -> Node:
    # Distributing over the alternatives of a derivative keeps its terms flat (Antimirov's partial derivatives).
    if target.kind == KIND_ALT:
        budget.spend(NODE_PRICE * len(target.items))
        return nodes.alt([nodes.cat(item, rest, budget) for item in target.items])
    return nodes.cat(target, rest, budget)


def _moved(before: Row, moves: Row, budget: Budget) -> Row:
    """`before`, each remainder followed by what the tail has become after the same character."""
    if not before:
        return ()
    pairs: list[tuple[CharSet, Node]] = []
    for cell, mask in partition(tuple([cell for cell, _ in (*before, *moves)])):
        indexes = _bits(mask)
        if len(indexes) == 2:
            target, tail = before[indexes[0]][1], moves[indexes[1] - len(before)][1]
            budget.spend(NODE_PRICE)
            pairs.append((cell, _append(target, tail, budget)))
    return _merged(pairs)


def _union(rows: list[Row], budget: Budget) -> Row:
    grouped: dict[CharSet, list[Node]] = {}
    for one in rows:
        for cell, target in one:
            known = grouped.get(cell)
            if known is None:
                grouped[cell] = [target]
            else:
                known.append(target)
    targets = list(grouped.values())
    budget.spend(PART_PRICE * len(targets))
    pairs: list[tuple[CharSet, Node]] = []
    for cell, mask in partition(tuple(grouped)):
        together = targets[mask.bit_length() - 1]
        if mask & (mask - 1):
            together = [node for index in _bits(mask) for node in targets[index]]
        budget.spend(PART_PRICE * len(together))
        pairs.append((cell, nodes.alt(together) if len(together) > 1 else together[0]))
    return _merged(pairs)


def _meet(rows: list[Row], budget: Budget) -> Row:
    flat = [pair for one in rows for pair in one]
    budget.spend(PART_PRICE * len(flat))
    pairs: list[tuple[CharSet, Node]] = []
    if flat:
        for cell, mask in partition(tuple([cell for cell, _ in flat])):
            # The pairs of one row are disjoint: as many bits as rows means one pair of each row.
            indexes = _bits(mask)
            if len(indexes) == len(rows):
                budget.spend(PART_PRICE * len(rows))
                pairs.append((cell, nodes.conj([flat[index][1] for index in indexes])))
    return _merged(pairs)


def _negated(before: Row) -> Row:
    pairs: list[tuple[CharSet, Node]] = []
    last = len(before)
    for cell, mask in partition((*[cell for cell, _ in before], ALL_CHARS)):
        inner = mask & ~(1 << last)
        pairs.append((cell, nodes.complement(before[inner.bit_length() - 1][1]) if inner else nodes.ANYTHING))
    return _merged(pairs)


def _shift_needs(node: Node) -> Sequence[_Task]:
    if node.kind == KIND_BEHIND:
        return [(node.items[0], _ROW)]
    return [(item, _SHIFTS) for item in node.items if item.located]


def _shifts(node: Node, budget: Budget) -> Row:
    """The whole alphabet, cut into `(characters, moved node)`; the moved node may be EMPTY."""
    if node.kind == KIND_BEHIND:
        before = node.items[0].row or ()
        last = len(before)
        cells = partition((*[cell for cell, _ in before], ALL_CHARS))
        return _merged(
            [
                (cell, nodes.behind(before[inner.bit_length() - 1][1] if inner else EMPTY))
                for cell, mask in cells
                for inner in (mask & ~(1 << last),)
            ],
            keep_empty=True,
        )
    moves = [pair for item in node.items if item.located for pair in item.shifts or ()]
    owners = [position for position, item in enumerate(node.items) if item.located for _ in item.shifts or ()]
    pairs: list[tuple[CharSet, Node]] = []
    for cell, mask in partition(tuple([cell for cell, _ in moves])):
        items = list(node.items)
        for index in _bits(mask):
            items[owners[index]] = moves[index][1]
        budget.spend(NODE_PRICE * len(items))
        pairs.append((cell, nodes.rebuild(node, tuple(items))))
    return _merged(pairs, keep_empty=True)


def _merged(pairs: list[tuple[CharSet, Node]], keep_empty: bool = False) -> Row:
    """Pairs with the same target joined, dead targets dropped."""
    if len(pairs) == 1:
        return tuple(pairs) if keep_empty or pairs[0][1] is not EMPTY else ()
    cells: dict[int, list[CharSet]] = {}
    targets: dict[int, Node] = {}
    for cell, target in pairs:
        if target is EMPTY and not keep_empty:
            continue
        if target.uid in targets:
            cells[target.uid].append(cell)
        else:
            targets[target.uid] = target
            cells[target.uid] = [cell]
    return tuple([(joined(cells[uid]), target) for uid, target in targets.items()])


def _bits(mask: int) -> list[int]:
    result: list[int] = []
    while mask:
        low = mask & -mask
        result.append(low.bit_length() - 1)
        mask ^= low
    return result
