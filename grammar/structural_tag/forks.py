"""Leaves, forks and switches: what reads a text, and the nodes of a machine at which it may go on in several ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..languages import CharAutomaton
from ..limits import Limits
from ..machine import Machine, leaf_row
from ..machine_layout import FORK, LEAF, SWITCH
from ..machine_parts import Element, ForkParts
from ..regex import Language
from .free_text import SwitchAutomaton, Words
from .switch_rows import SwitchRows
from .symbols import Symbols, num_bytes

Elements = tuple[Element, ...]
_MAX_PUSHED = 2  # nodes that one alternative of a fork pushes, see `ForkParts`


class Word(NamedTuple):
    """A text (what is left of it), and what follows."""

    rest: Symbols
    then: Elements


class Leaves:
    """Makes the leaves of one machine, each once."""

    def __init__(self, machine: Machine, limits: Limits):
        self._machine = machine
        self._limits = limits
        self._made: dict[object, Elements] = {}

    def literal(self, text: str) -> Elements:
        """Reads a text; nothing for the empty one."""
        return self.of(Language.literal(text)) if text else ()

    def of(self, language: Language) -> Elements:
        """Reads a text of a language."""
        return self.of_automaton(language, lambda: language.automaton(self._limits))

    def of_automaton(self, key: object, make: Callable[[], CharAutomaton]) -> Elements:
        """Reads what an automaton accepts. Equal keys are of equal automata."""
        if key not in self._made:
            self._made[key] = (Element(LEAF, leaf_row(self._machine, make())),)
        return self._made[key]


class Forks:
    """Makes them in one machine.

    Attributes:
        switches: rows of all that were made.
    """

    def __init__(self, machine: Machine, limits: Limits):
        self._machine = machine
        self._limits = limits
        self.switches: list[SwitchRows] = []

    def choose(self, words: list[Word], held: int = 0) -> Elements:
        """Reads one of several words and what follows it. `held` bytes before them belong to the same boundary."""
        if len(words) == 1 and not words[0].rest:
            return words[0].then
        alternatives = [word.then for word in words if not word.rest]
        longer = sorted((word for word in words if word.rest), key=lambda word: word.rest)
        if longer:
            rows = self.rows(Words(self._by_beginning(longer, held), held))
            alternatives.append((Element(SWITCH, rows.start_row()),))
        return alternatives[0] if len(alternatives) == 1 else (self.element(lambda: alternatives),)

    def _by_beginning(self, words: list[Word], held: int) -> list[tuple[Symbols, int]]:
        """Sorted words by the shortest of them that they begin with, each with the fork after that."""
        groups: list[list[Word]] = []
        for word in words:
            first = groups[-1][0].rest if groups else None
            if first is not None and word.rest[: len(first)] == first:
                groups[-1].append(word)
            else:
                groups.append([word])
        found: list[tuple[Symbols, int]] = []
        for group in groups:
            first = group[0].rest
            after = [Word(word.rest[len(first) :], word.then) for word in group]
            length = held + sum(map(num_bytes, first))
            found.append((first, self.fork(lambda after=after, length=length: [self.choose(after, length)])))
        return found

    def rows(self, automaton: SwitchAutomaton) -> SwitchRows:
        rows = SwitchRows(automaton, self._limits)
        self._machine.hold(rows)
        self.switches.append(rows)
        return rows

    def element(self, make: Callable[[], list[Elements]]) -> Element:
        return Element(FORK, self.fork(make))

    def fork(self, make: Callable[[], list[Elements]]) -> int:
        """A fork whose alternatives are made when it is reached."""
        return self._machine.new_value(self._parts, make)

    def _parts(self, make: Callable[[], list[Elements]]) -> ForkParts:
        return ForkParts([self._short(alternative) for alternative in make()])

    def loop(self, make: Callable[[Element], list[Elements]]) -> Element:
        """A fork that its own alternatives lead back to."""
        element: list[Element] = []
        element.append(self.element(lambda: make(element[0])))
        return element[0]

    def _short(self, elements: Elements) -> Elements:
        if len(elements) <= _MAX_PUSHED:
            return elements
        return (elements[0], self.element(lambda: [elements[1:]]))
