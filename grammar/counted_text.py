"""Texts that may take a bounded number of tokens.

Bytes do not tell where tokens end, so whoever reads tokens says so after each. A SWITCH node holds how many tokens are left, and
whether the token that is being read has brought text. Once nothing is left, what has to follow takes its place.

A text ends between two characters. As a token may be as short as a byte, one that leaves a character unfinished needs a token more
for each byte that is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .machine import Machine
from .machine_layout import DEAD, FEW_TOKENS, FORK, KIND, PARENT, SWITCH, A, B, C


@dataclass(frozen=True, kw_only=True)
class CountedText:
    """Attributes:
    max_tokens: as many as it may take.
    missing: row -> bytes that are missing to the end of a character, None for rows of other texts.
    closer: row between two characters -> the fork of what comes when nothing is left.
    """

    max_tokens: int
    missing: Callable[[int], int | None]
    closer: Callable[[int], int]


def end_of_token(machine: Machine, state: int) -> int:
    """The state once a token is complete. DEAD where a text might have to end inside a character."""
    if not machine.counted_texts:
        return state
    members = machine.members(state)
    _, text = machine.split_record(state)
    ended = [_counted_down(machine, member) for member in members]
    if ended == members:
        return state
    living = [member for member in ended if member != DEAD]
    return machine.with_record(machine.union(living), text) if living else DEAD


def needs_whole_characters(machine: Machine, state: int) -> bool:
    """Whether a token may be refused because it leaves a character unfinished, so that a mask has to look at such tokens one by one."""
    return any(text.max_tokens <= FEW_TOKENS for text in machine.counted_texts) or (
        bool(machine.counted_texts) and any(_has_few_left(machine, member) for member in machine.members(state))
    )


def _has_few_left(machine: Machine, node: int) -> bool:
    return int(machine.nodes[node, KIND]) == SWITCH and 0 < int(machine.nodes[node, C]) <= FEW_TOKENS


def _counted_down(machine: Machine, node: int) -> int:
    kind, row, read, left, parent = (int(x) for x in machine.nodes[node, [KIND, A, B, C, PARENT]])
    if kind != SWITCH or not read:
        return node
    for text in machine.counted_texts:
        missing = text.missing(row)
        if missing is None:
            continue
        if missing > left - 1:
            return DEAD
        return machine.node(SWITCH, row, 0, left - 1, parent) if left > 1 else machine.node(FORK, text.closer(row), 0, 0, parent)
    raise AssertionError("a counted text that the machine does not know")
