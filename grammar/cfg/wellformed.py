"""What is wrong with a grammar as a whole: rules that derive nothing, rules that nothing reaches."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ..errors import GrammarError
from .ir import Alternative, ContextFreeGrammar, Difference, Reference, Repeat, Symbol, Terminal


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Written rules that take no part in any sentence.

    Attributes:
        unproductive: no finite text is derived from them.
        unreachable: the start rule never leads to them.
    """

    unproductive: tuple[str, ...]
    unreachable: tuple[str, ...]


def inspect_grammar(grammar: ContextFreeGrammar) -> Findings:
    """Rules that could be left out. Cost: linear in the size of the grammar."""
    productive = productive_rules(grammar)
    reached = _reachable(grammar)
    written = [rule.name for rule in grammar.rules.values() if rule.name == rule.owner]
    return Findings(
        unproductive=tuple(name for name in written if name not in productive),
        unreachable=tuple(name for name in written if name not in reached),
    )


def check_sentences(grammar: ContextFreeGrammar) -> None:
    """Raises GrammarError if no finite text satisfies the grammar, naming the rule to blame."""
    productive = productive_rules(grammar)
    if grammar.start in productive:
        return
    rule = grammar.rules[_culprit(grammar, productive)]
    raise GrammarError(f"no finite text satisfies the grammar: the rule {rule.owner!r} never ends", position=rule.position)


def productive_rules(grammar: ContextFreeGrammar) -> set[str]:
    """Names of the rules that derive some finite text."""
    waiting: dict[str, list[_Open]] = {}
    done: set[str] = set()
    ready: deque[str] = deque()
    for rule in grammar.rules.values():
        for alternative in rule.alternatives:
            needs = _needs(alternative)
            if needs is None:
                continue
            entry = _Open(rule.name, len(needs))
            for name in needs:
                waiting.setdefault(name, []).append(entry)
            if not needs:
                ready.append(rule.name)
    while ready:
        name = ready.popleft()
        if name in done:
            continue
        done.add(name)
        for entry in waiting.pop(name, ()):
            entry.missing -= 1
            if entry.missing == 0:
                ready.append(entry.rule)
    return done


@dataclass
class _Open:
    """An alternative of `rule` of which `missing` rules are not known to be productive."""

    rule: str
    missing: int


def _needs(alternative: Alternative) -> set[str] | None:
    """Rules that must be productive for the alternative to be; None if it cannot be."""
    names: set[str] = set()
    for symbol in alternative:
        if isinstance(symbol, Repeat):
            if symbol.minimum == 0:
                continue
            symbol = symbol.symbol
        if isinstance(symbol, Reference):
            names.add(symbol.name)
        elif isinstance(symbol, Difference):
            names.update(part.name for part in (symbol.whole, symbol.removed) if isinstance(part, Reference))
        elif isinstance(symbol, Terminal) and symbol.literal is None and symbol.language.is_empty():
            return None
    return names


def _culprit(grammar: ContextFreeGrammar, productive: set[str]) -> str:
    """Follows rules that never end from the start rule until one is seen again, or all it needs is there."""
    name = grammar.start
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        blocked = [used for alternative in grammar.rules[name].alternatives for used in _needs(alternative) or () if used not in productive]
        if name in blocked or not blocked:
            return name
        name = next((used for used in blocked if used not in seen), name)
    return name


def _reachable(grammar: ContextFreeGrammar) -> set[str]:
    seen = {grammar.start}
    stack = [grammar.start]
    while stack:
        for alternative in grammar.rules[stack.pop()].alternatives:
            for symbol in alternative:
                for reference in references_of(symbol):
                    if reference.name not in seen:
                        seen.add(reference.name)
                        stack.append(reference.name)
    return seen


def references_of(symbol: Symbol) -> list[Reference]:
    """The references inside one symbol."""
    if isinstance(symbol, Repeat):
        symbol = symbol.symbol
    parts = (symbol.whole, symbol.removed) if isinstance(symbol, Difference) else (symbol,)
    return [part for part in parts if isinstance(part, Reference)]
