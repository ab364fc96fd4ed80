"""Schema expressions to shapes: the boolean combinations.

A conjunction is gathered before it is multiplied: whatever `allOf`, `$ref` and siblings apply to the same value is one list of factors,
the single assertions first and those that branch last, so that what stands beside a branch decides about it. Child schemas (of
properties and items) stay nodes. Expansion runs on an explicit stack of generators, so nesting costs no recursion.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import GrammarError, LimitError
from ..limits import Limits
from ..regex import Language
from .algebra import Algebra
from .applicators import Insides
from .assertions import Assertions
from .document import Document
from .emptiness import Emptiness
from .evaluation import Evaluated, Evaluation, Kind
from .interior import Interior
from .keywords import IN_PLACE, REFERENCES
from .nodes import EVERYTHING, NOTHING, And, Asserted, Constant, Everything, Node, Nodes, Not, One, Or, Place, Sole, pointer_of
from .numbers import NumberSet
from .outline import Kinds, Outlines, Scalars
from .pointers import ROOT
from .shapes import ALL_SHAPES, NO_SHAPES, ArrayShape, Members, Numbers, ObjectShape, Shapes, Step, StringSet
from .steps import Steps

if TYPE_CHECKING:
    from .extent import Extent

Json = Any

_NODES_PER_LEVEL = 4  # expressions that one level of a schema is at most made of
# keywords that speak of the same value, or of what only other nodes tell
_NEEDING = frozenset((*REFERENCES, *IN_PLACE, "propertyNames", *(kind.value for kind in Kind)))
_PLACE_PRICE = 10  # steps for a place of a conjunction


class _Loop(Exception):
    """The expansion of `node` needs the expansion of `node`."""

    def __init__(self, node: Node):
        super().__init__()
        self.node = node


class Expander:
    """Expands nodes of one document, memoised.

    Args:
        document: the schema.
        limits: budgets.

    Attributes:
        renewing: `max_steps` bounds what is expanded at a time, and not all together. So a text that visits many places of a large
            schema does not use up what one place may cost.
    """

    def __init__(self, document: Document, limits: Limits):
        self.renewing = False
        self.document = document
        self.limits = limits
        self.steps = Steps(limits)
        self.nodes = Nodes()
        insides = Insides(document, self.nodes)
        self._inside, self.applied = insides.of, insides.applied
        self.outlines = Outlines(self.nodes, self._inside, self.applied, self.steps)
        self._algebra = Algebra(self.nodes, self.outlines, self.steps)
        self._assertions = Assertions(self.nodes, self._algebra, self.steps)
        # what it is made of does not hold it, so that all of it goes with its last user, without waiting for the collector
        expander = self._weakly = weakref.proxy(self)
        self._evaluation = Evaluation(self.nodes, self._inside, lambda kind, parts: expander._overlap(kind, parts))
        self._emptiness = Emptiness(expander, limits)
        self.inhabited = self._emptiness.inhabited  # whether some finite value is in a node
        self._shapes: dict[Node, Shapes] = {}
        self._open: set[Node] = set()

    @property
    def root(self) -> Node:
        return self.nodes.place(self.document.root, "", ROOT)

    def has_string(self, strings: StringSet) -> bool:
        return self._emptiness.has_string(strings)

    def finite_values(self, node: Node, cap: int) -> tuple[Node, ...] | None:
        """The constants that `node` consists of, None if it has arrays, objects or more than `cap` values."""
        return self._emptiness.finite_values(node, cap)

    @cached_property
    def extent(self) -> Extent:
        """Counts the values of nodes."""
        from .extent import Extent

        return Extent(self._weakly)

    # --- the stack -------------------------------------------------------------------------------------------------

    def expand(self, node: Node) -> Shapes:
        """The shapes of `node`.

        Raises:
            GrammarError: a reference loop that passes no property or item.
            LimitError: more work than `max_steps`, or applicators nested deeper than `max_schema_depth`.
        """
        known = self._shapes.get(node)
        if known is not None:
            return known
        if node in self._open:
            raise _circular(node)
        if self.renewing and not self._open:
            self.steps.renew()
        alone = self._alone(node)
        if alone is not None:
            return alone
        opened = {node}
        self._open.add(node)
        try:
            return self._run([(node, self._start(node))], opened)
        finally:
            self._open -= opened

    def _run(self, stack: list[tuple[Node, Step]], opened: set[Node]) -> Shapes:
        answer: Shapes | None = None
        loop: _Loop | None = None
        while stack:
            current, steps = stack[-1]
            try:
                if loop is not None:
                    wanted, loop = steps.throw(loop), None
                else:
                    wanted = steps.send(answer) if answer is not None else next(steps)
            except StopIteration as stop:
                answer, loop = stop.value, None
                self._shapes[current] = stop.value
                self._open.discard(current)
                stack.pop()
                continue
            except _Loop as error:
                answer, loop = None, error
                self._open.discard(current)
                stack.pop()
                continue
            except GrammarError as error:
                raise error.at(pointer_of(current)) from error
            answer = self._shapes.get(wanted) or self._alone(wanted)
            if answer is None:
                if wanted in self._open:
                    loop = _Loop(wanted)
                    continue
                if len(stack) > _NODES_PER_LEVEL * self.limits.max_schema_depth:
                    reason = f"the combinators are nested deeper than {self.limits.max_schema_depth} (max_schema_depth)"
                    raise LimitError(reason, pointer=pointer_of(wanted))
                opened.add(wanted)
                self._open.add(wanted)
                stack.append((wanted, self._start(wanted)))
        if loop is not None:
            raise _circular(loop.node)
        assert answer is not None
        return answer

    def _alone(self, node: Node) -> Shapes | None:
        """The shapes of a place whose keywords need no other node; None of any other node."""
        place = node.place if isinstance(node, Asserted) else node
        if not isinstance(place, Place) or not _NEEDING.isdisjoint(place.schema):
            return None
        self.steps.spend(_PLACE_PRICE)
        try:
            shapes = self._shapes[node] = self._assertions.alone(self._inside(place))
        except GrammarError as error:
            raise error.at(place.pointer) from error
        return shapes

    def _start(self, node: Node) -> Step:
        if isinstance(node, Asserted):
            return self._assertions.of(self._inside(node.place))
        if isinstance(node, Constant | Everything) or node is NOTHING:
            return self._leaf(node)
        if not isinstance(node, Place | And):
            outline = self.outlines.of(node)
            if outline.exact:
                return self._listed(outline.upper)
        if isinstance(node, Or):
            return self._or(node)
        if isinstance(node, One | Sole):
            return self._told_apart(node, ALL_SHAPES)
        if isinstance(node, Not):
            return self._not(node)
        if isinstance(node, Place) and _closed_kinds(self._inside(node)):
            return self._closed_place(node)
        return self._conjunction((node,))

    def _leaf(self, node: Node) -> Step:
        yield from ()
        if isinstance(node, Constant):
            return self._assertions.constant(node.value, node.pointer)
        return ALL_SHAPES if isinstance(node, Everything) else NO_SHAPES

    def _listed(self, kinds: Kinds) -> Step:
        yield from ()
        return Shapes(
            kinds.literals,
            Numbers.of(_numbers(kinds.numbers)),
            _strings(kinds.strings),
            ALL_SHAPES.arrays if kinds.arrays else (),
            ALL_SHAPES.objects if kinds.objects else (),
        )

    # --- conjunctions ----------------------------------------------------------------------------------------------

    def _conjunction(self, parts: Iterable[Node], context: Shapes = ALL_SHAPES) -> Step:
        """What is in `context` and in all of the parts."""
        intersect = self._algebra.intersect
        shapes, wide, late = context, list[Shapes](), list[One | Sole]()
        for factor in self._factors(parts):
            if isinstance(factor, One | Sole):
                late.append(factor)
            elif isinstance(factor, Asserted | Constant) or (isinstance(factor, Place) and _NEEDING.isdisjoint(factor.schema)):
                shapes = intersect(shapes, (yield factor))
            else:
                wide.append((yield factor))
        wide.sort(key=lambda s: len(s.arrays) + len(s.objects))
        for factor in wide:
            shapes = intersect(shapes, factor)
        for factor in late:
            shapes = yield from self._told_apart(factor, shapes)
        return shapes

    def _factors(self, parts: Iterable[Node]) -> list[Node]:
        """The conjuncts of the parts, with the in-place applicators of places taken in."""
        factors: dict[Node, None] = {}
        path, done = set[Node](), set[Node]()
        stack = [(part, False) for part in reversed(tuple(parts))]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                path.discard(node)
                done.add(node)
            elif node in path:
                raise _Loop(node)
            elif node in done:
                continue
            elif isinstance(node, And):
                stack.extend((part, False) for part in reversed(node.parts))
            elif isinstance(node, Not) and isinstance(node.part, Or):
                stack.extend((self.nodes.negation(part), False) for part in reversed(node.part.parts))
            elif isinstance(node, Place) and _NEEDING.isdisjoint(node.schema):
                factors[node] = None
            elif isinstance(node, Place) and not _closed_kinds(self._inside(node)):
                self.steps.spend(_PLACE_PRICE)
                factors[self.nodes.asserted(node)] = None
                path.add(node)
                stack.append((node, True))
                stack.extend((part, False) for part in reversed(self.applied(node)))
            elif node is not EVERYTHING:
                factors[node] = None
        return list(factors)

    # --- places ----------------------------------------------------------------------------------------------------

    def _closed_place(self, place: Place) -> Step:
        """A place that says something about unevaluated members or items."""
        inside = self._inside(place)
        shapes = yield from self._conjunction((self.nodes.asserted(place), *self.applied(place)))
        for kind in _closed_kinds(inside):
            closed: list[Shapes] = []
            for way in (yield from self._evaluation.ways(place, kind)):
                whole = shapes if place in way.nodes else (yield from self._conjunction(_ordered(way.nodes)))
                closed.append(self._algebra.intersect(whole, self._closing(inside, kind, way.evaluated)))
            shapes = _with(kind, shapes, self._algebra.unite(closed))
        return shapes

    def _closing(self, inside: Interior, kind: Kind, evaluated: Evaluated) -> Shapes:
        """Values whose members or items outside of `evaluated` are what the place says about unevaluated ones."""
        rest = inside.sub(kind.value)
        if evaluated.everything or rest is EVERYTHING:
            return ALL_SHAPES
        if kind is Kind.PROPERTIES:
            properties = dict.fromkeys(evaluated.names, EVERYTHING)
            patterns = tuple((language, EVERYTHING) for language in evaluated.patterns)
            return replace(ALL_SHAPES, objects=(ObjectShape((Members(properties, patterns, rest, invites=True),), pointer=inside.pointer),))
        items = self.nodes.any_of((*evaluated.schemas, rest))
        return replace(ALL_SHAPES, arrays=(ArrayShape((EVERYTHING,) * evaluated.prefix, items, pointer=inside.pointer),))

    def _overlap(self, kind: Kind, parts: tuple[Node, ...]) -> Generator[Node, Shapes, bool]:
        shapes = yield self.nodes.all_of(parts)
        shapes = _only(kind, shapes)
        return (yield from self._any_open(self._roughly_needs(shapes.arrays, shapes.objects)))

    # --- disjunctions and negations --------------------------------------------------------------------------------

    def _or(self, node: Or) -> Step:
        return (yield from self._union(node.parts))

    def _union(self, parts: Iterable[Node]) -> Step:
        shapes: list[Shapes] = []
        for part in parts:
            shapes.append((yield part))
        return self._algebra.unite(shapes)

    def _none_of_all(self, parts: Iterable[Node]) -> Step:
        """What is not in all of the parts."""
        return self._union([self.nodes.negation(part) for part in parts])

    def _not(self, node: Not) -> Step:
        """Complement, pushed below conjunctions and disjunctions (De Morgan), so that only single assertions are complemented."""
        part = node.part
        if isinstance(part, Or):
            return self._conjunction((node,))
        if isinstance(part, And):
            return self._none_of_all(part.parts)
        if isinstance(part, Sole):
            return self._union((self.nodes.negation(part.part), *part.others))
        if isinstance(part, Place):
            return self._not_place(part)
        return self._complement(part)

    def _complement(self, part: Node) -> Step:
        return self._algebra.complement((yield part))

    def _not_place(self, place: Place) -> Step:
        inside, algebra = self._inside(place), self._algebra
        outside = [algebra.complement(asserted) for asserted in (yield from self._assertions.each(inside))]
        outside.append((yield from self._none_of_all(self.applied(place))))
        for kind in _closed_kinds(inside):
            open_ways = _only(kind, ALL_SHAPES)
            for way in (yield from self._evaluation.ways(place, kind)):
                beyond = algebra.complement(self._closing(inside, kind, way.evaluated))
                elsewhere = yield from self._none_of_all(_ordered(way.nodes - {place}))
                open_ways = algebra.intersect(open_ways, algebra.unite((beyond, elsewhere)))
            outside.append(open_ways)
        return algebra.unite(outside)

    # --- exactly one -----------------------------------------------------------------------------------------------

    def _told_apart(self, node: One | Sole, context: Shapes) -> Step:
        """Exactly one branch, or a given one and no other, within `context`."""
        branches = node.parts if isinstance(node, One) else (node.part, *node.others)
        expanded: list[Shapes] = []
        for branch in branches:
            expanded.append(self._algebra.intersect(context, (yield branch)))
        near = self._overlapping(branches, expanded)
        if isinstance(node, Sole):
            return (yield from self._without(expanded[0], [expanded[j] for j in near[0]]))
        apart: list[Shapes] = []
        for i, shapes in enumerate(expanded):
            apart.append((yield from self._without(shapes, [expanded[j] for j in near[i]])))
        return self._algebra.unite(apart)

    def _overlapping(self, branches: Sequence[Node], expanded: Sequence[Shapes]) -> list[list[int]]:
        """For each branch the indices of the others that it may overlap, as far as types, listed values and one tag of objects tell."""
        tags = [self.outlines.tags(shapes.objects) for shapes in expanded]
        names = Counter(name for tag in tags for name in tag)
        best = names.most_common(1)[0][0] if names else ""
        return self.outlines.overlapping(branches, expanded, [tag.get(best) for tag in tags])

    def _without(self, own: Shapes, others: Sequence[Shapes]) -> Step:
        """`own` without those of `others` that it may overlap.

        Types are told apart first: branches without `type` overlap in every type that their keywords say nothing about. Each other
        branch is cut out of `own` before the cuts are combined, so that the ways to miss it are already those that are left here.
        """
        algebra = self._algebra
        cuts: list[Shapes] = []
        for other in others:
            self.steps.spend(2)
            both = algebra.intersect(own, other)
            arrays = bool(both.arrays) and (yield from self._any_open(self._roughly_needs(both.arrays, ())))
            objects = bool(both.objects) and (yield from self._any_open(self._roughly_needs((), both.objects)))
            overlapping = replace(other, arrays=other.arrays if arrays else (), objects=other.objects if objects else ())
            if arrays or objects or self._emptiness.may_have_scalar(both):
                cuts.append(algebra.subtract(own, overlapping))
        cuts.sort(key=lambda s: len(s.arrays) + len(s.objects))
        for cut in cuts:
            own = algebra.intersect(own, cut)
        return own

    def _roughly_needs(self, arrays: Sequence[ArrayShape], objects: Sequence[ObjectShape]) -> list[list[Node]]:
        """What one of the shapes needs to have a value, or less, without what only expanding other nodes could tell."""
        return self._emptiness.needs([replace(s, unique=False, repeats=False) if s.unique or s.repeats else s for s in arrays], objects)

    def _any_open(self, ways: list[list[Node]]) -> Generator[Node, Shapes, bool]:
        """False only if each way needs an empty node. Looks one level deep, which is where real schemas tell branches apart."""
        for way in ways:
            possible = True
            for need in way:
                try:
                    inner = yield need
                except _Loop:
                    continue  # not known yet, so it may be open
                if not inner.arrays and not inner.objects and not self._emptiness.may_have_scalar(inner):
                    possible = False
                    break
            if possible:
                return True
        return False


def _circular(node: Node) -> GrammarError:
    return GrammarError("the schema refers to itself without passing a property or an item", pointer=pointer_of(node))


def _ordered(parts: Iterable[Node]) -> list[Node]:
    return sorted(parts, key=lambda part: part.serial)


def _numbers(scalars: Scalars) -> NumberSet:
    numbers = NumberSet.literals(scalars.values)
    return ~numbers if scalars.negated else numbers


def _strings(scalars: Scalars) -> StringSet:
    if not scalars.values:
        return ALL_SHAPES.string if scalars.negated else NO_SHAPES.string
    language = Language.literals(scalars.values)
    return StringSet(~language) if scalars.negated else StringSet(language)


def _closed_kinds(inside: Interior) -> list[Kind]:
    return [] if inside.only_ref else [kind for kind in Kind if inside.has(kind.value) and inside.sub(kind.value) is not EVERYTHING]


def _only(kind: Kind, shapes: Shapes) -> Shapes:
    """The objects of `shapes`, or its arrays."""
    return _with(kind, NO_SHAPES, shapes)


def _with(kind: Kind, shapes: Shapes, part: Shapes) -> Shapes:
    """`shapes` with the objects, or arrays, of `part`."""
    return replace(shapes, objects=part.objects) if kind is Kind.PROPERTIES else replace(shapes, arrays=part.arrays)
