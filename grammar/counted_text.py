"""Texts that may take a bounded number of tokens.

Bytes do not tell where tokens end, so whoever reads tokens says so after each. A SWITCH node holds how many tokens are left, and
whether the token that is being read has brought text. Once nothing is left, what the machine's `closers` answer takes its place.
"""

from __future__ import annotations

from .machine import Machine
from .machine_layout import DEAD, FORK, KIND, PARENT, SWITCH, A, B, C


def end_of_token(machine: Machine, state: int) -> int:
    """The state once a token is complete. DEAD where a text would have to end inside a character."""
    if not machine.closers:
        return state
    members = machine.members(state)
    ended = [_counted_down(machine, member) for member in members]
    if ended == members:
        return state
    living = [member for member in ended if member != DEAD]
    return machine.union(living) if living else DEAD


def may_end_in_character(machine: Machine, state: int) -> bool:
    """Whether a token may use up a text inside a character, so that masks have to look at such tokens one by one."""
    if not machine.closers:
        return False
    members = machine.members(state)
    return machine.has_single_tokens or any(
        int(machine.nodes[member, KIND]) == SWITCH and int(machine.nodes[member, C]) == 1 for member in members
    )


def _counted_down(machine: Machine, node: int) -> int:
    kind, row, read, left, parent = (int(x) for x in machine.nodes[node, [KIND, A, B, C, PARENT]])
    if kind != SWITCH or not read:
        return node
    if left > 1:
        return machine.node(SWITCH, row, 0, left - 1, parent)
    fork = next((fork for closer in machine.closers if (fork := closer(row)) is not None), None)
    return DEAD if fork is None else machine.node(FORK, fork, 0, 0, parent)
