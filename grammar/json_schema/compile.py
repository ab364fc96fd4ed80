"""A JSON Schema as a lazy byte automaton."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..errors import GrammarError, LimitError
from ..languages import CharAutomaton
from ..leaves import WordRows
from ..lowering import GENERIC_STRING_ROW
from ..machine import Machine
from ..machine_layout import DEAD
from ..machine_parts import ValueParts
from ..regex import Language
from ..whitespace import Whitespace
from .arrays import ArrayFrames, array_needs, uniqueness
from .check import Finding, check
from .document import Scope
from .expand import Expander
from .extent import Extent
from .keys import Keys
from .names import Names
from .nodes import Node, pointer_of
from .numbers import NumberSet
from .object_needs import object_needs
from .objects import ObjectFrames
from .pointers import ROOT, Pointer
from .questions import TextQuestion, ValueQuestion
from .reading import Readings
from .scalars import WORDS, Alternatives, NonzeroNumber, PlainDigits, TidyIntegers
from .shapes import ALL_NUMBERS, NO_NUMBERS, NO_STRING, ArrayShape, Numbers, ObjectShape, StringSet
from .values import Value, numbers_unlike, spelt

Json = Any


class SchemaCompiler:
    """Makes the values, objects and arrays of one machine from one expander, each once.

    Args:
        expander: of the schema; used by nobody else from now on.
        machine: where they are made. It will hold this compiler, so it is not held: both go as soon as nobody uses the machine.
        any_order: declared properties may come in every order.
    """

    def __init__(self, expander: Expander, machine: Machine, *, any_order: bool):
        self.expander = expander
        expander.renewing = True
        self.machine: Machine = weakref.proxy(machine)
        self._weakly: SchemaCompiler = weakref.proxy(self)  # for frames: the machine holds it, through the makers of values
        self._any_order = any_order
        self._values: dict[tuple[Node, tuple[Value, ...]], int] = {}
        self._distinct: dict[Node, int] = {}
        self._arrays: dict[tuple[ArrayShape, bool], ArrayFrames] = {}
        self._objects: dict[tuple[ObjectShape, tuple[str, ...]], ObjectFrames] = {}
        self._matched: dict[Language, dict[Value, bool]] = {}

    @property
    def extent(self) -> Extent:
        return self.expander.extent

    @cached_property
    def _readings(self) -> Readings:
        return Readings(self.machine, self.extent.values)

    def start(self) -> int:
        """State before the document. Raises what `root_value` raises."""
        return self.machine.start_of_document(self.root_value())

    def root_value(self) -> int:
        """The value that the document is.

        Raises:
            GrammarError: no value satisfies the schema.
        """
        root = self.expander.root
        if not self.expander.inhabited(root):
            raise GrammarError("no finite value satisfies the schema", pointer=self._contradiction(root))
        return self.value(root)

    def _contradiction(self, root: Node) -> Pointer:
        """Pointer of the deepest required place that is empty by itself."""
        expander, seen, node, place = self.expander, set[Node](), root, ROOT
        while node not in seen:
            seen.add(node)
            shapes = expander.expand(node)
            ways = [w for s in shapes.arrays for w in array_needs(expander, s)] + [
                w for s in shapes.objects for w in object_needs(expander, s)
            ]
            pointer = getattr(node, "pointer", None)
            place = pointer if pointer is not None else place
            empty = [need for way in ways for need in way if not expander.inhabited(need)]
            if not empty:
                break
            node = empty[0]
        return place

    def value(self, node: Node, unlike: tuple[Value, ...] = ()) -> int:
        """A value in `node` that is none of `unlike`, if a question about it follows."""
        value = self._values.get((node, unlike))
        if value is None:
            value = self._values[node, unlike] = self.machine.new_value(lambda: self._placed(node, lambda: self._parts(node, unlike)))
        return value

    def question(self, asked: ValueQuestion) -> int:
        """What follows a value that is read from the text."""
        return self.machine.new_question(TextQuestion(self._readings, asked))

    @staticmethod
    def _placed(node: Node, make: Callable[[], ValueParts]) -> ValueParts:
        try:
            return make()
        except GrammarError as error:
            raise error.at(pointer_of(node)) from error

    def distinct_value(self, node: Node, unlike: tuple[Value, ...] = ()) -> int:
        """Value of an array item whose text must differ from the items before it; see `arrays.uniqueness` for which can."""
        assert not unlike
        value = self._distinct.get(node)
        if value is None:
            value = self._distinct[node] = self.machine.new_value(lambda: self._placed(node, lambda: self._distinct_parts(node)))
        return value

    def _distinct_parts(self, node: Node) -> ValueParts:
        shapes, limits = self.expander.expand(node), self.expander.limits
        string = raw = None
        if self.expander.has_string(shapes.string):
            string = self._distinct_string_row(shapes.string, tidy=False)
        parts = [WORDS[word] for word in sorted(shapes.literals)]
        integers = shapes.number.plain & NumberSet.integers()
        if not integers.is_empty(limits):
            parts.append(PlainDigits(integers.automaton(limits), one_zero=True, negatives=self._has_negatives(integers)))
        if parts:
            keys = Keys((), [Alternatives(parts)])
            raw = self.machine.lower(keys, json=False, keys=keys).start_row()
        return ValueParts(None, None, (), (), string, raw)

    def _distinct_string_row(self, strings: StringSet, *, tidy: bool) -> int:
        """Row of a string, after the quote, that remembers its text."""
        language = strings.to_language()

        def make() -> Keys:
            return Keys((), [language.automaton(self.expander.limits)])

        return self.machine.shared_row(("distinct", language), make, json=True, tidy=tidy, is_key=True)

    def _parts(self, node: Node, unlike: tuple[Value, ...]) -> ValueParts:
        expander = self.expander
        shapes = expander.expand(node)
        targets: dict[int, int] = {}
        counted: tuple[int, int | None, int] | None = None
        distinct_string: int | None = None
        strings = self._strings_in(shapes.string, unlike) if unlike else []
        if shapes.string is NO_STRING:
            pass
        elif strings:
            tidy = shapes.string.language is not None and not self._any_order
            distinct_string = self._distinct_string_row(shapes.string, tidy=tidy)
        elif shapes.string.language is None and not shapes.string.is_all:
            counted = (shapes.string.low, shapes.string.high, GENERIC_STRING_ROW)
        elif expander.has_string(shapes.string):
            longer = shapes.string.without_high()
            if longer is None:
                targets[0x22] = self._string_row(shapes.string)
            else:
                counted = (0, shapes.string.high, self._counted_row(longer))
        numbers = [value for value in unlike if value.kind == "number"]
        if shapes.number is NO_NUMBERS:
            pass
        elif numbers and shapes.number == ALL_NUMBERS:
            # whatever is begun can go on to infinitely many numbers, zero apart: whether it may end is asked where it does
            has_zero = self.extent.values.number("0") in numbers
            self._begin(targets, self._nonzero_row if has_zero else self._numbers_row(ALL_NUMBERS))
        else:
            number = numbers_unlike(shapes.number, numbers)
            if not number.is_empty(expander.limits):
                self._begin(targets, self._numbers_row(number))
        for word in shapes.literals - {value.kind for value in unlike}:
            self._begin(targets, self._word_row(word))
        # the only shape of what has a value has one
        sole = len(shapes.arrays) + len(shapes.objects) == 1 and not targets and counted is None and distinct_string is None
        sole = sole and expander.inhabited(node)
        return ValueParts(
            self.machine.scalar_row(targets) if targets else None,
            counted,
            self._starts_of_objects(shapes.objects, tuple(value for value in unlike if value.kind == "object"), sole=sole),
            self._starts_of_arrays(shapes.arrays, tuple(value for value in unlike if value.kind == "array"), sole=sole),
            distinct_string,
            unlike=self.machine.text_list(strings) if distinct_string is not None else None,
        )

    def _strings_in(self, strings: StringSet, values: Sequence[Value]) -> list[bytes]:
        """The texts of the values that are some of the strings."""
        language = strings.to_language()
        known = self._matched.setdefault(language, {})
        texts: list[bytes] = []
        for value in values:
            if value.kind == "string":
                if value not in known:
                    known[value] = language.matches(value.data)
                if known[value]:
                    texts.append(spelt(value))
        return texts

    def _starts_of_objects(self, shapes: Sequence[ObjectShape], rivals: tuple[Value, ...], *, sole: bool) -> list[int]:
        frames: list[int] = []
        for shape in shapes:
            if sole or self.has_value(objects=shape):
                one = self._object(shape, rivals)
                if one.differs(rivals):
                    frames.append(one.start(rivals))
        return frames

    def _starts_of_arrays(self, shapes: Sequence[ArrayShape], rivals: tuple[Value, ...], *, sole: bool) -> list[int]:
        frames: list[int] = []
        for shape in shapes:
            if sole or self.has_value(arrays=shape):
                one = self.array_frames(shape, by_value=bool(rivals))
                if one.differs(rivals):
                    frames.append(~one.start(rivals) if one.kind.is_recorded else one.start(rivals))
        return frames

    def _begin(self, targets: dict[int, int], row: int) -> None:
        line = self.machine.row_targets(row)[0x21:0x7F].tolist()
        targets.update([(byte, target) for byte, target in enumerate(line, 0x21) if target != DEAD])

    def has_value(self, *, objects: ObjectShape | None = None, arrays: ArrayShape | None = None) -> bool:
        """Whether some finite value has a shape."""
        needs = (
            object_needs(self.expander, objects)
            if objects is not None
            else array_needs(self.expander, arrays)
            if arrays is not None
            else []
        )
        return any(all(self.expander.inhabited(n) for n in way) for way in needs)

    def _object(self, shape: ObjectShape, rivals: tuple[Value, ...] = ()) -> ObjectFrames:
        more: tuple[str, ...] = ()
        if rivals:
            names = self._object(shape).names.index
            more = tuple(sorted({name for rival in rivals for name in rival.data if name not in names}))
        frames = self._objects.get((shape, more))
        if frames is None:
            frames = self._objects[shape, more] = ObjectFrames(self._weakly, shape, any_order=self._any_order, more=more)
        return frames

    def array_frames(self, shape: ArrayShape, *, by_value: bool = False) -> ArrayFrames:
        frames = self._arrays.get((shape, by_value))
        if frames is None:
            frames = self._arrays[shape, by_value] = ArrayFrames(self._weakly, shape, by_value=by_value)
        return frames

    def other_keys(self, tidy: bool) -> int:
        """Row of a key with any name, class 0 of the undeclared ones."""

        def make() -> Keys:
            return Keys((), [Language.anything().automaton(self.expander.limits)])

        return self.machine.shared_row("any name", make, json=True, tidy=tidy, is_key=True)

    def _string_row(self, strings: StringSet) -> int:
        if strings.is_all:
            return GENERIC_STRING_ROW
        language, tidy = strings.to_language(), not self._any_order
        words = language.words() if tidy else None
        if words is not None and WordRows.are_simple(words):
            return self.machine.words_row(language, words)
        return self.machine.shared_row(language, lambda: language.automaton(self.expander.limits), json=True, tidy=tidy)

    def _counted_row(self, language: Language) -> int:
        key = ("counted", language)
        tidy = not self._any_order
        return self.machine.shared_row(key, lambda: language.automaton(self.expander.limits), json=True, tidy=tidy, counted=True)

    def _numbers_row(self, numbers: Numbers) -> int:
        key = (numbers, self._any_order)
        return self.machine.shared_row(key, lambda: self.number_automaton(numbers), json=False)

    @cached_property
    def _nonzero_row(self) -> int:
        return self.machine.shared_row("nonzero", NonzeroNumber, json=False)

    def _has_negatives(self, numbers: NumberSet) -> bool:
        return not (numbers & NumberSet.range(maximum=-1)).is_empty(self.expander.limits)

    def number_automaton(self, numbers: Numbers) -> CharAutomaton:
        """How numbers are spelt."""
        limits = self.expander.limits
        integers = numbers.plain & NumberSet.integers()
        if numbers.plain == numbers.other:
            if self._any_order or integers != numbers.plain:
                return numbers.plain.automaton(limits)
            return TidyIntegers(integers.automaton(limits), negatives=self._has_negatives(integers))
        both = numbers.plain & numbers.other
        if both.is_empty(limits) or numbers.other.is_empty(limits):
            return PlainDigits(integers.automaton(limits))
        return both.automaton(limits)  # leaves out values that only one kind of spelling may have

    def _word_row(self, word: str) -> int:
        return self.machine.shared_row(word, lambda: WORDS[word], json=False)


_MANY_PATTERNS = 4  # from so many on, the classes of names that patterns tell apart are counted before decoding


def check_schema(expander: Expander, *, only_refused: bool = False) -> Iterator[Finding]:
    """What becomes of each keyword of the document; `only_refused` leaves out most of what is not refused."""
    limits = expander.limits

    def probe(schema: Mapping[str, Json], base: str, pointer: Pointer, scope: Scope) -> None:
        shapes = expander.expand(expander.nodes.place(schema, base, pointer, scope))
        for array in shapes.arrays:
            uniqueness(expander, array)
            if array.contains:
                array_needs(expander, array)
        for shape in shapes.objects:
            if sum(len(members.patterns) for members in shape.members) >= _MANY_PATTERNS:
                _ = Names(expander, shape).classes
            if shape.witnesses:
                object_needs(expander, shape)  # where there are too many ways to choose the witnesses

    seen: set[str] = set()
    refused = False
    for finding in check(expander.document, limits, probe, only_refused=only_refused):
        seen.add(finding.keyword)
        refused |= finding.status == "refused"
        yield finding
    if not refused and "uniqueItems" in seen and seen & _COMBINING:
        # the only assertion that cannot be combined with all others: find out now whether some place needs it
        try:
            _expand_everything(expander)
        except GrammarError as error:
            yield Finding(Pointer(None, error.pointer or ""), "uniqueItems", "refused", error.reason, isinstance(error, LimitError))


_COMBINING = frozenset({"contains", "not", "oneOf", "if", "dependentSchemas", "dependencies"})


def _expand_everything(expander: Expander) -> None:
    """Expands all nodes that decoding could reach."""
    seen, stack = set[Node](), [expander.root]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        shapes = expander.expand(node)
        for array in shapes.arrays:
            uniqueness(expander, array)
            if array.unique and array.contains:
                array_needs(expander, array)
            stack += [*array.prefix, array.rest]
            for c in array.contains:
                for item in (*array.prefix, array.rest):
                    stack.append(expander.nodes.all_of((item, c.node)))
                    if c.high is not None:
                        stack.append(expander.nodes.all_of((item, expander.nodes.negation(c.node))))
        for shape in shapes.objects:
            names = Names(expander, shape)
            values = [names.node(name) for name in names.mentioned + names.unordered] + [c.node for c in names.classes]
            stack += values
            stack += [names.witness_node(i, value) for i in range(len(shape.witnesses)) for value in values]


def compile_schema(expander: Expander, whitespace: Whitespace, *, any_order: bool) -> tuple[Machine, int]:
    """The automaton of a checked document and its start state. `expander` belongs to it from now on.

    Raises:
        GrammarError: no value satisfies the schema, or it refers to itself in a circle.
        LimitError: a budget is reached.
    """
    machine = Machine(whitespace, expander.limits)
    try:
        return machine, SchemaCompiler(expander, machine, any_order=any_order).start()
    except GrammarError as error:
        raise error.at("") from error
