"""Lark grammars: templates applied, terminals composed.

A text is accepted if `lark.Lark(grammar, parser="earley", lexer="dynamic")` parses it: each terminal matches where it stands as
`re.match` does, ignored terminals may stand before and after every terminal, priorities only choose among parses. The notation is
read here and not by lark, whose reader takes quadratic time for blank lines, exponential time for optional parts and recurses.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import GrammarError, LimitError
from ..limits import Limits
from .ir import Atom, ContextFreeGrammar, Embedded, Lexeme, Reference, Repeat, Rule, SpecialToken, Symbol
from .lark_definitions import MAIN, Definitions, Key
from .lark_notation import Body, Definition, LarkSymbol, Name, NamedTokens, Nested, Part, Repeated, Usage, Value, Written
from .lark_patterns import PatternText
from .lark_reader import read_lark
from .lark_terminals import Terminals
from .ordered import check_never_empty, parse_ordered
from .wellformed import check_sentences
from .written_parts import json_value

Argument = Atom | Key  # a key: a template handed over without arguments


class _Instance(NamedTuple):
    key: Key
    arguments: tuple[Argument, ...]


def parse_lark(text: str, start: str = "start", limits: Limits | None = None) -> ContextFreeGrammar:
    """Reads a Lark grammar.

    Args:
        text: the grammar.
        start: the rule to start with.
        limits: `max_bytes` bounds the text and every terminal, `max_states` the uses of templates.

    Raises:
        GrammarError: with the position of what is malformed, undefined or not supported; or if no text satisfies the grammar.
        LimitError: a budget is reached.
    """
    limits = limits or Limits()
    definitions = Definitions(read_lark(text, limits))
    definitions.check()
    grammar = _Builder(definitions, limits).build(start)
    check_sentences(grammar, limits)
    return grammar


class _Builder:
    """Rules of the grammar, each instance of a template on its own."""

    def __init__(self, definitions: Definitions, limits: Limits):
        self._definitions = definitions
        self._limits = limits
        self._terminals = Terminals(definitions, limits)
        self._rules: dict[str, Rule] = {}
        self._names: dict[_Instance, str] = {}
        self._todo: list[_Instance] = []
        self._checked: set[str] = set()  # patterns that are well formed and match no empty text
        self._own_lexemes: dict[tuple[str, str], Lexeme] = {}  # by the library that names it, and the name: terminals of the grammar itself
        self._embedded: dict[Nested | NamedTokens, Embedded] = {}
        self._num_uses = 0

    def build(self, start: str) -> ContextFreeGrammar:
        key = self._definitions.find(MAIN, start, None)
        first = self._reference(key, (), self._definitions[key].position)
        while self._todo:
            self._add_rules(self._todo.pop())
        ignored = [self._lexeme(self._terminals.ignored(one), one.name, one.position) for one in self._definitions.main.ignored]
        used = {key.name for key, _ in self._names if key.library == MAIN}
        rules = [one.name for one in self._definitions.main.definitions.values() if not one.is_terminal]
        unused = tuple(name for name in rules if name not in used)
        return ContextFreeGrammar(rules=self._rules, start=first.name, ignored=tuple(dict.fromkeys(ignored)), unused=unused)

    def _reference(self, key: Key, arguments: tuple[Argument, ...], position: int | None) -> Reference:
        definition = self._definitions[key]
        if definition.is_terminal:
            raise GrammarError(f"{key.name} is a terminal, not a rule", position=position)
        if len(arguments) != len(definition.parameters):
            raise GrammarError(f"the rule {key.name} takes {len(definition.parameters)} arguments, not {len(arguments)}", position=position)
        instance = _Instance(key, arguments)
        name = self._names.get(instance)
        if name is None:
            self._num_uses += bool(arguments)
            if self._num_uses > self._limits.max_states:
                raise LimitError(f"the templates are used in more than {self._limits.max_states} ways (max_states)", position=position)
            name = key.name if not key.library else f"{key.library}.{key.name}"
            if arguments:
                name = f"{name}{{{len(self._names)}}}"
            self._names[instance] = name
            self._todo.append(instance)
        return Reference(name=name, position=position)

    def _add_rules(self, instance: _Instance) -> None:
        definition = self._definitions[instance.key]
        position = definition.position if instance.key.library == MAIN else None
        if definition.body is None:
            raise GrammarError(f"the rule {definition.name} is declared but not defined", position=position)
        scope = _Scope(self, instance, definition)
        name = self._names[instance]
        for index, body in enumerate(definition.parts):
            self._add(scope.part_name(index), name, position, body, scope)
        self._add(name, name, position, definition.body, scope)

    def _add(self, name: str, owner: str, position: int | None, body: Body, scope: _Scope) -> None:
        alternatives = tuple(tuple(scope.symbol(symbol) for symbol in alternative) for alternative in body)
        self._rules[name] = Rule(name=name, alternatives=alternatives, owner=owner, position=position)

    def name_of(self, instance: _Instance) -> str:
        return self._names[instance]

    def value(self, library: str, name: str, position: int) -> Argument:
        """What a name means that is no parameter."""
        lexeme = self._own_lexemes.get((library, name))
        if lexeme is not None:
            return lexeme
        key = self._definitions.find(library, name, position)
        place = position if library == MAIN else None
        definition = self._definitions[key]
        if not definition.is_terminal:
            return key if definition.parameters else self._reference(key, (), place)
        lexeme = self._lexeme(self._terminals.named(key), name, definition.position if key.library == MAIN else place)
        if key.library == MAIN:
            self._own_lexemes[library, name] = lexeme
        return lexeme

    def template(self, library: str, name: str, position: int) -> Key:
        return self._definitions.find(library, name, position)

    def applied(self, key: Key, arguments: tuple[Argument, ...], position: int | None) -> Reference:
        return self._reference(key, arguments, position)

    def written(self, symbol: Written, library: str) -> Lexeme:
        position = symbol.position if library == MAIN else None
        return self._lexeme(symbol.pattern, repr(symbol.pattern.value), position)

    def embedded(self, symbol: Nested | NamedTokens) -> Embedded:
        found = self._embedded.get(symbol)
        if found is None:
            if isinstance(symbol, Nested):
                found = json_value(symbol.schema, symbol.position, self._limits)
            else:
                found = SpecialToken(tokens=symbol.tokens, position=symbol.position)
            self._embedded[symbol] = found
        return found

    def _lexeme(self, pattern: PatternText, name: str, position: int | None) -> Lexeme:
        if not pattern.literal and pattern.regexp not in self._checked:
            try:
                check_never_empty(parse_ordered(pattern.regexp, self._limits))
                self._checked.add(pattern.regexp)
            except GrammarError as error:
                raise type(error)(f"{error.reason} (terminal {name})", position=position) from error
        return Lexeme(pattern=pattern.regexp, literal=pattern.literal, name=name, position=position)


class _Scope:
    """The names of one instance of a definition."""

    def __init__(self, builder: _Builder, instance: _Instance, definition: Definition):
        self._builder = builder
        self._instance = instance
        self._library = instance.key.library
        self._arguments = dict(zip(definition.parameters, instance.arguments, strict=True))

    def part_name(self, index: int) -> str:
        return f"{self._builder.name_of(self._instance)} {index + 1}"  # a blank is in no written name

    def symbol(self, symbol: LarkSymbol) -> Symbol:
        if isinstance(symbol, Repeated):
            return Repeat(symbol=self._atom(symbol.body), minimum=symbol.low, maximum=symbol.high)
        return self._atom(symbol)

    def _atom(self, symbol: LarkSymbol) -> Atom:
        if isinstance(symbol, Part):
            return Reference(name=self.part_name(symbol.index))
        assert not isinstance(symbol, Repeated)
        found = self._argument(symbol)
        if isinstance(found, Key):
            raise GrammarError(f"the template {found.name} needs arguments", position=self._place(symbol.position))
        return found

    def _argument(self, symbol: Value) -> Argument:
        """A value. The arguments of nested templates are found first, without recursion."""
        if not isinstance(symbol, Usage):
            return self._plain_argument(symbol)
        done: dict[int, Argument] = {}
        stack: list[Value] = [symbol]
        while stack:
            current = stack[-1]
            if isinstance(current, Usage):
                missing = [argument for argument in current.arguments if id(argument) not in done]
                if missing:
                    stack.extend(missing)
                    continue
                done[id(current)] = self._used(current, tuple(done[id(argument)] for argument in current.arguments))
            else:
                done[id(current)] = self._plain_argument(current)
            stack.pop()
        return done[id(symbol)]

    def _plain_argument(self, symbol: Name | Written | Nested | NamedTokens) -> Argument:
        if isinstance(symbol, Name):
            found = self._arguments.get(symbol.name)
            return self._builder.value(self._library, symbol.name, symbol.position) if found is None else found
        if isinstance(symbol, Written):
            return self._builder.written(symbol, self._library)
        return self._builder.embedded(symbol)

    def _used(self, usage: Usage, arguments: tuple[Argument, ...]) -> Reference:
        key = self._arguments.get(usage.name)
        if key is None:
            key = self._builder.template(self._library, usage.name, usage.position)
        if not isinstance(key, Key):
            raise GrammarError(f"{usage.name} is no template", position=self._place(usage.position))
        return self._builder.applied(key, arguments, self._place(usage.position))

    def _place(self, position: int) -> int | None:
        return position if self._library == MAIN else None
