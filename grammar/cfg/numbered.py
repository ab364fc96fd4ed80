"""A grammar in numbers: productions over small ints, without alternatives that derive nothing.

A symbol is an int: a nonterminal n >= 0, or a terminal t as ~t. Repetitions are nonterminals made when they are asked for, one for
each count that is left, so that `x{0,3000}` costs nothing before a text gets there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..errors import LimitError
from ..limits import Limits
from .horn import closure
from .ir import Alternative, Atom, ContextFreeGrammar, Embedded, Lexeme, Reference, Repeat, Rule, Symbol, Terminal
from .regular import Folded, fits, fold_symbol, join, size_of, unite
from .wellformed import productive_in

Production = tuple[int, ...]

_MAX_LENGTH = 32


class _Repetition(NamedTuple):
    body: int
    low: int
    high: int | None


class NumberedGrammar:
    """Productions by number.

    Attributes:
        terminals: by number; none of them is empty.
        start: the symbol of the whole sentence, None if that is the empty text only.
    """

    def __init__(self, limits: Limits):
        self.terminals: list[Terminal | Lexeme | Embedded] = []
        self.start: int | None = None
        self._limits = limits
        self._terminal_nullable: list[bool] = []
        self._terminal_numbers: dict[object, int] = {}
        self._productions: list[tuple[Production, ...] | None] = []
        self._nullable: list[bool] = []
        self._repetitions: dict[_Repetition, int] = {}
        self._repetition_of: dict[int, _Repetition] = {}

    def is_repetition(self, symbol: int) -> bool:
        return symbol in self._repetition_of

    def productions(self, symbol: int) -> tuple[Production, ...]:
        """The right sides of a nonterminal."""
        found = self._productions[symbol]
        if found is None:
            found = self._productions[symbol] = self._repetition_productions(self._repetition_of[symbol])
        return found

    @property
    def num_symbols(self) -> int:
        """Number of nonterminals made so far."""
        return len(self._productions)

    def rules(self) -> Iterator[tuple[int, Production, bool]]:
        """Nonterminals with one right side each, and whether that can come several times over: repetitions are not written out."""
        for head, productions in enumerate(self._productions):
            repetition = self._repetition_of.get(head)
            if repetition is not None:
                yield head, (repetition.body,), repetition.high != 1
            else:
                for production in productions or ():
                    yield head, production, False

    def nullable(self, symbol: int) -> bool:
        """Whether the symbol derives the empty text."""
        return self._terminal_nullable[~symbol] if symbol < 0 else self._nullable[symbol]

    # Making.

    def terminal(self, terminal: Terminal | Lexeme | Embedded) -> int:
        """The symbol of a terminal; equal terminals are one."""
        key = terminal.pattern if isinstance(terminal, Lexeme) else terminal.language if isinstance(terminal, Terminal) else terminal
        symbol = self._terminal_numbers.get(key)
        if symbol is None:
            symbol = self._terminal_numbers[key] = ~len(self.terminals)
            self.terminals.append(terminal)
            self._terminal_nullable.append(isinstance(terminal, Terminal) and terminal.language.matches(""))
        return symbol

    def add(self, productions: tuple[Production, ...] | None = ()) -> int:
        """A new nonterminal."""
        if len(self._productions) >= self._limits.max_nodes:
            raise LimitError(f"the grammar needs more than {self._limits.max_nodes} symbols (max_nodes)")
        self._productions.append(productions)
        self._nullable.append(False)
        return len(self._productions) - 1

    def define(self, symbol: int, productions: tuple[Production, ...]) -> None:
        self._productions[symbol] = productions

    def repetition(self, body: int, low: int, high: int | None) -> int | None:
        """The symbol of `low` to `high` times `body`; None for the empty text."""
        if high == 0:
            return None
        if (low, high) == (1, 1):
            return body
        key = _Repetition(body, low, high)
        symbol = self._repetitions.get(key)
        if symbol is None:
            symbol = self._repetitions[key] = self.add(None)
            self._repetition_of[symbol] = key
            self._nullable[symbol] = low == 0 or self.nullable(body)
        return symbol

    def _repetition_productions(self, repetition: _Repetition) -> tuple[Production, ...]:
        body, low, high = repetition
        if self.nullable(body):
            low = 0
        rest = self.repetition(body, max(low - 1, 0), None if high is None else high - 1)
        once = (body,) if rest is None else (body, rest)
        return (once,) if low else ((), once)

    def find_nullable(self) -> None:
        """Decides what is nullable, once all rules are defined."""
        for symbol in closure(self._empty_ways()):
            self._nullable[symbol] = True

    def _empty_ways(self) -> Iterator[tuple[int, set[int]]]:
        """Each nonterminal with what must be nullable for it to be nullable."""
        for head, productions in enumerate(self._productions):
            repetition = self._repetition_of.get(head)
            if repetition is not None:
                productions = ((),) if repetition.low == 0 else ((repetition.body,),)
            for production in productions or ():
                if all(symbol >= 0 or self._terminal_nullable[~symbol] for symbol in production):
                    yield head, {symbol for symbol in production if symbol >= 0}


def number_symbols(grammar: ContextFreeGrammar, limits: Limits) -> NumberedGrammar:
    """Folds, prunes and numbers a grammar. Cost: linear in its size.

    Raises:
        GrammarError: no finite text satisfies the grammar, or a difference of symbols that are not regular.
    """
    return _Numbering(grammar, limits).run()


class _Numbering:
    def __init__(self, grammar: ContextFreeGrammar, limits: Limits):
        self._grammar = grammar
        self._result = NumberedGrammar(limits)
        self._productive = productive_in(grammar, limits)
        self._folded = self._productive.folded
        self._numbers: dict[str, int] = {}
        self._padded: dict[int, int] = {}
        self._todo: list[Rule] = []
        self._ignore: int | None = None

    def run(self) -> NumberedGrammar:
        self._productive.check()
        result = self._result
        self._ignore = self._ignored_text()
        first = self._rule(self._grammar.start)
        while self._todo:
            rule = self._todo.pop()
            result.define(self._numbers[rule.name], self._productions(rule))
        if first is None or self._ignore is None:
            result.start = self._ignore if first is None else first
        else:
            result.start = result.add(((first, self._ignore),))
        result.find_nullable()
        return result

    def _ignored_text(self) -> int | None:
        symbols = list(dict.fromkeys(self._result.terminal(lexeme) for lexeme in self._grammar.ignored))
        if not symbols:
            return None
        body = symbols[0] if len(symbols) == 1 else self._result.add(tuple((symbol,) for symbol in symbols))
        return self._result.repetition(body, 0, None)

    def _productions(self, rule: Rule) -> tuple[Production, ...]:
        productions: dict[Production, None] = {}
        regular: list[Folded] = []
        for alternative in rule.alternatives:
            if not self._productive.derives_text(alternative):
                continue
            folded = [found for symbol in alternative if (found := fold_symbol(symbol, self._folded)) is not None]
            if len(folded) == len(alternative) and fits(size_of(folded)):
                regular.append(join(folded))
            else:
                productions[self._shortened(self._production(alternative))] = None
        if regular:
            productions[self._regular(unite(regular))] = None
        return tuple(productions)

    def _shortened(self, production: Production) -> Production:
        """A production of bounded length: the end of a long one is a nonterminal of its own, so that a place in it stays small."""
        if len(production) <= _MAX_LENGTH:
            return production
        step = _MAX_LENGTH - 1
        cut = (len(production) - 1) // step * step
        end = production[cut:]
        for start in range(cut - step, -1, -step):
            end = (*production[start : start + step], self._result.add((end,)))
        return end

    def _production(self, alternative: Alternative) -> Production:
        symbols: list[int] = []
        run: list[Folded] = []  # regular symbols side by side become one terminal
        size = 0
        for symbol in alternative:
            folded = fold_symbol(symbol, self._folded)
            if run and (folded is None or not fits(size + folded.size)):
                symbols.extend(self._regular(join(run)))
                run, size = [], 0
            if folded is not None:
                run.append(folded)
                size += folded.size
            else:
                symbols.extend(self._irregular(symbol))
        if run:
            symbols.extend(self._regular(join(run)))
        return tuple(symbols)

    def _regular(self, folded: Folded) -> Production:
        return () if folded.literal == "" else (self._result.terminal(folded.terminal),)

    def _irregular(self, symbol: Symbol) -> Production:
        if isinstance(symbol, Repeat):
            body = self._body(symbol.symbol)
            number = None if body is None else self._result.repetition(body, symbol.minimum, symbol.maximum)
        else:
            assert isinstance(symbol, Lexeme | Embedded | Reference)
            number = self._atom(symbol)
            if not isinstance(symbol, Reference) and self._ignore is not None and number is not None:
                return (self._ignore, number)
        return () if number is None else (number,)

    def _atom(self, atom: Atom) -> int | None:
        return self._rule(atom.name) if isinstance(atom, Reference) else self._result.terminal(atom)

    def _body(self, atom: Atom) -> int | None:
        """What is repeated, with the ignored text that may stand before it; None if it derives at most the empty text."""
        if not self._productive.derives_text((atom,)):
            return None
        number = self._atom(atom)
        if number is None or isinstance(atom, Reference) or self._ignore is None:
            return number
        if number not in self._padded:
            self._padded[number] = self._result.add(((self._ignore, number),))
        return self._padded[number]

    def _rule(self, name: str) -> int | None:
        """The symbol of a rule, None if it derives the empty text only."""
        folded = self._folded.get(name)
        if folded is not None:
            return next(iter(self._regular(folded)), None)
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self._result.add()
            self._todo.append(self._grammar.rules[name])
        return number
