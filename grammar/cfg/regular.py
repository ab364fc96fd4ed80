"""Folding: whatever derives a regular language becomes one terminal, so that a leaf automaton reads it without a stack."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import GrammarError
from ..regex import Language
from .ir import Alternative, Difference, JsonValue, Lexeme, Reference, Repeat, Rule, SpecialToken, Symbol, Terminal

# Characters and operators of one folded terminal, and how deep they are nested. More is left to the stack: doubling stays small, and
# so does the work for one state of the terminal.
_MAX_SIZE = 1024
_MAX_DEPTH = 32
_MAX_COUNTS = 1024  # combinations of the counters of nested repetitions

_OPAQUE = (Lexeme, SpecialToken, JsonValue)


class Folded(NamedTuple):
    """A regular language as a terminal, how much was written for it, how deep it is nested, and how many combinations of counters its
    bounded repetitions have."""

    terminal: Terminal
    size: int
    depth: int = 0
    counts: int = 1

    @property
    def literal(self) -> str | None:
        return self.terminal.literal

    @property
    def language(self) -> Language:
        return self.terminal.language


_EMPTY_TEXT = Folded(Terminal(literal=""), 1)
_NOTHING = Folded(Terminal(texts=Language.nothing()), 1)


def regular_rules(rules: Mapping[str, Rule]) -> dict[str, Folded]:
    """Rules that only use terminals and other such rules. Cost: linear in the size of the grammar.

    Raises:
        GrammarError: a difference of symbols that are not regular.
    """
    waiting: dict[str, list[str]] = {}
    missing: dict[str, int] = {}
    ready: deque[str] = deque()
    for rule in rules.values():
        used = {ref.name for alternative in rule.alternatives for symbol in alternative for ref in references_of(symbol)}
        missing[rule.name] = len(used)
        for name in used:
            waiting.setdefault(name, []).append(rule.name)
        if not used:
            ready.append(rule.name)
    folded: dict[str, Folded] = {}
    while ready:
        name = ready.popleft()
        result = _fold_rule(rules[name], folded)
        if result is None:
            continue
        folded[name] = result
        for other in waiting.get(name, ()):
            missing[other] -= 1
            if missing[other] == 0:
                ready.append(other)
    return folded


def references_of(symbol: Symbol) -> list[Reference]:
    """The references inside one symbol."""
    if isinstance(symbol, Repeat):
        symbol = symbol.symbol
    if isinstance(symbol, Reference):
        return [symbol]
    return [part for part in (symbol.whole, symbol.removed) if isinstance(part, Reference)] if isinstance(symbol, Difference) else []


def fold_symbol(symbol: Symbol, folded: Mapping[str, Folded]) -> Folded | None:
    """The language of one symbol, None if it is not known to be regular.

    Raises:
        GrammarError: a difference of symbols that are not regular.
    """
    if isinstance(symbol, _OPAQUE):
        return None
    if isinstance(symbol, Terminal):
        return Folded(symbol, 1 if symbol.literal is None else 1 + len(symbol.literal))
    if isinstance(symbol, Reference):
        return folded.get(symbol.name)
    if isinstance(symbol, Difference):
        whole, removed = fold_symbol(symbol.whole, folded), fold_symbol(symbol.removed, folded)
        if whole is None or removed is None:
            raise GrammarError("a difference needs regular parts, without recursion and not too large", position=symbol.position)
        parts = [whole, removed]
        return Folded(Terminal(texts=whole.language - removed.language), size_of(parts), _depth_above(parts), _counts_of(parts))
    body = fold_symbol(symbol.symbol, folded)
    if body is None:
        return None
    counts = body.counts * max(symbol.minimum if symbol.maximum is None else symbol.maximum, 1)
    if body.counts > 1 and counts > _MAX_COUNTS:
        return None
    return Folded(Terminal(texts=body.language.repeat(symbol.minimum, symbol.maximum)), body.size + 1, body.depth + 1, counts)


def join(parts: list[Folded]) -> Folded:
    """One after another."""
    if not parts:
        return _EMPTY_TEXT
    if len(parts) == 1:
        return parts[0]
    size = size_of(parts)
    texts = [part.literal for part in parts if part.literal is not None]
    if len(texts) == len(parts):
        return Folded(Terminal(literal="".join(texts)), size)
    language = parts[0].language.concat(*(part.language for part in parts[1:]))
    return Folded(Terminal(texts=language), size, _depth_above(parts), _counts_of(parts))


def unite(parts: list[Folded]) -> Folded:
    """Any one of several."""
    if len(parts) == 1:
        return parts[0]
    texts = [part.literal for part in parts if part.literal is not None]
    others = [part.language for part in parts if part.literal is None]
    language = Language.union([*([Language.literals(texts)] if texts else []), *others])
    return Folded(Terminal(texts=language), size_of(parts), _depth_above(parts), _counts_of(parts))


def fits(size: int) -> bool:
    """Whether something of this size is small enough for one terminal."""
    return size <= _MAX_SIZE


def _depth_above(parts: list[Folded]) -> int:
    return 1 + max(part.depth for part in parts)


def _counts_of(parts: list[Folded]) -> int:
    return max(part.counts for part in parts)


def size_of(parts: list[Folded]) -> int:
    return sum(part.size for part in parts)


def _fold_rule(rule: Rule, folded: Mapping[str, Folded]) -> Folded | None:
    alternatives: list[Folded] = []
    for alternative in rule.alternatives:
        parts = _fold_all(alternative, folded)
        if parts is None or not fits(size_of(parts)) or any(part.depth >= _MAX_DEPTH for part in parts):
            return None
        alternatives.append(join(parts))
    # A list of words is a table, however long; anything else has to stay small.
    if not fits(size_of(alternatives)) and any(part.literal is None for part in alternatives):
        return None
    return unite(alternatives) if alternatives else _NOTHING


def _fold_all(alternative: Alternative, folded: Mapping[str, Folded]) -> list[Folded] | None:
    parts = [fold_symbol(symbol, folded) for symbol in alternative]
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else None
