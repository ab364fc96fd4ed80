"""Sets of strings, closed under union, intersection, complement and concatenation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Literal

from ..errors import GrammarError
from ..languages import Recognizer
from ..limits import Limits
from . import nodes
from .automaton import RegexAutomaton
from .budget import Budget
from .charset import CharSet, Range
from .derivative import locate, row
from .emptiness import is_live
from .nodes import Node
from .translate import pattern_node

Dialect = Literal["ecma", "python"]
Mode = Literal["full", "search"]

_DEFAULT_LIMITS = Limits()


class Language:
    """An immutable set of strings over Unicode scalar values (a string with a surrogate is in no language).

    Two languages are equal if they are the same expression; equal sets may be written as different expressions.
    Making and combining languages is cheap: nothing is explored before `matches`, `is_empty` or an automaton asks.

    A set that can't be had exactly is an inner one, which is meant everywhere, and an outer one that holds all that may be in the set:
    complements are those of the outer one.
    """

    __slots__ = ("_node", "_outer")

    def __init__(self, node: Node, outer: Node | None = None):
        self._node = node
        self._outer = node if outer is None else outer

    @classmethod
    def pattern(cls, text: str, dialect: Dialect = "ecma", mode: Mode = "full", limits: Limits = _DEFAULT_LIMITS) -> Language:
        """The strings that a regular expression matches.

        Args:
            text: the pattern, without delimiters.
            dialect: "ecma" is ECMA-262 with the flag `u` (JSON Schema `pattern`), "python" the module `re`.
            mode: "full" matches the whole string, "search" any place in it.
            limits: budgets for reading the pattern.

        Raises:
            GrammarError: with the position, if the pattern is malformed or has no exact translation.
            LimitError: if it is larger than `limits` allow.
        """
        make = pattern_node if len(text) > _SHORT else _short_pattern_node
        return cls(make(text, dialect, mode, limits))

    @classmethod
    def literal(cls, text: str) -> Language:
        """Exactly one string."""
        return cls(nodes.word(_checked(text)))

    @classmethod
    def literals(cls, texts: Iterable[str]) -> Language:
        """Exactly the given strings. Cost: one sort; the trie is walked, never built."""
        return cls(nodes.words([_checked(text) for text in texts]))

    @classmethod
    def chars(cls, ranges: Iterable[Range]) -> Language:
        """One character out of inclusive code point `ranges`."""
        return cls(nodes.chars(CharSet.of(ranges)))

    @classmethod
    def recognized(cls, recognizer: Recognizer) -> Language:
        """What a recognizer accepts."""
        return cls(nodes.state(recognizer, recognizer.start))

    @classmethod
    def anything(cls) -> Language:
        """Every string, with or without newlines."""
        return _ANYTHING

    @classmethod
    def nothing(cls) -> Language:
        """No string at all."""
        return _NOTHING

    @classmethod
    def empty_string(cls) -> Language:
        """Only the empty string."""
        return _EMPTY_STRING

    @classmethod
    def length(cls, minimum: int, maximum: int | None) -> Language:
        """Every string of `minimum` to `maximum` code points (None = no upper bound)."""
        return cls(nodes.length(max(minimum, 0), maximum))

    @staticmethod
    def between(inner: Language, outer: Language) -> Language:
        """A set that is not known exactly: all of `inner` is in it, and nothing that is not in `outer`."""
        return Language(inner._node, outer._outer)

    @property
    def outer(self) -> Language:
        """All that may be in the set; the set itself where it is exact."""
        return self if self.is_exact else Language(self._outer)

    @property
    def is_exact(self) -> bool:
        return self._node is self._outer

    def __and__(self, other: Language) -> Language:
        return Language.intersection((self, other))

    def __or__(self, other: Language) -> Language:
        return Language.union((self, other))

    def __invert__(self) -> Language:
        inner = nodes.complement(self._outer)
        return Language(inner) if self.is_exact else Language(inner, nodes.complement(self._node))

    def __sub__(self, other: Language) -> Language:
        return self & ~other

    @staticmethod
    def union(parts: Iterable[Language]) -> Language:
        """The union of any number of languages."""
        return _each(nodes.alt, list(parts))

    @staticmethod
    def intersection(parts: Iterable[Language]) -> Language:
        """The intersection of any number of languages; every string if there is none."""
        return _each(nodes.conj, list(parts))

    def concat(self, *others: Language) -> Language:
        """Strings of this language, each followed by one of the next. Assertions do not look across the seams."""
        return _each(_sequence, [self, *others])

    def repeat(self, minimum: int = 0, maximum: int | None = None) -> Language:
        """`minimum` to `maximum` strings of this language after another."""
        return _each(lambda parts: nodes.rep(_closed(parts[0]), minimum, maximum), [self])

    def is_countable(self, most: int) -> bool:
        """Whether a bound of `most` code points means something, and how many must still come is told without long searches: not in
        conjunctions of many parts, nor in recognizers, which bound themselves."""
        node = self._node
        if node.kind == nodes.KIND_WORDS or (node.max_len is not None and node.max_len <= most):
            return False
        return nodes.are_few_parts(node, _COUNTABLE_PARTS)

    def words(self) -> tuple[str, ...] | None:
        """The strings of the set, sorted, if it is written as a list of them."""
        if self._node.kind != nodes.KIND_WORDS:
            return None
        table, start, end, depth = self._node.words
        return tuple([word[depth:] for word in table.words[start:end]])

    def matches(self, text: str, limits: Limits = _DEFAULT_LIMITS) -> bool:
        """Whether `text` is in the set. Raises LimitError."""
        budget = Budget(limits)
        node = locate(self._node)
        for char in text:
            code_point = ord(char)
            for cell, target in row(node, budget):
                if code_point in cell:
                    node = locate(target)
                    break
            else:
                return False
        return node.nullable

    def is_empty(self, limits: Limits = _DEFAULT_LIMITS) -> bool:
        """Whether no string is in the set, exact. Raises LimitError."""
        return not is_live(locate(self._node), Budget(limits))

    def automaton(self, limits: Limits = _DEFAULT_LIMITS) -> RegexAutomaton:
        """A lazy `CharAutomaton` for the set. Raises LimitError."""
        return RegexAutomaton(self._node, limits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Language) and self._node is other._node and self._outer is other._outer

    def __hash__(self) -> int:
        return hash(self._node.uid)

    def __repr__(self) -> str:
        return f"<Language {self._node.uid}>"


_COUNTABLE_PARTS = 4
_SHORT = 256  # characters of a pattern that is remembered: it is read when a schema is checked, when it is used, and in the next schema
_short_pattern_node = lru_cache(maxsize=512)(pattern_node)


def _each(combine: Callable[[list[Node]], Node], parts: list[Language]) -> Language:
    inner = combine([part._node for part in parts])
    return Language(inner) if all(part.is_exact for part in parts) else Language(inner, combine([part._outer for part in parts]))


def _sequence(parts: list[Node]) -> Node:
    result = nodes.EPSILON
    for part in reversed(parts):
        result = nodes.cat(_closed(part), result)
    return result


def _closed(node: Node) -> Node:
    """`node` as a part that starts anywhere: its lookbehinds see nothing of what stands before it."""
    return nodes.seal(locate(node))


def _checked(text: str) -> str:
    if text.isascii():
        return text
    for position, char in enumerate(text):
        if "\ud800" <= char <= "\udfff":
            raise GrammarError("a string with a lone surrogate is not Unicode text", position=position)
    return text


_ANYTHING = Language(nodes.ANYTHING)
_NOTHING = Language(nodes.EMPTY)
_EMPTY_STRING = Language(nodes.EPSILON)
