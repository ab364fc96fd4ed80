"""The least set closed under rules of the form "if all of these, then that"."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


@dataclass
class _Clause(Generic[T]):
    head: T
    missing: int


def closure(clauses: Iterable[tuple[T, Set[T]]]) -> set[T]:
    """Heads that follow from `(head, needs)` clauses (Dowling and Gallier, 1984). Cost: linear."""
    waiting: dict[T, list[_Clause[T]]] = {}
    ready: deque[T] = deque()
    for head, needs in clauses:
        if not needs:
            ready.append(head)
            continue
        clause = _Clause(head, len(needs))
        for need in needs:
            waiting.setdefault(need, []).append(clause)
    found: set[T] = set()
    while ready:
        head = ready.popleft()
        if head in found:
            continue
        found.add(head)
        for clause in waiting.pop(head, ()):
            clause.missing -= 1
            if clause.missing == 0:
                ready.append(clause.head)
    return found
