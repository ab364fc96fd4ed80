"""From a parsed pattern to one node.

Assertions are removed by carrying along what follows ("the rest"): where the rest must be in R, a lookahead for L
turns R into "L, then anything" & R, a negative one into its complement & R. What was read before is tracked by the
`BEHIND` nodes, which move with the text. Loops around assertions become `LOOP` nodes, unrolled when they are reached.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

from ..errors import GrammarError, LimitError
from ..limits import Limits
from . import nodes
from .budget import NODE_PRICE, Budget
from .derivative import locate, row, substitute
from .ecma import EcmaParser
from .nodes import ANYTHING, EMPTY, EPSILON, KIND_ALT, KIND_AND, KIND_BEHIND, KIND_CAT, KIND_LOOP, KIND_REP, KIND_VAR, Node
from .python import PythonParser
from .syntax import (
    TEXT_START,
    After,
    Alternatives,
    Atomic,
    Before,
    Item,
    Lookahead,
    Lookbehind,
    Repetition,
    Sequence,
    has_lookahead,
    width,
)

# How many required rounds of a loop body that may read nothing are written out.
_MAX_EMPTY_ROUNDS = 64

_Steps = Generator[tuple[Item, Node], Node, Node]


def pattern_node(text: str, dialect: Literal["ecma", "python"], mode: Literal["full", "search"], limits: Limits) -> Node:
    """The node of a pattern. Raises GrammarError with the position, LimitError, ValueError for unknown options."""
    if mode not in ("full", "search"):
        raise ValueError(f"unknown mode {mode!r}")
    if dialect not in _PARSERS:
        raise ValueError(f"unknown dialect {dialect!r}")
    _check_text(text, limits)
    budget = Budget(limits)
    item = _PARSERS[dialect](text, budget).parse()
    translator = _Translator(budget)
    node = translator.found_anywhere(item) if mode == "search" else translator.run(item, EPSILON)
    return locate(node)


_PARSERS: dict[str, type[EcmaParser] | type[PythonParser]] = {"ecma": EcmaParser, "python": PythonParser}


def _check_text(text: str, limits: Limits) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise GrammarError("a pattern with a lone surrogate is not Unicode text", position=error.start) from None
    if size > limits.max_bytes:
        raise LimitError(f"the pattern is longer than {limits.max_bytes} bytes")


class _Translator:
    def __init__(self, budget: Budget):
        self._budget = budget

    def found_anywhere(self, item: Item) -> Node:
        """Strings in which `item` matches somewhere."""
        free: list[Item] = []
        anchored: list[Item] = []
        stack = [item]
        while stack:
            branch = stack.pop()
            if isinstance(branch, Alternatives):
                stack.extend(branch.parts)
            elif branch is TEXT_START or (isinstance(branch, Sequence) and branch.parts[0] is TEXT_START):
                anchored.append(branch)
            else:
                free.append(branch)
        parts = [self.run(branch, ANYTHING) for branch in anchored]
        if free:
            parts.append(nodes.cat(ANYTHING, nodes.alt([self.run(branch, ANYTHING) for branch in free])))
        return nodes.alt(parts)

    def run(self, item: Item, rest: Node) -> Node:
        """Strings that `item` and then `rest` read, without recursion: each step asks for parts by yielding them."""
        steps = [self._steps(item, rest)]
        value: Node | None = None
        while steps:
            try:
                wanted = next(steps[-1]) if value is None else steps[-1].send(value)
            except StopIteration as stop:
                steps.pop()
                value = stop.value
            else:
                self._budget.spend(NODE_PRICE)
                value = None
                steps.append(self._steps(*wanted))
        if value is None:
            raise AssertionError("a translation ended without a value")
        return value

    def _steps(self, item: Item, rest: Node) -> _Steps:
        if isinstance(item, Node):
            return nodes.cat(item, rest, self._budget)
        if isinstance(item, Sequence):
            for part in reversed(item.parts):
                rest = yield part, rest
            return rest
        if isinstance(item, Alternatives):
            parts = []
            for part in item.parts:
                parts.append((yield part, rest))
            return nodes.alt(parts)
        if isinstance(item, After):
            return nodes.conj((item.rest, rest))
        if isinstance(item, Before):
            return nodes.cat(nodes.behind(item.prefix), rest)
        if isinstance(item, Lookahead):
            body = yield item.body, ANYTHING
            return nodes.conj((nodes.complement(body) if item.negative else body, rest))
        if isinstance(item, Lookbehind):
            if has_lookahead(item.body):
                raise GrammarError("a lookahead inside a lookbehind is not supported", position=item.position)
            body = yield item.body, EPSILON
            prefix = nodes.cat(ANYTHING, body)
            return nodes.cat(nodes.behind(nodes.complement(prefix) if item.negative else prefix), rest)
        if isinstance(item, Atomic):
            return (yield self._without_atomic(item, rest), rest)
        if item.possessive:
            return (yield self._without_possessive(item, rest), rest)
        return (yield from self._repetition(item, rest))

    def _repetition(self, item: Repetition, rest: Node) -> _Steps:
        lo, hi = item.lo, item.hi
        if hi == 0:
            return rest
        if hi == 1:
            once = yield item.body, rest
            return once if lo else nodes.alt((once, rest))
        var = rest.free.bit_length()
        body = yield item.body, nodes.variable(var)
        if width(item.body)[0] > 0:
            return nodes.loop(body, rest, lo, hi, var)
        # Rounds that read nothing add no string beyond the required ones: leave them out there.
        if lo > _MAX_EMPTY_ROUNDS:
            raise GrammarError("a repetition of assertions that may read nothing is too long", position=item.position)
        result = nodes.loop(guarded(body, var, self._budget), rest, 0, None if hi is None else hi - lo, var)
        for _ in range(lo):
            result = yield item.body, result
        return result

    def _without_atomic(self, item: Atomic, rest: Node) -> Item:
        """The body, if it has one length only, or is one greedy run that the rest cannot go on with."""
        least, most = width(item.body)
        if least == most:
            return item.body
        body = item.body
        if item.is_run and isinstance(body, Node) and body.kind == KIND_REP:
            return self._without_possessive(Repetition(body.items[0], body.lo, body.hi, True, item.position), rest)
        raise GrammarError("an atomic group that may change what is matched is not supported", position=item.position)

    def _without_possessive(self, item: Repetition, rest: Node) -> Item:
        body = item.body
        plain = Repetition(body, item.lo, item.hi, False, item.position)
        least, most = width(body)
        if least == most and item.lo == item.hi:
            return plain
        if isinstance(body, Node) and least == most == 1 and not rest.free and not rest.located:
            first = row(body, self._budget)
            if not any(cell & other for cell, _ in first for other, _ in row(rest, self._budget)):
                return nodes.rep(body, item.lo, item.hi)
        raise GrammarError("a possessive quantifier that may change what is matched is not supported", position=item.position)


def guarded(node: Node, var: int, budget: Budget) -> Node:
    """`node` without the strings that reach `VAR(var)` before a character was read."""
    bit = 1 << var
    memo: dict[int, Node] = {}
    stack = [node]
    while stack:
        current = stack[-1]
        if current.uid in memo:
            stack.pop()
            continue
        parts = _unguarded_parts(current) if current.free & bit else ()
        missing = [part for part in parts if part.uid not in memo]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        budget.spend(NODE_PRICE * (1 + len(parts)))
        memo[current.uid] = _guard(current, bit, [memo[part.uid] for part in parts], budget)
    return memo[node.uid]


def _unguarded_parts(node: Node) -> tuple[Node, ...]:
    if node.kind in (KIND_ALT, KIND_AND):
        return node.items
    if node.kind == KIND_CAT and (node.items[0].nullable or node.items[0].kind == KIND_BEHIND):
        return node.items[1:]
    if node.kind == KIND_LOOP and node.lo == 0:
        return node.items[1:]
    return ()


def _guard(node: Node, bit: int, parts: list[Node], budget: Budget) -> Node:
    if not node.free & bit:
        return node
    if node.kind == KIND_VAR:
        return EMPTY
    if not parts:
        return node
    if node.kind in (KIND_ALT, KIND_AND):
        return nodes.rebuild(node, tuple(parts))
    head, tail = node.items
    if node.kind == KIND_LOOP:
        fewer = None if node.hi is None else node.hi - 1
        return nodes.alt((parts[0], substitute(head, node.var, nodes.loop(head, tail, 0, fewer, node.var), budget)))
    if head.kind == KIND_BEHIND:
        return nodes.cat(head, parts[0])
    return nodes.alt((nodes.cat(_not_empty(head), tail), parts[0]))


def _not_empty(node: Node) -> Node:
    if node.kind == KIND_REP and node.lo == 0 and not node.items[0].nullable:
        return nodes.rep(node.items[0], 1, node.hi)
    return nodes.conj((node, nodes.length(1, None)))
