"""What is wrong with a grammar as a whole: rules that derive nothing, rules that nothing reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..cancellation import check
from ..errors import GrammarError
from ..limits import Limits
from .horn import closure
from .ir import Alternative, ContextFreeGrammar, Reference, Repeat
from .regular import Folded, fold_symbol, references_of, regular_rules


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Written rules that take no part in any sentence.

    Attributes:
        unproductive: no finite text is derived from them.
        unreachable: the start rule never leads to them.
    """

    unproductive: tuple[str, ...]
    unreachable: tuple[str, ...]


def inspect_grammar(grammar: ContextFreeGrammar, limits: Limits | None = None) -> Findings:
    """Rules that could be left out. Cost: linear in the size of the grammar."""
    productive = productive_in(grammar, limits or Limits())
    reached = _reachable(grammar)
    written = [rule.name for rule in grammar.rules.values() if rule.name == rule.owner]
    return Findings(
        unproductive=tuple(name for name in written if name not in productive.rules),
        unreachable=(*(name for name in written if name not in reached), *grammar.unused),
    )


def check_sentences(grammar: ContextFreeGrammar, limits: Limits) -> None:
    """Raises GrammarError if no finite text satisfies the grammar, naming the rule to blame."""
    productive_in(grammar, limits).check()


@lru_cache(maxsize=4)
def productive_in(grammar: ContextFreeGrammar, limits: Limits) -> Productive:
    """What of a grammar derives some finite text; a grammar is mostly compiled right after it was read."""
    return Productive(grammar, limits)


class Productive:
    """Which rules and alternatives derive some finite text.

    Attributes:
        rules: names of such rules.
        folded: rules that derive a regular language.
    """

    def __init__(self, grammar: ContextFreeGrammar, limits: Limits):
        self.folded: Mapping[str, Folded] = regular_rules(grammar.rules)
        self._grammar = grammar
        self._limits = limits
        self.rules = closure(self._clauses())

    def derives_text(self, alternative: Alternative) -> bool:
        needs = self._needs(alternative)
        return needs is not None and needs <= self.rules

    def check(self) -> None:
        """Raises GrammarError if the start rule derives no finite text."""
        if self._grammar.start not in self.rules:
            rule = self._grammar.rules[self._culprit()]
            raise GrammarError(f"no finite text satisfies the grammar: the rule {rule.owner!r} never ends", position=rule.position)

    def _clauses(self) -> Iterator[tuple[str, set[str]]]:
        for rule in self._grammar.rules.values():
            for alternative in rule.alternatives:
                needs = self._needs(alternative)
                if needs is not None:
                    yield rule.name, needs

    def _needs(self, alternative: Alternative) -> set[str] | None:
        """Rules that must derive some text for the alternative to; None if it cannot."""
        names: set[str] = set()
        check()
        for symbol in alternative:
            if isinstance(symbol, Repeat) and symbol.minimum == 0:
                continue
            folded = fold_symbol(symbol, self.folded)
            if folded is None:
                for reference in references_of(symbol):
                    names.add(reference.name)
            elif folded.literal is None and folded.language.is_empty(self._limits):
                return None
        return names

    def _culprit(self) -> str:
        """Follows what never ends from the start rule, until nothing new is found."""
        name = self._grammar.start
        seen: set[str] = set()
        while True:
            seen.add(name)
            alternatives = self._grammar.rules[name].alternatives
            blocked = [used for alternative in alternatives for used in self._needs(alternative) or () if used not in self.rules]
            fresh = [used for used in blocked if used not in seen]
            if name in blocked or not fresh:
                return name
            name = fresh[0]


def _reachable(grammar: ContextFreeGrammar) -> set[str]:
    seen = {grammar.start}
    stack = [grammar.start]
    while stack:
        for reference in used_by(grammar, stack.pop()):
            if reference.name not in seen:
                seen.add(reference.name)
                stack.append(reference.name)
    return seen


def used_by(grammar: ContextFreeGrammar, name: str) -> Iterator[Reference]:
    """The references in one rule."""
    for alternative in grammar.rules[name].alternatives:
        for symbol in alternative:
            yield from references_of(symbol)
