"""A structural tag as a lazy byte automaton.

Each node of the tree becomes a node of the machine: leaves, values and positions as they are, everything else a fork that is made
when a text gets there. Free text is one leaf that knows what it is watched for, so that a trigger (or an end) is found on bytes,
wherever tokens begin; the tags of one trigger are told apart by a leaf too, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..cfg.compile import compile_part
from ..cfg.ir import ContextFreeGrammar
from ..counted_text import CountedText
from ..json_schema.compile import SchemaCompiler
from ..json_schema.document import Document
from ..json_schema.expand import Expander
from ..json_schema.names import Names
from ..limits import Limits
from ..machine import Machine
from ..machine_layout import FINAL_ROW, FORK, LEAF, MARK, SWITCH, VALUE, WS_OUTER_AFTER, WS_OUTER_BEFORE
from ..machine_parts import Element
from ..regex import Language
from .bare_values import BARE_STYLES, BareValues
from .bounded_text import text_and_end, text_without
from .checks import Checks
from .compiled import CompiledTag, Mark
from .emptiness import Emptiness
from .forks import Elements, Forks, Leaves, Word
from .free_text import FreeText, Pattern
from .parameters import written_texts
from .parts import Parts, placed
from .pointers import child
from .spec import AnyText, AnyToken, Boundary, JsonSchema, Member, Node, Optional, Or, Repeat, Tag, Text, Token, TriggeredTags, walk
from .spec import GrammarText as GrammarNode
from .spec import Regex as RegexNode
from .spec import Sequence as SequenceNode
from .switch_rows import SwitchRows
from .symbols import Symbols, SymbolTable, as_text, num_bytes, text_of


class _End(NamedTuple):
    """How the tag around a part ends."""

    tag: int
    words: tuple[Symbols, ...]
    outer: Elements


def compile_tree(root: Node, parts: Parts, symbols: SymbolTable, limits: Limits, *, marks: bool) -> CompiledTag:
    """A fresh automaton of a tree.

    Args:
        marks: let a parser of the output know where tags begin and end; then texts are not counted in tokens.

    Raises:
        GrammarError: with the pointer of what admits no text, or cannot be told from what stands around it.
        LimitError: a budget is reached.
    """
    return _Compiler(root, parts, symbols, limits, marks=marks).run()


class _Compiler:
    def __init__(self, root: Node, parts: Parts, symbols: SymbolTable, limits: Limits, *, marks: bool):
        self._root = root
        self._parts = parts
        self._symbols = symbols
        self._limits = limits
        self._with_marks = marks
        self._machine = Machine(parts.whitespace, limits)
        self._tags = {id(node): number for number, node in enumerate(n for n in walk(root) if isinstance(n, Tag))}
        self._marks: list[Mark] = []
        self._forks = Forks(self._machine, limits)
        self._prepared: dict[int, Elements] = {}  # by id of a node
        self._leaves = Leaves(self._machine, limits)
        self._tokens: dict[Symbols, Elements] = {}
        self._empty = Emptiness()
        self._checks = Checks(symbols, self._empty, limits)
        self._read_grammars: dict[int, Elements] = {}  # without the empty text
        self._objects: dict[tuple[int, int], tuple[SchemaCompiler, Names]] = {}
        self._readings: dict[tuple[int, _End | None], Elements] = {}
        self._closings: dict[_End, Elements] = {}

    def run(self) -> CompiledTag:
        for node in reversed(list(walk(self._root))):
            self._prepare(node)
        start = self._machine.start_of_fork(self._forks.fork(lambda: [self._read(self._root, None)]))
        return CompiledTag(self._machine, start, self._marks, self._forks.switches, self._symbols)

    # --- what a node reads by itself -------------------------------------------------------------------------------

    def _prepare(self, node: Node) -> None:
        """Makes a leaf, or checks a node whose content is prepared already; errors belong to compiling, not to decoding."""
        if isinstance(node, Text):
            self._prepared[id(node)] = self._leaves.literal(node.value)
        elif isinstance(node, Token):
            self._prepared[id(node)] = self._token(self._symbols.of(node))
        elif isinstance(node, RegexNode):
            language = self._parts[node]
            assert isinstance(language, Language)
            self._prepared[id(node)] = self._leaves.of(language)
            self._empty.leaves[id(node)] = language.matches("", self._limits)
        elif isinstance(node, GrammarNode):
            self._prepared[id(node)] = placed(node, "grammar", lambda: self._grammar(node))
        elif isinstance(node, Member):
            self._prepared[id(node)] = placed(node.schema, node.schema.schema_pointer, lambda: self._member(node))
        elif isinstance(node, JsonSchema):
            self._prepared[id(node)] = placed(node, node.schema_pointer, lambda: self._schema(node))
        elif isinstance(node, TriggeredTags | AnyText):
            self._checks.free(node)
        elif isinstance(node, Tag):
            self._checks.tag(node)
        elif isinstance(node, Repeat) and self._empty.may_be(node.content):
            self._checks.repeated(node.content, child(node.pointer, "content"))

    def _token(self, symbols: Symbols) -> Elements:
        if symbols not in self._tokens:
            self._tokens[symbols] = self._forks.choose([Word(symbols, ())])
        return self._tokens[symbols]

    def _schema(self, node: JsonSchema) -> Elements:
        if node.style in BARE_STYLES:
            style = BARE_STYLES[node.style]
            return BareValues(self._compiler(node), self._forks, self._leaves, self._symbols, style, self._limits).root()
        return self._value(self._compiler(node).root_value())

    def _compiler(self, node: JsonSchema) -> SchemaCompiler:
        document = self._parts[node]
        assert isinstance(document, Document)
        return SchemaCompiler(Expander(document, self._limits), self._machine, any_order=node.property_order == "any")

    def _value(self, value: int) -> Elements:
        before, after = (int(self._machine.table[place]) for place in (WS_OUTER_BEFORE, WS_OUTER_AFTER))
        read = Element(VALUE, value, before)
        return (read,) if after == FINAL_ROW else (read, Element(LEAF, after))

    def _member(self, node: Member) -> Elements:
        key = (id(node.schema), node.shape)
        if key not in self._objects:
            compiler = self._compiler(node.schema)
            expander = compiler.expander
            self._objects[key] = (compiler, Names(expander, expander.expand(expander.root).objects[node.shape]))
        compiler, names = self._objects[key]
        value = names.node(node.name)
        if not node.as_text:
            return self._value(compiler.value(value))
        texts = written_texts(node, compiler.expander.expand(value).string)
        self._empty.leaves[id(node)] = texts.matches("", self._limits)
        return self._leaves.of(texts)

    def _grammar(self, node: GrammarNode) -> Elements:
        grammar = self._parts[node]
        assert isinstance(grammar, ContextFreeGrammar)
        read, skippable = compile_part(grammar, self._machine, self._symbols, self._limits)
        self._empty.leaves[id(node)] = skippable
        self._read_grammars[id(node)] = read
        return (self._forks.element(lambda: [read, ()]),) if skippable and read else read

    # --- what a node reads, up to and including the end of the tag around it ------------------------------------------

    def _read(self, node: Node, end: _End | None) -> Elements:
        """Elements that read a node, then the end of the tag whose last part it is."""
        key = (id(node), end)
        if key not in self._readings:
            self._readings[key] = self._reading(node, end)
        return self._readings[key]

    def _reading(self, node: Node, end: _End | None) -> Elements:
        leaf = self._prepared.get(id(node))
        if leaf is not None:
            return (*leaf, *self._close(end))
        if isinstance(node, SequenceNode):
            *first, last = node.elements
            return (*(element for part in first for element in self._read(part, None)), *self._read(last, end))
        if isinstance(node, Tag):
            return self._forks.choose(self._begun([node], 0, self._close(end)))
        if isinstance(node, Repeat):
            low = 0 if self._empty.may_be(node.content) else node.min
            return (*self._repeated(node, low, node.max), *self._close(end))
        return (self._forks.element(lambda: self._alternatives(node, end)),)

    def _alternatives(self, node: Node, end: _End | None) -> list[Elements]:
        if isinstance(node, Optional):
            return [self._read(node.content, end), self._close(end)]
        if isinstance(node, Or):
            tags = [element for element in node.elements if isinstance(element, Tag)]
            others = [self._read(element, end) for element in node.elements if not isinstance(element, Tag)]
            return [*([self._forks.choose(self._begun(tags, 0, self._close(end)))] if tags else []), *others]
        if isinstance(node, AnyText):
            if node.max_chars is not None and not self._with_marks:
                return self._bounded_text(node, end, node.max_chars)
            return [self._any_text(node, end)]
        if isinstance(node, AnyToken):
            return [(*self._any_token(node), *self._close(end))]
        assert isinstance(node, TriggeredTags)
        if self._exits(end):
            return self._triggered(node, end)
        return [(*alternative, *self._close(end)) for alternative in self._triggered(node, None)]

    def _repeated(self, node: Repeat, low: int, high: int | None) -> Elements:
        if high == 0:
            return ()

        def once() -> list[Elements]:
            """Each time something is read: what is read in no text could be read without end."""
            return self._something(node.content) if self._empty.may_be(node.content) else [self._read(node.content, None)]

        def once_more() -> list[Elements]:
            rest = self._repeated(node, max(low - 1, 0), None if high is None else high - 1)
            more = [(*way, *rest) for way in once()]
            return more if low else [(), *more]

        if low == 0 and high is None:
            return (self._forks.loop(lambda again: [(), *((*way, again) for way in once())]),)
        return (self._forks.element(once_more),)

    def _something(self, node: Node) -> list[Elements]:
        """The ways to read a node that may be empty, without the empty one."""
        if not self._empty.may_be(node):
            return [self._read(node, None)]
        if isinstance(node, Optional):
            return self._something(node.content)
        if isinstance(node, Or):
            return [way for element in node.elements for way in self._something(element)]
        if isinstance(node, SequenceNode):
            return self._something_of(node.elements)
        if isinstance(node, Repeat):
            high = None if node.max is None else node.max - 1
            return [(*way, *self._repeated(node, 0, high)) for way in self._something(node.content)] if node.max != 0 else []
        if isinstance(node, AnyText):
            words = [text for text in map(text_of, node.excludes) if text is not None]
            return [self._leaves.of((text_without(words) & Language.length(0, node.max_chars)) - Language.empty_string())]
        if isinstance(node, RegexNode):
            language = self._parts[node]
            assert isinstance(language, Language)
            language -= Language.empty_string()
            return [] if language.is_empty(self._limits) else [self._leaves.of(language)]
        return [self._read_grammars[id(node)]] if isinstance(node, GrammarNode) else []

    def _something_of(self, elements: Sequence[Node]) -> list[Elements]:
        """The ways to read something of a sequence: its first part that is not empty, and then the others."""
        ways: list[Elements] = []
        later: Elements = ()
        for element in reversed(elements):
            begun = [(*way, *later) for way in self._something(element)]
            ways = [*begun, (self._forks.element(lambda ways=ways: ways),)] if ways else begun
            later = (self._forks.element(lambda element=element, later=later: [(*self._read(element, None), *later)]),)
        return ways

    def _begun(self, tags: Iterable[Tag], read: int, then: Elements) -> list[Word]:
        """The begins of tags without the first `read` symbols, each with the rest of the tag and `then`."""
        return [
            Word(self._symbols.of(tag.begin)[read:], (self._forks.element(lambda tag=tag: [self._tag_body(tag, then)]),)) for tag in tags
        ]

    def _tag_body(self, tag: Tag, then: Elements) -> Elements:
        number = self._tags[id(tag)]
        end = _End(number, tuple(dict.fromkeys(map(self._symbols.of, tag.end or ("",)))), then)
        return (*self._mark(number, True, self._symbols.of(tag.begin)), *self._read(tag.content, end))

    def _close(self, end: _End | None) -> Elements:
        if end is None:
            return ()
        if end not in self._closings:
            self._closings[end] = self._forks.choose([Word(word, self._closed(end, word)) for word in end.words])
        return self._closings[end]

    def _closed(self, end: _End, word: Symbols) -> Elements:
        return (*self._mark(end.tag, False, word), *end.outer)

    def _mark(self, tag: int, begins: bool, boundary: Symbols) -> Elements:
        if not self._with_marks:
            return ()
        self._marks.append(Mark(tag, begins, sum(map(num_bytes, boundary))))
        return (Element(MARK, len(self._marks) - 1),)

    # --- free text -------------------------------------------------------------------------------------------------

    def _any_text(self, node: AnyText, end: _End | None) -> Elements:
        tokens = None if self._with_marks else node.max_tokens
        if tokens == 0:
            return self._close(end)
        exits = self._exits(end)
        text = FreeText(self._patterns({}, exits, node.excludes), may_end=not exits, limits=self._limits)
        rows = self._forks.rows(text)
        if tokens is not None:
            self._count(rows, text, exits, tokens)
        read = Element(SWITCH, rows.start_row(), 0, tokens or 0)
        return (read,) if exits else (read, *self._close(end))

    def _any_token(self, node: AnyToken) -> Elements:
        if self._with_marks or not self._symbols.knows_vocabulary:
            return self._leaves.of(text_without(self._watched_words(node.excludes, None)) & Language.length(1, None))
        text = FreeText(self._patterns({}, {}, node.excludes), may_end=False, limits=self._limits)
        rows = self._forks.rows(text)
        self._count(rows, text, {}, 1)
        return (Element(SWITCH, rows.start_row(), 0, 1),)

    def _bounded_text(self, node: AnyText, end: _End | None, max_chars: int) -> list[Elements]:
        exits, words = self._exits(end), self._watched_words(node.excludes, end)
        text = text_without(words) & Language.length(0, max_chars)
        if not exits:
            return [(*self._leaves.of(text), *self._close(end))]
        ways: list[Elements] = []
        for word, then in exits.items():
            spelled = as_text(word)
            if spelled is None:  # a special token, which is in no text
                ways.append((*self._leaves.of(text), *self._forks.choose([Word(word, then)])))
            else:
                ways.append((*self._leaves.of(text_and_end(spelled, words, max_chars)), *then))
        return ways

    def _watched_words(self, excludes: tuple[Boundary, ...], end: _End | None) -> list[str]:
        """The texts among what free text is watched for."""
        symbols = dict.fromkeys((*self._exits(end), *map(self._symbols.of, excludes)))
        return [word for word in map(as_text, symbols) if word is not None]

    def _count(self, rows: SwitchRows, text: FreeText, exits: dict[Symbols, Elements], tokens: int) -> None:
        """Makes known what may come when the tokens of a text are used up: what is missing to one of its exits."""
        forks: dict[int, int] = {}

        def ways(q: int) -> list[Elements]:
            words: dict[Symbols, int] = {}
            for rest, fork in text.rests(q):
                words.setdefault(rest, fork)
            return [self._forks.choose([Word(rest, (Element(FORK, fork),)) for rest, fork in words.items()])] if exits else [()]

        def closer(row: int) -> int:
            q = rows.state_of[row]
            if q not in forks:
                forks[q] = self._forks.fork(lambda: ways(q))
            return forks[q]

        self._machine.counted_texts.append(CountedText(max_tokens=tokens, missing=rows.missing.get, closer=closer))

    def _triggered(self, node: TriggeredTags, end: _End | None) -> list[Elements]:
        again: Elements = self._close(end)
        if not node.stop_after_first:
            again = (self._forks.loop(lambda loop: [self._watched(node, end, may_end=True, again=(loop,))]),)
        if not node.text_before:
            tags = self._forks.choose(self._begun(node.tags, 0, again))
            return [tags] if node.at_least_one else [tags, self._close(end)]
        if node.at_least_one or node.stop_after_first:
            return [self._watched(node, end, may_end=not node.at_least_one, again=again)]
        return [again]

    def _watched(self, node: TriggeredTags, end: _End | None, *, may_end: bool, again: Elements) -> Elements:
        """Free text, then what its triggers and the end of the tag around it lead to."""
        exits = self._exits(end) if may_end else {}
        triggers = {self._symbols.of(trigger): self._triggered_by(node, trigger, again) for trigger in node.triggers}
        text = FreeText(self._patterns(triggers, exits, node.excludes), may_end=may_end and not exits, limits=self._limits)
        return (Element(SWITCH, self._forks.rows(text).start_row()),)

    def _triggered_by(self, node: TriggeredTags, trigger: Boundary, again: Elements) -> Elements:
        read = self._symbols.of(trigger)
        tags = [tag for tag in node.tags if self._symbols.of(tag.begin)[: len(read)] == read]
        held = sum(map(num_bytes, read))
        return (self._forks.element(lambda: [self._forks.choose(self._begun(tags, len(read), again), held)]),)

    def _exits(self, end: _End | None) -> dict[Symbols, Elements]:
        """What follows each text that ends the tag around; nothing where some end is empty, so that text cannot be told from it."""
        if end is None or () in end.words:
            return {}
        return {word: self._closed(end, word) for word in end.words}

    def _patterns(self, triggers: dict[Symbols, Elements], exits: dict[Symbols, Elements], excludes: tuple[Boundary, ...]) -> list[Pattern]:
        patterns = {word: Pattern(word, None, False) for word in map(self._symbols.of, excludes) if word}
        patterns |= {word: Pattern(word, self._forks.fork(lambda then=then: [then]), False) for word, then in triggers.items()}
        patterns |= {word: Pattern(word, self._forks.fork(lambda then=then: [then]), True) for word, then in exits.items()}
        return list(patterns.values())
