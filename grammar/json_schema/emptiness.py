"""Whether a node admits any finite value, and which values it has if they are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..limits import Limits
from ..regex import Language
from .keywords import IN_PLACE, KNOWN, REFERENCES
from .nodes import Node, Or, Place, pointer_of
from .plain_values import is_plainly_inhabited
from .shapes import NO_STRING, ArrayShape, ObjectShape, Shapes, StringSet

if TYPE_CHECKING:
    from .expand import Expander

Json = Any


class Emptiness:
    """Decides emptiness for the nodes of one document, memoised.

    Args:
        expander: expands nodes.
        limits: budgets for the strings.
    """

    def __init__(self, expander: Expander, limits: Limits):
        self._expander = expander
        self._limits = limits
        self._inhabited: dict[Node, bool] = {}

    def inhabited(self, node: Node) -> bool:
        """Whether some finite value is in `node`: the least fixed point over what its values must contain."""
        known = self._inhabited.get(node)
        if known is not None:
            return known
        if _is_plain(node):
            self._inhabited[node] = True
            return True
        ways = self._ways(node)
        if [] in ways:
            self._inhabited[node] = True
            return True
        rules = {node: ways}  # node -> alternatives, each the nodes it needs
        stack = [need for way in ways for need in way]
        while stack:
            current = stack.pop()
            if current in rules or current in self._inhabited:
                continue
            ways = rules[current] = self._ways(current)
            stack.extend(need for way in ways for need in way if need not in rules)
            self._expander.steps.spend(sum(map(len, ways), 5))
        self._solve(rules)
        return self._inhabited[node]

    def _solve(self, rules: dict[Node, list[list[Node]]]) -> None:
        """Marks as inhabited what can be derived, and everything else of `rules` as empty (Horn clauses, unit propagation)."""
        waiting: dict[Node, list[tuple[Node, list[int]]]] = {}
        ready: list[Node] = []
        for node, ways in rules.items():
            for way in ways:
                open_needs = [n for n in dict.fromkeys(way) if self._inhabited.get(n) is not True]
                if any(self._inhabited.get(n) is False for n in open_needs):
                    continue
                left = [len(open_needs)]
                if not open_needs:
                    ready.append(node)
                for need in open_needs:
                    waiting.setdefault(need, []).append((node, left))
        true: set[Node] = set()
        while ready:
            node = ready.pop()
            if node in true:
                continue
            true.add(node)
            for head, left in waiting.get(node, ()):
                left[0] -= 1
                if left[0] == 0:
                    ready.append(head)
        for node in rules:
            self._inhabited[node] = node in true

    def _ways(self, node: Node) -> list[list[Node]]:
        """Alternatives of nodes that must be inhabited for the node to be."""
        if isinstance(node, Or):
            return [[]] if any(map(_is_plain, node.parts)) else [[part] for part in node.parts]
        if isinstance(node, Place):
            if is_plainly_inhabited(node.schema):
                return [[]]
            if _ASSERTING.isdisjoint(node.schema):
                applied = self._expander.applied(node)
                if len(applied) == 1:
                    return [[applied[0]]]
        shapes = self._expander.expand(node)
        if self.has_scalar(shapes):
            return [[]]
        return self.needs(shapes.arrays, shapes.objects)

    def needs(self, arrays: Sequence[ArrayShape], objects: Sequence[ObjectShape]) -> list[list[Node]]:
        """Alternatives of nodes that must be inhabited for one of the shapes to have a value."""
        from .arrays import array_needs
        from .object_needs import object_needs

        ways = [way for shape in arrays for way in array_needs(self._expander, shape)]
        return ways + [way for shape in objects for way in object_needs(self._expander, shape)]

    def may_have_scalar(self, shapes: Shapes) -> bool:
        """As `has_scalar`, and where formats are not known exactly also if there may be one."""
        strings = shapes.string
        if strings.language is not None and not strings.language.is_exact:
            shapes = replace(shapes, string=replace(strings, language=strings.language.outer))
        return self.has_scalar(shapes)

    def has_scalar(self, shapes: Shapes) -> bool:
        if shapes.literals or not shapes.number.is_empty(self._limits):
            return True
        return self.has_string(shapes.string)

    def has_string(self, strings: StringSet) -> bool:
        if strings == NO_STRING:
            return False
        return strings.language is None or not strings.to_language().is_empty(self._limits)

    def finite_values(self, node: Node, cap: int) -> tuple[Node, ...] | None:
        """The constants that `node` consists of, None if it has arrays, objects or more than `cap` values."""
        shapes = self._expander.expand(node)
        if shapes.arrays or shapes.objects:
            return None
        strings: Sequence[str] | None = ()
        if self.has_string(shapes.string):
            strings = strings_in(shapes.string, cap, self._limits)
        numbers = (shapes.number.plain | shapes.number.other).values(cap)
        if strings is None or numbers is None:
            return None
        values: list[Json] = [_LITERAL_VALUES[word] for word in sorted(shapes.literals)]
        values += [*strings, *numbers]
        return tuple(self._expander.nodes.constant(v, pointer_of(node)) for v in values) if len(values) <= cap else None


_ASSERTING = KNOWN - {*REFERENCES, *IN_PLACE}


def _is_plain(node: Node) -> bool:
    return isinstance(node, Place) and is_plainly_inhabited(node.schema)


_LITERAL_VALUES = {"null": None, "true": True, "false": False}


def strings_in(strings: StringSet, cap: int, limits: Limits) -> list[str] | None:
    """All of some strings, sorted, if there are at most `cap` of them, which is less than there are characters; else None."""
    if strings.language is None and strings.high != 0:
        return None
    return members(strings.to_language(), cap, limits)


def members(language: Language, cap: int, limits: Limits) -> list[str] | None:
    """All strings of a language with at most `cap` of them, sorted, else None."""
    words = language.words()
    if words is not None:
        return list(words) if len(words) <= cap else None
    automaton = language.automaton(limits)
    if automaton.tail_count(automaton.start, cap) is None:
        return None
    found: list[str] = []
    stack = [(automaton.start, "")]
    while stack:
        q, text = stack.pop()
        if automaton.accepting(q):
            found.append(text)
        for lo, hi, target in automaton.edges(q):
            stack.extend((target, text + chr(c)) for c in range(lo, hi + 1))
    return sorted(found)
