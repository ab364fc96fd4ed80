"""Which members or items a schema place evaluates, so that `unevaluatedProperties` and `unevaluatedItems` know the rest.

What is evaluated depends on which in-place applicators hold for the value (core 2020-12 section 11). A place is therefore split into
*ways* to satisfy it, each with what is surely evaluated there. The ways together are the place, and whatever a value has evaluated is
evaluated by one of the ways it is in. So a value satisfies the place with the unevaluated rest in `U` exactly when for some of its ways
all that the way leaves is in `U`; what does *not* hold never has to be said.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ..errors import GrammarError, LimitError
from ..regex import Language
from .applicators import Always, AnyOf, Applicator, Conditional, Dependent, Never, OneOf, applicators
from .interior import Interior
from .nodes import EVERYTHING, NOTHING, Asserted, Node, Nodes, Place
from .pointers import Pointer
from .shapes import Shapes

MAX_WAYS = 500  # ways to satisfy one place that evaluate different things


class Kind(Enum):
    """What is evaluated; the value is the keyword for the rest."""

    PROPERTIES = "unevaluatedProperties"
    ITEMS = "unevaluatedItems"


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A set of members or of items.

    Attributes:
        parts: names of members, languages of names, indices of items, schemas of items.
        everything: all of them; `parts` is empty then.
    """

    parts: frozenset[str | Language | int | Node] = frozenset()
    everything: bool = False

    def __or__(self, other: Evaluated) -> Evaluated:
        if self.everything or other.everything:
            return _EVERYTHING
        return Evaluated(self.parts | other.parts)

    def __le__(self, other: Evaluated) -> bool:
        return other.everything or (not self.everything and self.parts <= other.parts)

    def __sub__(self, other: Evaluated) -> Evaluated:
        """Leaves out at most what `other` has."""
        if self.everything or other.everything:
            return _NOTHING if other.everything else self
        patterns = other.patterns
        rest = (part for part in self.parts - other.parts if not (isinstance(part, str) and any(p.matches(part) for p in patterns)))
        return Evaluated(frozenset(rest))

    @property
    def names(self) -> list[str]:
        return sorted(part for part in self.parts if isinstance(part, str))

    @property
    def patterns(self) -> list[Language]:
        return [part for part in self.parts if isinstance(part, Language)]

    @property
    def prefix(self) -> int:
        """How many items from the first on are evaluated by their index."""
        return sum(isinstance(part, int) for part in self.parts)

    @property
    def schemas(self) -> list[Node]:
        return [part for part in self.parts if isinstance(part, Node)]


_NOTHING = Evaluated()
_EVERYTHING = Evaluated(everything=True)


class Way(NamedTuple):
    """Values in all of `nodes`, which evaluate (at least) `evaluated`."""

    nodes: frozenset[Node]
    evaluated: Evaluated


_FREE = Way(frozenset(), _NOTHING)

# (kind, nodes) -> generator of nodes to expand that tells whether some object or array may be in all of them
Overlap = Callable[[Kind, tuple[Node, ...]], Generator[Node, Shapes, bool]]
Ways = Generator[Node, Shapes, list[Way]]


def evaluated_here(inside: Interior, kind: Kind, *, rest: bool) -> Evaluated:
    """What the keywords of one place evaluate themselves.

    Args:
        inside: the place.
        kind: members or items.
        rest: whether the keyword for the unevaluated rest counts.
    """
    if inside.only_ref:
        return _NOTHING
    if rest and inside.has(kind.value):
        return _EVERYTHING
    return _members(inside) if kind is Kind.PROPERTIES else _items(inside)


def _members(inside: Interior) -> Evaluated:
    schema = inside.schema
    if "additionalProperties" in schema:
        return _EVERYTHING
    patterns = (Language.pattern(text, "ecma", "search") for text in schema.get("patternProperties", ()))
    return Evaluated(frozenset((*schema.get("properties", ()), *patterns)))


def _items(inside: Interior) -> Evaluated:
    schema = inside.schema
    items = schema.get("items")
    prefix = len(items) if isinstance(items, list) else 0
    if (items is not None and not isinstance(items, list)) or (prefix and inside.has("additionalItems")):
        return _EVERYTHING
    if inside.has("prefixItems"):
        prefix = max(prefix, len(schema["prefixItems"]))
    matched: tuple[Node, ...] = ()
    if inside.has("contains") and inside.draft.contains_evaluates:
        node = inside.sub("contains")
        if node is EVERYTHING:
            return _EVERYTHING
        matched = (node,)
    return Evaluated(frozenset((*range(prefix), *matched)))


class Evaluation:
    """Splits places into ways.

    Args:
        nodes: makes expressions.
        inside: gives the interior of a place.
        overlap: see `Overlap`.
    """

    def __init__(self, nodes: Nodes, inside: Callable[[Place], Interior], overlap: Overlap):
        self._nodes = nodes
        self._inside = inside
        self._overlap = overlap
        self._known: dict[tuple[Place, Kind], list[Way]] = {}

    def ways(self, place: Place, kind: Kind) -> Ways:
        """The ways to satisfy `place` apart from its own unevaluated keyword; one way, of the place itself, when nothing depends.

        Raises:
            GrammarError: the place applies itself to the same value.
            LimitError: more than MAX_WAYS.
        """
        found = self._known.get((place, kind))
        if found is None:
            found = self._known[place, kind] = yield from self._split(place, kind)
        return found

    def _split(self, root: Place, kind: Kind) -> Ways:
        certain = self._certain(root, kind)
        if certain.everything:
            return [Way(frozenset({root}), certain)]
        done: dict[Node, list[Way]] = {EVERYTHING: [_FREE], NOTHING: []}
        opened: set[Node] = set()
        stack: list[Node] = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            assert isinstance(node, Place), "subschemas are places, or constants done above"
            inside = self._inside(node)
            own = evaluated_here(inside, kind, rest=node is not root) - certain
            applied = [] if own.everything else applicators(inside)
            waiting = [part for a in applied for part in a.parts if part not in done]
            if any(part in opened for part in waiting):
                raise GrammarError("the schema refers to itself without passing a property or an item", pointer=node.pointer)
            if waiting:
                opened.add(node)
                stack.extend(waiting)
            else:
                done[node] = yield from self._place(node, kind, own, applied, done)
        return [Way(way.nodes, way.evaluated | certain) for way in done[root]]

    def _certain(self, root: Place, kind: Kind) -> Evaluated:
        """What is evaluated whichever way."""
        evaluated, seen, stack = _NOTHING, set[Node](), [root]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            inside = self._inside(node)
            evaluated |= evaluated_here(inside, kind, rest=node is not root)
            stack.extend(a.part for a in applicators(inside) if isinstance(a, Always) and isinstance(a.part, Place))
        return evaluated

    def _place(self, place: Place, kind: Kind, own: Evaluated, applied: list[Applicator], done: dict[Node, list[Way]]) -> Ways:
        context = self._nodes.asserted(place)
        ways = [Way(frozenset({context}), own)]
        for applicator in applied:
            ways = _product(ways, (yield from self._applicator(applicator, kind, context, done)), place.pointer)
        return _merged(ways, place)

    def _applicator(self, applicator: Applicator, kind: Kind, context: Asserted, done: dict[Node, list[Way]]) -> Ways:
        nodes, pointer = self._nodes, context.place.pointer
        if isinstance(applicator, Always):
            return done[applicator.part]
        ways: list[Way] = []
        if isinstance(applicator, AnyOf):
            ways = yield from self._any_of([way for part in applicator.parts for way in done[part]], kind, context)
        elif isinstance(applicator, OneOf):
            parts = applicator.parts
            for i, part in enumerate(parts):
                others = parts[:i] + parts[i + 1 :]
                ways.extend(Way(frozenset({nodes.sole(nodes.all_of(w.nodes), others)}), w.evaluated) for w in done[part])
        elif isinstance(applicator, Conditional):
            ways = _product(done[applicator.condition], done[applicator.then], pointer)
            unmet = Way(frozenset({nodes.negation(applicator.condition)}), _NOTHING)
            ways = ways + _product([unmet], done[applicator.otherwise], pointer)
        elif isinstance(applicator, Dependent):
            absent = Way(frozenset({nodes.negation(applicator.present)}), _NOTHING)
            present = Way(frozenset({applicator.present}), _NOTHING)
            ways = [absent, *_product([present], done[applicator.part], pointer)]
        else:
            assert isinstance(applicator, Never)
            ways = [_FREE]
        return _merged(ways, applicator.meaning(nodes))

    def _any_of(self, branches: Iterable[Way], kind: Kind, context: Asserted) -> Ways:
        """A way for each set of branches that may hold together, but for sets that evaluate no more than a smaller one."""
        nodes, pointer = self._nodes, context.place.pointer
        alike: dict[Evaluated, list[Node]] = {}
        for way in branches:
            alike.setdefault(way.evaluated, []).append(nodes.all_of(way.nodes))
        options = [Way(frozenset({nodes.any_of(same)}) - {EVERYTHING}, evaluated) for evaluated, same in alike.items()]
        if len(options) > MAX_WAYS:
            raise _too_many(pointer)
        chosen: list[tuple[Way, frozenset[int]]] = [(_FREE, frozenset())]
        for i, option in enumerate(options):
            together: set[int] = set()
            for j in range(i):
                if (yield from self._overlap(kind, (context, *option.nodes, *options[j].nodes))):
                    together.add(j)
            for way, members in tuple(chosen):
                adds = not members or not option.evaluated <= way.evaluated
                if adds and members <= together and not any(options[j].evaluated <= option.evaluated for j in members):
                    chosen.append((Way(way.nodes | option.nodes, way.evaluated | option.evaluated), members | {i}))
            if len(chosen) > MAX_WAYS:
                raise _too_many(pointer)
        return [way for way, members in chosen if members]


def _product(left: list[Way], right: list[Way], pointer: Pointer) -> list[Way]:
    if len(left) * len(right) > 2 * MAX_WAYS:  # some may turn out to be dominated
        raise _too_many(pointer)
    met = dict.fromkeys(Way(a.nodes | b.nodes, a.evaluated | b.evaluated) for a in left for b in right)
    ways = [way for way in met if NOTHING not in way.nodes]
    if len(left) > 1 and len(right) > 1:
        ways = [way for way in ways if not any(_dominates(other, way) for other in ways)]
    if len(ways) > MAX_WAYS:
        raise _too_many(pointer)
    return ways


def _dominates(a: Way, b: Way) -> bool:
    """Whether every value of `b` is another one of `a`, which evaluates as much."""
    return a is not b and a.nodes <= b.nodes and b.evaluated <= a.evaluated


def _merged(ways: list[Way], whole: Node) -> list[Way]:
    """One way of the whole when all of its ways evaluate the same."""
    if ways and all(way.evaluated == ways[0].evaluated for way in ways):
        return [Way(frozenset({whole}) - {EVERYTHING}, ways[0].evaluated)]
    return ways


def _too_many(pointer: Pointer) -> LimitError:
    return LimitError(f"there are more than {MAX_WAYS} ways to evaluate different members or items", pointer=pointer)
