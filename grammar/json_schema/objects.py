"""Objects: which keys may come next, what their values must be, and when the object may close."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from ..errors import LimitError
from ..machine import ObjectFrame, Transition
from ..machine_layout import CLASS_BASE
from ..regex import Language
from .expand import members
from .keys import Keys
from .nodes import NOTHING, Node
from .shapes import ObjectShape

if TYPE_CHECKING:
    from .compile import SchemaCompiler
    from .expand import Expander

_MAX_CLASSES = 30  # bits of KEY_CLASSES
_MAX_LISTED = 64  # a class of undeclared names with at most so many members is listed as names
_MAX_CHOICES = 2_000  # ways to choose the members that `minProperties` and witnesses need


class _Class(NamedTuple):
    language: Language | None  # None: every name
    node: Node


class Names:
    """The names an object shape tells apart, and the node of each name's value. Parts are made when first asked for."""

    def __init__(self, expander: Expander, shape: ObjectShape):
        self._expander = expander
        self._shape = shape
        self._nodes: dict[str, Node] = {}

    @cached_property
    def ordered(self) -> tuple[str, ...]:
        """Names that `properties` declares, in the order of the schema."""
        return tuple(dict.fromkeys(name for m in self._shape.members for name in m.properties))

    @cached_property
    def mentioned(self) -> tuple[str, ...]:
        """All names that the schema mentions: the declared ones first."""
        shape = self._shape
        names = dict.fromkeys((*self.ordered, *shape.required))
        for name, needed in shape.dependencies:
            names.update(dict.fromkeys((name, *sorted(needed))))
        return tuple(names)

    def node(self, name: str) -> Node:
        """What the value of a member called `name` must be."""
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = self._value_of(name)
        return node

    def _value_of(self, name: str) -> Node:
        if self._shape.names is not None and not self._shape.names.matches(name):
            return NOTHING
        if any("\ud800" <= char <= "\udfff" for char in name):
            return NOTHING  # no text can hold it
        parts: list[Node] = []
        for m in self._shape.members:
            matched = [node for language, node in m.patterns if language.matches(name)]
            if name in m.properties:
                matched.append(m.properties[name])
            parts.extend(matched or (m.additional,))
        return self._expander.nodes.all_of(parts)

    def usable(self, name: str) -> bool:
        return self._expander.inhabited(self.node(name))

    @cached_property
    def _split(self) -> tuple[tuple[_Class, ...], tuple[str, ...]]:
        """Classes of undeclared names by the patterns they match; small ones as lists of names."""
        expander, shape = self._expander, self._shape
        limits = expander.limits
        languages = dict.fromkeys(language for m in shape.members for language, _ in m.patterns)
        languages.update(dict.fromkeys(w.names for w in shape.witnesses))
        if not languages and shape.names is None:
            node = expander.nodes.all_of(m.additional for m in shape.members)
            return ((_Class(None, node),) if node is not NOTHING else ()), ()
        parts: list[tuple[Language | None, frozenset[Language]]] = [(shape.names, frozenset())]
        for language in languages:
            split: list[tuple[Language | None, frozenset[Language]]] = []
            for part, matched in parts:
                inside = language if part is None else part & language
                outside = ~language if part is None else part & ~language
                if not inside.is_empty(limits):
                    split.append((inside, matched | {language}))
                if not outside.is_empty(limits):
                    split.append((outside, matched))
            parts = split
            if len(parts) > 8 * _MAX_CLASSES:
                raise LimitError("the name patterns overlap in too many ways", pointer=shape.pointer)
        classes: list[_Class] = []
        listed: list[str] = []
        for part, matched in parts:
            assert part is not None
            node = self._class_node(matched)
            if node is NOTHING:
                continue
            declared = [n for n in self.mentioned if part.matches(n)]
            rest = part & ~Language.literals(declared) if declared else part
            if rest.is_empty(limits):
                continue
            found = members(rest, _MAX_LISTED, limits)
            if found is None:
                classes.append(_Class(rest, node))
            else:
                listed.extend(found)
        if len(classes) > _MAX_CLASSES:
            raise LimitError(f"the name patterns tell apart more than {_MAX_CLASSES} classes of names", pointer=shape.pointer)
        return tuple(classes), tuple(listed)

    def _class_node(self, matched: frozenset[Language]) -> Node:
        parts: list[Node] = []
        for m in self._shape.members:
            here = [node for language, node in m.patterns if language in matched]
            parts.extend(here or (m.additional,))
        return self._expander.nodes.all_of(parts)

    @cached_property
    def classes(self) -> tuple[_Class, ...]:
        """Unbounded classes of undeclared names."""
        return self._split[0]

    @cached_property
    def unordered(self) -> tuple[str, ...]:
        """Undeclared names of bounded classes."""
        return self._split[1]

    @cached_property
    def live_classes(self) -> int:
        """Bit set of classes whose value is inhabited."""
        return sum(1 << j for j, c in enumerate(self.classes) if self._expander.inhabited(c.node))

    def witness_names(self, index: int) -> frozenset[str]:
        names = self._shape.witnesses[index].names
        return frozenset(n for n in self.mentioned + self.unordered if names.matches(n))

    def witness_node(self, index: int, node: Node) -> Node:
        return self._expander.nodes.all_of((node, self._shape.witnesses[index].node))

    def witness_class(self, index: int, j: int) -> bool:
        """Whether names of class j are names of the witness (classes are split so that all or none are)."""
        language = self.classes[j].language
        return language is None or not (language & self._shape.witnesses[index].names).is_empty(self._expander.limits)


def _closure(required: tuple[str, ...], shape: ObjectShape) -> set[str]:
    """Names that must be present once `required` are."""
    present = set(required)
    changed = bool(shape.dependencies)
    while changed:
        changed = False
        for name, needed in shape.dependencies:
            if name in present and not needed <= present:
                present |= needed
                changed = True
    return present


class _Fresh(NamedTuple):
    """A further member of a class that may be the witness of several claims."""

    class_index: int
    number: int


def _witness_choices(names: Names, shape: ObjectShape, named: list[str]) -> list[tuple[str | _Fresh, ...]]:
    """The ways to give each witness a member: one with a name, or a further member of a class, shared or not."""
    choices: list[tuple[str | _Fresh, ...]] = [()]
    for i in range(len(shape.witnesses)):
        eligible = names.witness_names(i)
        known = [n for n in named if n in eligible]
        classes = [j for j in range(len(names.classes)) if names.witness_class(i, j)]
        longer: list[tuple[str | _Fresh, ...]] = []
        for choice in choices:
            longer.extend((*choice, n) for n in known)
            for j in classes:
                used = [c.number for c in choice if isinstance(c, _Fresh) and c.class_index == j]
                longer.extend((*choice, _Fresh(j, k)) for k in range(max(used, default=-1) + 2))
        if len(longer) > _MAX_CHOICES:
            raise LimitError("the members that the object needs can be chosen in too many ways", pointer=shape.pointer)
        choices = longer
    return choices


def _fillings(names: Names, shape: ObjectShape, present: set[str], spare: list[str], missing: int) -> list[tuple[str, ...] | int]:
    """The ways to add `missing` members for `minProperties`: named ones, or any number of one class (its index)."""
    if missing <= 0:
        return [()]
    ways: list[tuple[str, ...] | int] = list(range(len(names.classes)))
    free = [n for n in spare if n not in present]
    for more in combinations(free, missing) if missing <= len(free) else ():
        ways.append(more)
        if len(ways) > _MAX_CHOICES:
            if names.classes:
                break
            raise LimitError("'minProperties' can be met in too many ways", pointer=shape.pointer)
    return ways


def object_needs(expander: Expander, shape: ObjectShape) -> list[list[Node]]:
    """Alternatives of nodes that must be inhabited for the shape to have a value."""
    required = _closure(shape.required, shape)
    if shape.high is not None and len(required) > shape.high:
        return []
    names = Names(expander, shape)
    if not shape.witnesses and len(required) >= shape.low:
        return [[names.node(n) for n in sorted(required)]]
    answers: dict[frozenset[Node], None] = {}
    spare = [n for n in names.mentioned + names.unordered if n not in required]
    for choice in _witness_choices(names, shape, [*sorted(required), *spare]):
        present = _closure((*required, *(c for c in choice if isinstance(c, str))), shape)
        fresh = {c for c in choice if isinstance(c, _Fresh)}
        missing = shape.low - len(present) - len(fresh)
        for fill in _fillings(names, shape, present, spare, missing):
            everyone = _closure((*present, *fill), shape) if isinstance(fill, tuple) else present
            size = len(everyone) + len(fresh) + (missing if isinstance(fill, int) else 0)
            if shape.high is not None and size > shape.high:
                continue
            values: dict[str | _Fresh, Node] = {n: names.node(n) for n in everyone}
            values.update((c, names.classes[c.class_index].node) for c in fresh)
            for i, c in enumerate(choice):
                values[c] = names.witness_node(i, values[c])
            needs = set(values.values())
            if isinstance(fill, int):
                needs.add(names.classes[fill].node)
            answers[frozenset(needs)] = None
            if len(answers) > _MAX_CHOICES:
                raise LimitError("the members that the object needs can be chosen in too many ways", pointer=shape.pointer)
    return [sorted(needs, key=id) for needs in answers]


class _KeyStart(NamedTuple):
    """Where a key begins: a row and a trie of declared names, as in `ObjectFrame`."""

    row: int | None
    names: int | None


class _At(NamedTuple):
    """Progress through an object.

    Attributes:
        next: declared names before this index can no longer come (order "schema").
        seen: names seen, as far as anything still depends on them.
        count: members so far, held at the point from which more change nothing.
        met: bit set of witnesses found.
    """

    next: int
    seen: frozenset[str]
    count: int
    met: int


class ObjectFrames:
    """Frames of one object shape in one machine.

    Args:
        compiler: makes values of nodes.
        shape: the object shape.
        any_order: declared names may come in every order and every spelling, else in the order of the schema (undeclared ones
            after the required ones) and without needless escapes.
    """

    def __init__(self, compiler: SchemaCompiler, shape: ObjectShape, *, any_order: bool):
        self._compiler = compiler
        self._shape = shape
        self._names = names = Names(compiler.expander, shape)
        self._tidy = not any_order
        self._ordered = () if any_order else names.ordered
        self._index = {n: i for i, n in enumerate(self._ordered)}
        self._floating = tuple(n for n in names.mentioned if n not in self._index) + names.unordered
        self._sorted = sorted(names.mentioned + names.unordered)
        self._sorted_index = {n: i for i, n in enumerate(self._sorted)}
        linked = {n for name, needed in shape.dependencies for n in (name, *needed)}
        self._remembered = linked | set(self._floating)
        self._required = frozenset(shape.required)
        self._witness_names = [names.witness_names(i) for i in range(len(shape.witnesses))]
        self._frames: dict[_At, int] = {}

    @cached_property
    def _key_start(self) -> _KeyStart:
        machine, limits = self._compiler.machine, self._compiler.expander.limits
        live = self._names.live_classes
        classes = self._names.classes
        if live and (len(classes) > 1 or classes[0].language is not None):
            automata = [
                (Language.anything() if c.language is None else c.language).automaton(limits) if live >> j & 1 else None
                for j, c in enumerate(classes)
            ]
            keys = Keys(self._sorted, automata)
            return _KeyStart(machine.lower(keys, json=True, tidy=self._tidy, keys=keys).start_row(), None)
        others = self._compiler.other_keys(self._tidy) if live else None
        if not self._sorted:
            return _KeyStart(others, None)
        keys = Keys(self._sorted, [Language.anything().automaton(limits)] if live else [])
        lowering = machine.lower(keys, json=True, tidy=self._tidy, keys=keys)
        names = machine.new_names(
            self._sorted, tidy=self._tidy, escapes=lambda lo, hi, depth: lowering.escape(keys.within(lo, hi, depth))
        )
        return _KeyStart(others, names)

    def start(self) -> int:
        return self._frame(_At(0, frozenset(), 0, 0))

    def _frame(self, at: _At) -> int:
        frame = self._frames.get(at)
        if frame is None:
            frame = self._compiler.machine.new_frame(lambda: self._make(at), lambda outcome: self._on_key(at, outcome))
            self._frames[at] = frame
        return frame

    # --- what may come ---------------------------------------------------------------------------------------------

    def _pending(self, at: _At) -> set[str]:
        """Names that must still come."""
        present = _closure((*self._required, *at.seen), self._shape) if self._shape.dependencies else set(self._required)
        return {n for n in present if n not in at.seen and (n in self._remembered or self._index.get(n, at.next) >= at.next)}

    def _make(self, at: _At) -> ObjectFrame:
        pending = self._pending(at)
        can_close = not pending and at.count >= self._shape.low and at.met == (1 << len(self._shape.witnesses)) - 1
        full = self._shape.high is not None and at.count >= self._shape.high
        declared, classes = 0, 0
        if not full:
            for name in self._candidates(at, pending):
                if self._names.usable(name) and self._leads_somewhere(at, name):
                    declared |= 1 << self._sorted_index[name]
            for j in range(len(self._names.classes)):
                if self._names.live_classes >> j & 1 and self._others_may_come(pending) and self._ways(at, CLASS_BASE + j):
                    classes |= 1 << j
        key_row, names = self._key_start if declared or classes else _KeyStart(None, None)
        return ObjectFrame(can_close, key_row, classes, declared, len(self._sorted), names)

    def _others_may_come(self, pending: set[str]) -> bool:
        """Under order "schema" undeclared names wait for the declared and required ones, so that a model cannot wander off first."""
        return not any(n in self._index for n in pending)

    def _candidates(self, at: _At, pending: set[str]) -> list[str]:
        names = [n for n in self._floating if n not in at.seen and (n in pending or self._others_may_come(pending))]
        for name in self._ordered[at.next :]:
            names.append(name)
            if name in pending:
                break
        return names

    def _leads_somewhere(self, at: _At, name: str) -> bool:
        shape = self._shape
        if not shape.witnesses and not shape.dependencies and shape.low == 0 and shape.high is None:
            return True  # pending names are usable, else the shape itself would be empty
        return bool(self._ways(at, self._sorted_index[name]))

    def _after(self, at: _At, outcome: int) -> _At:
        """Progress after a key, before witnesses are counted."""
        shape = self._shape
        limit = shape.high if shape.high is not None else shape.low
        count = min(at.count + 1, limit)
        if outcome >= CLASS_BASE:
            return at._replace(count=count)
        name = self._sorted[outcome]
        seen = at.seen | {name} if name in self._remembered else at.seen
        return at._replace(next=self._index.get(name, at.next - 1) + 1, seen=seen, count=count)

    def _ways(self, at: _At, outcome: int) -> list[tuple[Node, _At]]:
        """Value node and progress after it, for each set of witnesses that the member may stand for."""
        names, shape = self._names, self._shape
        after = self._after(at, outcome)
        if outcome >= CLASS_BASE:
            j = outcome - CLASS_BASE
            node = names.classes[j].node
            eligible = [i for i in range(len(shape.witnesses)) if names.witness_class(i, j)]
        else:
            name = self._sorted[outcome]
            node = names.node(name)
            eligible = [i for i in range(len(shape.witnesses)) if name in self._witness_names[i]]
        eligible = [i for i in eligible if not at.met >> i & 1]
        ways: list[tuple[Node, _At]] = []
        for size in range(len(eligible) + 1):
            for chosen in combinations(eligible, size):
                value, met = node, at.met
                for i in chosen:
                    value, met = names.witness_node(i, value), met | 1 << i
                reached = after._replace(met=met)
                if (not chosen or self._compiler.expander.inhabited(value)) and self._is_live(reached):
                    ways.append((value, reached))
        return ways

    def _on_key(self, at: _At, outcome: int) -> Transition:
        return [(self._compiler.value(node), self._frame(after)) for node, after in self._ways(at, outcome)]

    # --- liveness --------------------------------------------------------------------------------------------------

    def _is_live(self, at: _At) -> bool:
        """Whether the object can still be completed from `at`. Exact but for `maxProperties` together with `dependencies`, where
        it may say no although the members that a witness brings along are needed anyway."""
        shape, names = self._shape, self._names
        pending = self._pending(at)
        if shape.dependencies and not all(self._can_come(at, n) and names.usable(n) for n in pending):
            return False
        needed = len(pending)
        if shape.witnesses:
            more = self._witnesses_need(at, pending)
            if more is None:
                return False
            needed += more
        if shape.high is not None and at.count + needed > shape.high:
            return False
        if at.count + needed >= shape.low or names.live_classes:
            return True
        spare = [n for n in (*self._ordered[at.next :], *self._floating) if n not in at.seen and n not in pending]
        spare = [n for n in spare if names.usable(n) and self._free_to_add(at, n)]
        return at.count + len(pending) + len(spare) >= shape.low

    def _can_come(self, at: _At, name: str) -> bool:
        return name not in at.seen and self._index.get(name, at.next) >= at.next

    def _free_to_add(self, at: _At, name: str) -> bool:
        more = _closure((name,), self._shape) - {name} if self._shape.dependencies else ()
        return all(n in at.seen or (self._can_come(at, n) and self._names.usable(n)) for n in more)

    def _witnesses_need(self, at: _At, pending: set[str]) -> int | None:
        """The fewest members beyond the pending ones with which every open witness can be met; None if some cannot be.

        Tries the ways to share members depth first; at most one new member per witness is ever needed.
        """
        open_witnesses = [i for i in range(len(self._shape.witnesses)) if not at.met >> i & 1]
        best: int | None = None
        stack: list[tuple[int, dict[str | _Fresh, Node], int]] = [(0, {}, 0)]
        steps = 0
        while stack:
            k, taken, more = stack.pop()
            steps += 1
            if steps > _MAX_CHOICES:
                raise LimitError("the members that the object needs can be chosen in too many ways", pointer=self._shape.pointer)
            if best is not None and more >= best:
                continue
            if k == len(open_witnesses):
                best = more
                continue
            for member, node in self._places(at, open_witnesses[k], taken):
                if self._compiler.expander.inhabited(node):
                    new = member not in taken and member not in pending
                    stack.append((k + 1, {**taken, member: node}, more + new))
        return best

    def _places(self, at: _At, witness: int, taken: dict[str | _Fresh, Node]) -> list[tuple[str | _Fresh, Node]]:
        """Members that may be the witness, with what their value must then be; the most promising last."""
        names = self._names
        places: list[tuple[str | _Fresh, Node]] = []
        for name in sorted(self._witness_names[witness]):
            if self._can_come(at, name) and self._free_to_add(at, name):
                places.append((name, names.witness_node(witness, taken.get(name, names.node(name)))))
        for j, c in enumerate(names.classes):
            if names.witness_class(witness, j):
                used = [m for m in taken if isinstance(m, _Fresh) and m.class_index == j]
                members = [_Fresh(j, len(used)), *used]
                places.extend((m, names.witness_node(witness, taken.get(m, c.node))) for m in members)
        return places
