"""Runs: characters of which many may come one after another, and what a node is after any so many of them.

A run is *even* if all its characters lead to the same node. Counted repetitions are, where nothing else can begin with these characters:
after n characters of `[a-z]{2,63}\\.` it is `[a-z]{0,63-n}\\.` with the least count lowered, known without looking at the nodes between.
"""

from __future__ import annotations

from typing import NamedTuple

from ..languages import MAX_CODE_POINT, Run
from . import nodes
from .budget import Budget
from .charset import ALL_CHARS, NO_CHARS, CharSet
from .derivative import row
from .nodes import EMPTY, EPSILON, KIND_ALT, KIND_AND, KIND_CAT, KIND_CHARS, KIND_NOT, KIND_REP, KIND_STATE, Node

_SHORTEST = 2  # a shorter run says nothing that a row doesn't


def run_of(node: Node, budget: Budget) -> Run | None:
    """A large run that can begin at a node; None if there is none."""
    if node.kind == KIND_STATE:
        recognizer, state = node.state
        return recognizer.run(state)
    inner, longest = _within(node)
    runs: list[tuple[int, CharSet]] = []
    for way in inner.items if inner.kind == KIND_ALT else (inner,):
        head, rest = (way.items[0], way.items[1].min_len) if way.kind == KIND_CAT else (way, 0)
        most = min(MAX_CODE_POINT if head.hi is None else head.hi, longest - rest)
        if way.positive and head.kind == KIND_REP and head.lo <= most:
            runs.extend([(most, body.chars) for body in _single(head.items[0])])
    if not runs:
        return None
    count, chars = max(runs, key=lambda found: found[0] * found[1].size)
    if count < _SHORTEST:
        return None
    if count == MAX_CODE_POINT:
        return Run(chars.ranges, None)
    try:
        after = _follow(node, chars, count, budget)
    except _Uneven:
        return Run(chars.ranges, count)
    return Run(chars.ranges, count, (after.others - chars).ranges, after.may_end)


def ahead(node: Node, count: int, budget: Budget) -> Node:
    """A node after any `count` characters of its even run, which is at least so long."""
    run = run_of(node, budget)
    assert run is not None
    return _advanced(node, CharSet.of(run.ranges), count, budget)


class _Uneven(Exception):
    """The characters of a run lead to different nodes, or that is not easy to tell."""


class _After(NamedTuple):
    """What is common to all places in a run.

    Attributes:
        others: characters, besides those of the run, that may come there, or more.
        may_end: whether the text may end there.
    """

    others: CharSet
    may_end: bool


_NOWHERE = _After(NO_CHARS, False)


def _follow(node: Node, chars: CharSet, count: int, budget: Budget) -> _After:
    """What can come after one to `count` of the characters; raises `_Uneven`."""
    if node.located or node.loopy:
        raise _Uneven
    if node.kind == KIND_ALT:
        ways = [_follow(item, chars, count, budget) for item in node.items]
        return _After(_union([way.others for way in ways]), any(way.may_end for way in ways))
    if node.kind == KIND_AND:
        ways = [_follow(item, chars, count, budget) for item in node.items]
        others = ways[0].others
        for way in ways[1:]:
            others = others & way.others
        return _After(others, all(way.may_end for way in ways))
    if node.kind == KIND_NOT:
        return _After(ALL_CHARS, not _follow(node.items[0], chars, count, budget).may_end)
    head, rest = node.items if node.kind == KIND_CAT else (node, EPSILON)
    if head.kind != KIND_REP or not _is_body(head.items[0], chars, budget):
        if first_of(node, budget) & chars:
            raise _Uneven
        return _NOWHERE
    if head.hi is not None and head.hi < count:
        raise _Uneven
    others = _union([first_of(part, budget) for part in _parts(head.items[0])])
    if head.lo >= count:  # nothing but the repetition yet
        if head.lo == count and rest.nullable:
            raise _Uneven
        return _After(others if head.lo > count else others | first_of(rest, budget), False)
    following = first_of(rest, budget)
    if following & chars or (rest.nullable and head.lo > 1):
        raise _Uneven
    return _After(others | following, rest.nullable)


def _advanced(node: Node, chars: CharSet, count: int, budget: Budget) -> Node:
    """A node after any `count` of the characters, where `_follow` raised nothing for them."""
    if node.kind == KIND_ALT:
        return nodes.alt([_advanced(item, chars, count, budget) for item in node.items])
    if node.kind == KIND_AND:
        return nodes.conj([_advanced(item, chars, count, budget) for item in node.items])
    if node.kind == KIND_NOT:
        return nodes.complement(_advanced(node.items[0], chars, count, budget))
    head, rest = node.items if node.kind == KIND_CAT else (node, EPSILON)
    if head.kind != KIND_REP or not _is_body(head.items[0], chars, budget):
        return EMPTY
    budget.spend(1)
    left = nodes.rep(head.items[0], max(head.lo - count, 0), None if head.hi is None else head.hi - count)
    return nodes.cat(left, rest, budget)


def _is_body(body: Node, chars: CharSet, budget: Budget) -> bool:
    """Whether each of the characters is one round of a repetition, and begins no other one."""
    whole = [part for part in _parts(body) if part.kind == KIND_CHARS and not chars - part.chars]
    return len(whole) == 1 and not any(first_of(part, budget) & chars for part in _parts(body) if part is not whole[0])


def first_of(node: Node, budget: Budget) -> CharSet:
    """Characters that a text of a node can begin with."""
    return _union([cell for cell, _ in row(node, budget)])


def _union(sets: list[CharSet]) -> CharSet:
    result = NO_CHARS
    for one in sets:
        result = result | one
    return result


def _within(node: Node) -> tuple[Node, int]:
    """A node that has what `node` has of texts up to some length, and that length: shorter than what a complement takes away."""
    if node.kind == KIND_AND:
        wholes = [item for item in node.items if item.kind != KIND_NOT]
        removed = [item.items[0] for item in node.items if item.kind == KIND_NOT]
        if len(wholes) == 1 and not any(item.located for item in removed):
            return wholes[0], min(item.min_len for item in removed) - 1
    return node, MAX_CODE_POINT


def _parts(body: Node) -> tuple[Node, ...]:
    return body.items if body.kind == KIND_ALT else (body,)


def _single(body: Node) -> list[Node]:
    """The parts of the body of a repetition that are one character."""
    return [part for part in _parts(body) if part.kind == KIND_CHARS]
