"""Values as Gemma writes them: names as they are, strings as they are between two tokens, all else as JSON without white space.

`{city:<|"|>Rome<|"|>,days:3,near:[{name:<|"|>Ostia<|"|>}]}`. Of an object that declares members only these are written, in the order
of the schema; one that declares none has members of any names, and nothing keeps a name from coming twice. A name with white space or
punctuation in it is written as a string is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import GrammarError, LimitError
from ..json_schema.compile import SchemaCompiler
from ..json_schema.names import NameClass, Names
from ..json_schema.nodes import Node, pointer_of
from ..json_schema.shapes import ArrayShape, ObjectShape, Shapes
from ..limits import Limits
from ..regex import Language
from .bounded_text import text_without
from .forks import Elements, Forks, Leaves, Word
from .spec import Token
from .symbols import SymbolTable, text_of

_MAX_PLACES = 10_000
_NAME = Language.pattern(r'[^\s:,{}\[\]<>"|]+')


@dataclass(frozen=True)
class BareStyle:
    """Attributes:
    quote: before and after each string.
    """

    quote: Token


BARE_STYLES = {"gemma": BareStyle(Token(token='<|"|>')), "functiongemma": BareStyle(Token(token="<escape>"))}


def is_bare(name: str) -> bool:
    """Whether a name is written without quotes."""
    return _NAME.matches(name)


class _Members(NamedTuple):
    """How an object is written.

    Attributes:
        listed: declared members: name, value, and whether it is required.
        others: members of other names, if none is declared.
    """

    listed: tuple[tuple[str, Node, bool], ...]
    others: NameClass | None


class BareValues:
    """Makes the values of one schema.

    Raises:
        GrammarError: with a pointer into the schema, if some value of it cannot be written so.
    """

    def __init__(self, compiler: SchemaCompiler, forks: Forks, leaves: Leaves, symbols: SymbolTable, style: BareStyle, limits: Limits):
        self._compiler = compiler
        self._expander = compiler.expander
        self._forks = forks
        self._leaves = leaves
        self._limits = limits
        self._quote_symbols = symbols.of(style.quote)
        self._quote = forks.choose([Word(self._quote_symbols, ())])
        self._texts = text_without([text_of(style.quote) or ""])
        self._values: dict[Node, Elements] = {}
        self._members_of: dict[ObjectShape, _Members] = {}
        self._made: dict[tuple[ArrayShape | ObjectShape, int, bool], Elements] = {}
        if symbols.is_lenient:  # when the tree is read, and no more when it is compiled for a vocabulary
            self._check(self._expander.root)

    def root(self) -> Elements:
        """The value that the document is."""
        self._compiler.root_value()  # refuses a schema without any
        return self._value(self._expander.root)

    # --- values --------------------------------------------------------------------------------------------------------

    def _value(self, node: Node) -> Elements:
        if node not in self._values:
            self._values[node] = (self._forks.element(lambda: list(self._ways(self._expander.expand(node)))),)
        return self._values[node]

    def _ways(self, shapes: Shapes) -> Iterator[Elements]:
        texts = shapes.string.to_language() & self._texts
        if not texts.is_empty(self._limits):
            yield (*self._quote, *self._leaves.of(texts), *self._quote)
        for word in sorted(shapes.literals):
            yield self._leaves.literal(word)
        if not shapes.number.is_empty(self._limits):
            yield self._leaves.of_automaton(shapes.number, lambda: self._compiler.number_automaton(shapes.number))
        for array in shapes.arrays:
            if self._compiler.has_value(arrays=array):
                yield (*self._leaves.literal("["), *self._items(array, 0, is_first=True))
        for shape in shapes.objects:
            if self._compiler.has_value(objects=shape):
                yield (*self._leaves.literal("{"), *self._rest(shape, 0, is_first=True))

    def _items(self, array: ArrayShape, index: int, *, is_first: bool) -> Elements:
        """From an item on, to the closing bracket."""
        if array.high is None:
            index = min(index, max(len(array.prefix), array.low))

        def ways() -> list[Elements]:
            found = [self._leaves.literal("]")] if index >= array.low else []
            item = array.item(index)
            if (array.high is None or index < array.high) and self._expander.inhabited(item):
                comma = () if is_first else self._leaves.literal(",")
                found.append((*comma, *self._value(item), *self._items(array, index + 1, is_first=False)))
            return found

        return self._once((array, index, is_first), ways)

    def _rest(self, shape: ObjectShape, index: int, *, is_first: bool) -> Elements:
        """From a member on, to the closing brace."""
        members = self._members(shape)
        if members.others is not None and shape.high is None:
            index = min(index, shape.low)

        def ways() -> list[Elements]:
            return self._others(shape, members.others, index, is_first) if members.others else self._listed(shape, index, is_first)

        return self._once((shape, index, is_first), ways)

    def _listed(self, shape: ObjectShape, index: int, is_first: bool) -> list[Elements]:
        words: list[Word] = []
        for at, (name, node, required) in enumerate(self._members(shape).listed[index:], index):

            def member(node: Node = node, at: int = at) -> list[Elements]:
                return [(*self._value(node), *self._rest(shape, at + 1, is_first=False))]

            spelled = tuple(map(ord, name))
            if not _NAME.matches(name):
                spelled = (*self._quote_symbols, *spelled, *self._quote_symbols)
            words.append(Word((*map(ord, "" if is_first else ","), *spelled, ord(":")), (self._forks.element(member),)))
            if required:
                return [self._forks.choose(words)]
        closed = self._leaves.literal("}")
        return [closed, self._forks.choose(words)] if words else [closed]

    def _others(self, shape: ObjectShape, others: NameClass, index: int, is_first: bool) -> list[Elements]:
        found = [self._leaves.literal("}")] if index >= shape.low else []
        if shape.high is None or index < shape.high:
            comma = () if is_first else self._leaves.literal(",")
            value = (*self._leaves.literal(":"), *self._value(others.node), *self._rest(shape, index + 1, is_first=False))
            found += [(*comma, *name, *value) for name in self._names(others)]
        return found

    def _names(self, others: NameClass) -> Iterator[Elements]:
        names = self._texts if others.language is None else self._texts & others.language
        for spelled, quote in ((names & _NAME, ()), (names - _NAME, self._quote)):
            if not spelled.is_empty(self._limits):
                yield (*quote, *self._leaves.of(spelled), *quote)

    def _once(self, key: tuple[ArrayShape | ObjectShape, int, bool], ways: Callable[[], list[Elements]]) -> Elements:
        if key not in self._made:
            self._made[key] = (self._forks.element(ways),)
        return self._made[key]

    # --- what cannot be written ----------------------------------------------------------------------------------------

    def _check(self, root: Node) -> None:
        """Looks at every place that decoding can reach: errors belong to compiling."""
        seen, stack = {root}, [root]
        while stack:
            node = stack.pop()
            shapes = self._expander.expand(node)
            inside = [item for array in shapes.arrays for item in self._checked_items(array)]
            for shape in shapes.objects:
                members = self._members(shape)
                inside += [value for _, value, _ in members.listed]
                inside += [members.others.node] if members.others is not None else []
            fresh = [one for one in dict.fromkeys(inside) if one not in seen]
            seen.update(fresh)
            stack += fresh
            if len(seen) > _MAX_PLACES:
                raise LimitError(f"the schema has more than {_MAX_PLACES} places", pointer=str(pointer_of(node)))

    def _checked_items(self, array: ArrayShape) -> list[Node]:
        if array.contains or array.unique or array.repeats:
            raise GrammarError("items that depend on each other cannot be written in this style", pointer=str(array.pointer))
        return [item for item in (*array.prefix, array.rest) if self._expander.inhabited(item)]

    def _members(self, shape: ObjectShape) -> _Members:
        if shape not in self._members_of:
            self._members_of[shape] = self._made_members(shape)
        return self._members_of[shape]

    def _made_members(self, shape: ObjectShape) -> _Members:
        pointer = str(shape.pointer)
        if shape.dependencies or shape.witnesses:
            raise GrammarError("members that depend on each other cannot be written in this style", pointer=pointer)
        names = Names(self._expander, shape)
        listed = [(name, names.node(name), name in shape.required) for name in names.mentioned]
        listed = [member for member in listed if self._expander.inhabited(member[1])]
        if not listed:
            others = [one for one in names.classes if self._expander.inhabited(one.node)]
            if len(others) > 1 or (names.unordered and shape.low):
                raise GrammarError("names of several kinds cannot be written in this style", pointer=pointer)
            return _Members((), others[0] if others else None)
        for name, _, _ in listed:
            if not self._texts.matches(name):
                raise GrammarError(f"the name {name[:80]!r} cannot be written in this style", pointer=pointer)
        if shape.low > len(shape.required) or (shape.high is not None and shape.high < len(listed)):
            raise GrammarError("members cannot be counted in this style", pointer=pointer)
        return _Members(tuple(listed), None)
