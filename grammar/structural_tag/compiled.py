"""A structural tag as an automaton, and what a parser needs to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..machine import Machine
from .switch_rows import SwitchRows
from .symbols import SymbolTable


class Mark(NamedTuple):
    """A place in the text.

    Attributes:
        tag: number of the tag, in the order of the tree.
        begins: whether its begin was read, else its end.
        length: bytes of the boundary that was read.
    """

    tag: int
    begins: bool
    length: int


@dataclass(frozen=True)
class CompiledTag:
    """A byte automaton, the state before any text, and what a parser needs to know.

    Attributes:
        marks: by number; none unless they were asked for.
        switches: rows of all free texts and boundaries.
        symbols: what the boundaries became.
    """

    machine: Machine
    start: int
    marks: Sequence[Mark]
    switches: Sequence[SwitchRows]
    symbols: SymbolTable
