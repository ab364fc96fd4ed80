"""From a context-free grammar to the lazy byte automaton."""

from __future__ import annotations

from ..languages import CharAutomaton
from ..limits import Limits
from ..machine import Machine, PositionParts
from ..regex import CharSet, Language
from ..regex.charset import NO_CHARS
from .follows import following_terminals
from .guards import Guards
from .ir import ContextFreeGrammar
from .lexemes import reader_of
from .numbered import NumberedGrammar, number_symbols
from .outcomes import Outcomes
from .places import Leaf, Places, Position


def compile_cfg(grammar: ContextFreeGrammar, limits: Limits | None = None) -> tuple[Machine, int]:
    """A fresh automaton and its state before any text.

    Nothing is built before a text reaches it, except what decides that no alternative leads nowhere: linear in the size of a grammar
    without lexemes; with them, their automata and which of them can follow each other.

    Raises:
        GrammarError: no text satisfies the grammar, or a terminal is not supported.
        LimitError: a budget is reached, here or later in a step.
    """
    limits = limits or Limits()
    return _Compiler(grammar, Machine(limits=limits), limits).run()


def compile_part(grammar: ContextFreeGrammar, machine: Machine, limits: Limits) -> tuple[int | None, bool]:
    """A grammar as a part of a larger one: the value of the place before it in `machine` (None if it reads nothing), and whether it
    may read nothing. Raises what `compile_cfg` raises."""
    return _Compiler(grammar, machine, limits).part()


class _Compiler:
    def __init__(self, grammar: ContextFreeGrammar, machine: Machine, limits: Limits):
        self._limits = limits
        self._machine = machine
        numbered = number_symbols(grammar, limits)
        guards = Guards(limits)
        self._readers = [reader_of(terminal, guards, limits) for terminal in numbered.terminals]
        self._settle(numbered)
        self._places = Places(numbered, self._readers, guards, Outcomes(numbered, self._readers, limits))
        self._positions: dict[Position, int] = {}
        self._texts: dict[Leaf, Language | CharAutomaton] = {}
        self._rows: dict[object, int] = {}

    def _settle(self, grammar: NumberedGrammar) -> None:
        """Tells each reader what can come after its terminal."""
        following = following_terminals(grammar)
        if following is None:
            return
        unions: dict[int, CharSet] = {}
        for reader, terminals in zip(self._readers, following, strict=True):
            if terminals not in unions:
                unions[terminals] = self._first_of(terminals)
            reader.settle(unions[terminals])

    def _first_of(self, terminals: int) -> CharSet:
        result = NO_CHARS
        while terminals:
            lowest = terminals & -terminals
            result = result | self._readers[lowest.bit_length() - 1].first()
            terminals ^= lowest
        return result

    def run(self) -> tuple[Machine, int]:
        sentence = self._places.sentence()
        return self._machine, self._machine.start_of_sentence(None if sentence is None else self._position(sentence))

    def part(self) -> tuple[int | None, bool]:
        sentence = self._places.sentence()
        return (None, True) if sentence is None else (self._position(sentence) >> 1, sentence.skippable)

    def _position(self, position: Position) -> int:
        number = self._positions.get(position)
        if number is None:
            number = self._positions[position] = self._machine.new_position(lambda: self._parts(position), position.skippable)
        return number

    def _parts(self, position: Position) -> PositionParts:
        alternatives: list[tuple[int, list[int]]] = []
        for leaves, path in self._places.expand(position):
            positions = [self._position(part) for part in path]
            alternatives.extend((row, positions) for row in self._leaf_rows(leaves))
        return PositionParts(alternatives)

    def _leaf_rows(self, leaves: tuple[Leaf, ...]) -> list[int]:
        """Rows that begin the leaves; plain languages share one."""
        words = dict.fromkeys(word for leaf in leaves if (word := self._readers[~leaf.terminal].word) is not None)
        languages: dict[Language, None] = {}
        rows: list[int] = []
        for leaf in leaves:
            if self._readers[~leaf.terminal].word is not None:
                continue
            texts = self._texts_of(leaf)
            if isinstance(texts, Language):
                languages[texts] = None
            else:
                rows.append(self._row(leaf, texts))
        if words or languages:
            key = (frozenset(words), frozenset(languages))
            if key not in self._rows:
                self._row(key, Language.union([*languages, Language.literals(words)]).automaton(self._limits))
            rows.append(self._rows[key])
        return rows

    def _texts_of(self, leaf: Leaf) -> Language | CharAutomaton:
        texts = self._texts.get(leaf)
        if texts is None:
            texts = self._texts[leaf] = self._readers[~leaf.terminal].texts(leaf.guard, leaf.ends)
        return texts

    def _row(self, key: object, automaton: CharAutomaton) -> int:
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._machine.lower(automaton, json=False).start_row()
        return row
