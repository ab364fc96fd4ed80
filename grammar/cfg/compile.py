"""From a context-free grammar to the lazy byte automaton."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..languages import CharAutomaton
from ..limits import Limits
from ..machine import Machine
from ..machine_layout import FORK, LEAF, POSITION
from ..machine_parts import Element, ForkParts, PositionParts
from ..regex import CharSet, Language
from ..structural_tag.symbols import SymbolTable
from ..whitespace import Whitespace
from .embedded import EmbeddedReader, JsonReader, TokenReader, token_ids_of
from .follows import following_terminals
from .guards import Guards
from .ir import ContextFreeGrammar, Embedded, JsonValue, Lexeme, SpecialToken, Terminal
from .lexemes import Reader, reader_of
from .numbered import NumberedGrammar, number_symbols
from .outcomes import Outcomes
from .places import Leaf, Path, Places, Position


def compile_cfg(
    grammar: ContextFreeGrammar, limits: Limits | None = None, special_tokens: Mapping[str, int | None] | None = None
) -> tuple[Machine, int]:
    """A fresh automaton and its state before any text. `special_tokens`: ids by name, of the vocabulary it is for.

    Nothing is built before a text reaches it, except what decides that no alternative leads nowhere: linear in the size of a grammar
    without lexemes; with them, their automata and which of them can follow each other.

    Raises:
        GrammarError: no text satisfies the grammar, or a terminal is not supported.
        LimitError: a budget is reached, here or later in a step.
    """
    limits = limits or Limits()
    whitespace = Whitespace.policy("bounded") if any(isinstance(part, JsonValue) for part in grammar.embedded()) else None
    return _Compiler(grammar, Machine(whitespace, limits), SymbolTable(special_tokens), limits).run()


def compile_part(grammar: ContextFreeGrammar, machine: Machine, symbols: SymbolTable, limits: Limits) -> tuple[tuple[Element, ...], bool]:
    """A grammar as a part of a larger one: what reads a text of it that is not empty, in `machine`, and whether it may be empty. Raises
    what `compile_cfg` raises."""
    return _Compiler(grammar, machine, symbols, limits).part()


class _Compiler:
    def __init__(self, grammar: ContextFreeGrammar, machine: Machine, symbols: SymbolTable, limits: Limits):
        self._limits = limits
        self._machine = machine
        numbered = number_symbols(grammar, limits)
        self._symbols = symbols
        guards = Guards(limits, breaks=any(isinstance(terminal, SpecialToken) for terminal in numbered.terminals))
        self._readers = [self._reader(terminal, guards) for terminal in numbered.terminals]
        # Positions begin with leaves, so that everything is a fork where a terminal is something else.
        self._by_forks = any(isinstance(terminal, JsonValue) for terminal in numbered.terminals)
        self._forks: dict[Path, int] = {}
        self._settle(numbered)
        self._places = Places(numbered, self._readers, guards, Outcomes(numbered, self._readers, limits))
        self._positions: dict[Position, int] = {}
        self._texts: dict[Leaf, Language | CharAutomaton] = {}
        self._rows: dict[object, int] = {}

    def _reader(self, terminal: Terminal | Lexeme | Embedded, guards: Guards) -> Reader:
        if isinstance(terminal, JsonValue):
            return JsonReader(terminal, guards, self._machine)
        if isinstance(terminal, SpecialToken):
            found = token_ids_of(terminal, self._symbols)
            if not isinstance(found, str):
                return TokenReader(found, guards)
            terminal = Lexeme(pattern=re.escape(found), literal=found, name=repr(found), position=terminal.position)
        return reader_of(terminal, guards, self._limits)

    def _settle(self, grammar: NumberedGrammar) -> None:
        """Tells each reader what can come after its terminal."""
        for reader, terminals in zip(self._readers, following_terminals(grammar), strict=True):
            reader.settle(self._firsts(terminals))

    def _firsts(self, terminals: int) -> Iterator[CharSet]:
        """What each terminal of a bit set can begin with."""
        while terminals:
            lowest = terminals & -terminals
            yield self._readers[lowest.bit_length() - 1].first()
            terminals ^= lowest

    def run(self) -> tuple[Machine, int]:
        sentence = self._places.sentence()
        if sentence is None or not self._by_forks:
            return self._machine, self._machine.start_of_sentence(None if sentence is None else self._position(sentence))
        ways: list[tuple[Element, ...]] = [(self._fork((sentence,)),), *([()] if sentence.skippable else [])]
        return self._machine, self._machine.start_of_fork(self._machine.new_value(ForkParts, ways))

    def part(self) -> tuple[tuple[Element, ...], bool]:
        sentence = self._places.sentence()
        if sentence is None:
            return (), True
        element = self._fork((sentence,)) if self._by_forks else Element(POSITION, self._position(sentence) >> 1)
        return (element,), sentence.skippable

    def _position(self, position: Position) -> int:
        number = self._positions.get(position)
        if number is None:
            number = self._positions[position] = self._machine.new_position(self._parts, position, position.skippable)
        return number

    def _parts(self, position: Position) -> PositionParts:
        alternatives: list[tuple[int, list[int]]] = []
        for leaves, path in self._places.expand(position):
            positions = [self._position(part) for part in path]
            alternatives.extend((element.a, positions) for element in self._leaf_elements(leaves))
        return PositionParts(alternatives)

    # --- with JSON values ------------------------------------------------------------------------------------------

    def _fork(self, path: Path) -> Element:
        """A path of which something must be read."""
        number = self._forks.get(path)
        if number is None:
            number = self._forks[path] = self._machine.new_value(self._fork_parts, path)
        return Element(FORK, number)

    def _fork_parts(self, path: Path) -> ForkParts:
        return ForkParts(self._ways(path))

    def _ways(self, path: Path) -> list[tuple[Element, ...]]:
        """The ways to read a path, with nothing left out that would be nothing: a fork that reads nothing is never pushed."""
        first, later = path[0], path[1:]
        if later:
            return [(self._fork((first,)), *rest) for rest in self._rests(later)] + (self._ways(later) if first.skippable else [])
        return [
            (element, *rest)
            for leaves, after in self._places.expand(first)
            for element in self._leaf_elements(leaves)
            for rest in self._rests(after)
        ]

    def _rests(self, path: Path) -> list[tuple[Element, ...]]:
        """What can come after an element: the path, or nothing if that may be nothing."""
        if not path:
            return [()]
        return [(self._fork(path),), *([()] if all(position.skippable for position in path) else [])]

    # --- leaves ------------------------------------------------------------------------------------------------------

    def _leaf_elements(self, leaves: tuple[Leaf, ...]) -> list[Element]:
        """What begins the leaves; plain languages share one row."""
        readers = dict.fromkeys(self._readers[~leaf.terminal] for leaf in leaves)
        found = [reader.element for reader in readers if isinstance(reader, EmbeddedReader)]
        texts = tuple(leaf for leaf in leaves if not isinstance(self._readers[~leaf.terminal], EmbeddedReader))
        return [*found, *(Element(LEAF, row) for row in self._leaf_rows(texts))]

    def _leaf_rows(self, leaves: tuple[Leaf, ...]) -> list[int]:
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
