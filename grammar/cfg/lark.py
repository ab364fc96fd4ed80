"""Lark grammars: definitions looked up, templates applied, library grammars imported.

A text is accepted if `lark.Lark(grammar, parser="earley", lexer="dynamic")` parses it: each terminal matches where it stands as
`re.match` does, ignored terminals may stand before and after every terminal, priorities only choose among parses. The notation is
read here and not by lark, whose reader takes quadratic time for blank lines, exponential time for optional parts and recurses.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple, Union

from ..errors import GrammarError, LimitError
from ..limits import Limits
from .ir import Atom, ContextFreeGrammar, Lexeme, Reference, Repeat, Rule, Symbol
from .lark_patterns import PatternText, any_of, in_sequence, repeated
from .lark_reader import Body, Definition, LarkSymbol, Module, Name, Part, Repeated, Usage, Written, is_terminal_name, read_lark
from .ordered import check_never_empty, parse_ordered
from .wellformed import check_sentences

_LIBRARIES = ("common", "lark", "python", "unicode")
_MAIN = ""


class _Key(NamedTuple):
    """A definition: the library it is in ("" for the grammar itself) and its name there."""

    library: str
    name: str


Argument = Union[Atom, _Key]  # a key: a template handed over without arguments


class _Instance(NamedTuple):
    key: _Key
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
    definitions = _Definitions(read_lark(text, limits))
    definitions.check()
    grammar = _Builder(definitions, limits).build(start)
    check_sentences(grammar, limits)
    return grammar


@cache
def _library(name: str) -> Module:
    source = resources.files("lark").joinpath("grammars", f"{name}.lark").read_text(encoding="utf-8")
    return read_lark(source, Limits())


class _Definitions:
    """All definitions that names can lead to."""

    def __init__(self, main: Module):
        self.main = main
        self._changed: dict[_Key, Definition] = {}
        for definition in main.overrides:
            self._changed[self.find(_MAIN, definition.name, definition.position)] = definition
        for extension in main.extensions:
            key = self.find(_MAIN, extension.name, extension.position)
            self._changed[key] = _extended(self[key], extension)

    def __getitem__(self, key: _Key) -> Definition:
        return self._changed.get(key) or self._module(key.library).definitions[key.name]

    def find(self, library: str, name: str, position: int | None) -> _Key:
        """The definition that a name means inside a library.

        Raises:
            GrammarError: there is none.
        """
        start = position if library == _MAIN else None
        while True:
            module = self._module(library)
            entry = module.imports.get(name)
            if entry is None:
                if name not in module.definitions:
                    kind = "terminal" if is_terminal_name(name) else "rule"
                    raise GrammarError(f"the {kind} {name} is used but not defined", position=start)
                return _Key(library, name)
            if len(entry.path) != 1 or entry.path[0] not in _LIBRARIES:
                place = entry.position if library == _MAIN else None
                raise GrammarError(f"there is no library grammar {'.'.join(entry.path)}", position=place, expected=_LIBRARIES)
            library, name = entry.path[0], entry.name

    def check(self) -> None:
        """Raises GrammarError if the grammar uses a name that is not defined."""
        for entry in self.main.imports.values():
            self.find(_MAIN, entry.alias, entry.position)
        for definition in (*self.main.definitions.values(), *self.main.overrides, *self.main.extensions, *self.main.ignored):
            for name in names_in(definition):
                if name.name not in definition.parameters:
                    self.find(_MAIN, name.name, name.position)

    def _module(self, library: str) -> Module:
        return self.main if library == _MAIN else _library(library)


def _extended(base: Definition, extension: Definition) -> Definition:
    """A definition with further alternatives, which are tried first."""
    if base.body is None or extension.body is None or base.parameters != extension.parameters:
        raise GrammarError(f"{base.name} cannot be extended: it is declared only, or has other parameters", position=extension.position)
    parts = (*base.parts, *(_moved(part, len(base.parts)) for part in extension.parts))
    body = (*_moved(extension.body, len(base.parts)), *base.body)
    return Definition(name=base.name, parameters=base.parameters, parts=parts, body=body, position=base.position)


def _moved(body: Body, offset: int) -> Body:
    """A body whose groups have moved by `offset`."""

    def move(symbol: LarkSymbol) -> LarkSymbol:
        if isinstance(symbol, Part):
            return Part(index=symbol.index + offset)
        if isinstance(symbol, Repeated) and isinstance(symbol.body, Part):
            return Repeated(body=Part(index=symbol.body.index + offset), low=symbol.low, high=symbol.high)
        return symbol

    return tuple(tuple(move(symbol) for symbol in alternative) for alternative in body)


def names_in(definition: Definition) -> Iterator[Name | Usage]:
    """Every name that a definition uses."""
    for body in (*definition.parts, definition.body or ()):
        for alternative in body:
            todo: list[LarkSymbol] = list(alternative)
            while todo:
                symbol = todo.pop()
                if isinstance(symbol, Repeated):
                    todo.append(symbol.body)
                elif isinstance(symbol, Usage):
                    yield symbol
                    todo.extend(symbol.arguments)
                elif isinstance(symbol, Name):
                    yield symbol


class _Terminals:
    """Patterns of named terminals."""

    def __init__(self, definitions: _Definitions, limits: Limits):
        self._definitions = definitions
        self._limits = limits
        self._patterns: dict[_Key, PatternText] = {}

    def named(self, key: _Key) -> PatternText:
        """The pattern of a terminal. What it uses is composed first, without recursion."""
        stack = [key]
        open_keys: set[_Key] = set()
        while stack:
            current = stack[-1]
            if current in self._patterns:
                stack.pop()
                continue
            definition = self._definitions[current]
            missing = [used for used in self._used(current.library, definition) if used not in self._patterns]
            if not missing:
                self._patterns[current] = self.compose(current.library, definition)
                stack.pop()
                continue
            open_keys.add(current)
            for used in missing:
                if used in open_keys:
                    raise GrammarError(f"the terminal {used.name} uses itself", position=self._place(current, definition))
            stack.extend(missing)
        return self._patterns[key]

    def _used(self, library: str, definition: Definition) -> list[_Key]:
        names: list[_Key] = []
        for name in names_in(definition):
            if isinstance(name, Usage) or not is_terminal_name(name.name):
                place = name.position if library == _MAIN else None
                raise GrammarError(f"the terminal {definition.name} uses the rule {name.name}", position=place)
            names.append(self._definitions.find(library, name.name, name.position))
        return names

    def compose(self, library: str, definition: Definition) -> PatternText:
        """The pattern of a definition whose names have one."""
        if definition.body is None:
            place = definition.position if library == _MAIN else None
            raise GrammarError(f"the terminal {definition.name} is declared but has no pattern", position=place)
        parts: list[PatternText] = []
        for body in definition.parts:
            parts.append(self._of_body(library, body, parts))
        return self._of_body(library, definition.body, parts)

    def ignored(self, definition: Definition) -> PatternText:
        """The pattern of an unnamed terminal of the grammar itself."""
        for key in self._used(_MAIN, definition):
            self.named(key)
        return self.compose(_MAIN, definition)

    def _of_body(self, library: str, body: Body, parts: list[PatternText]) -> PatternText:
        alternatives = [in_sequence([self._of_symbol(library, symbol, parts) for symbol in alternative]) for alternative in body]
        result = any_of(alternatives, self._limits)
        if len(result.value) > self._limits.max_bytes:
            raise LimitError(f"a terminal is longer than {self._limits.max_bytes} characters (max_bytes)")
        return result

    def _of_symbol(self, library: str, symbol: LarkSymbol, parts: list[PatternText]) -> PatternText:
        if isinstance(symbol, Repeated):
            return repeated(self._of_symbol(library, symbol.body, parts), symbol.low, symbol.high)
        if isinstance(symbol, Part):
            return parts[symbol.index]
        if isinstance(symbol, Written):
            return symbol.pattern
        assert isinstance(symbol, Name)
        return self._patterns[self._definitions.find(library, symbol.name, symbol.position)]

    @staticmethod
    def _place(key: _Key, definition: Definition) -> int | None:
        return definition.position if key.library == _MAIN else None


class _Builder:
    """Rules of the grammar, each instance of a template on its own."""

    def __init__(self, definitions: _Definitions, limits: Limits):
        self._definitions = definitions
        self._limits = limits
        self._terminals = _Terminals(definitions, limits)
        self._rules: dict[str, Rule] = {}
        self._names: dict[_Instance, str] = {}
        self._todo: list[_Instance] = []
        self._num_uses = 0

    def build(self, start: str) -> ContextFreeGrammar:
        key = self._definitions.find(_MAIN, start, None)
        first = self._reference(key, (), self._definitions[key].position)
        while self._todo:
            self._add_rules(self._todo.pop())
        ignored = [self._lexeme(self._terminals.ignored(one), one.name, one.position) for one in self._definitions.main.ignored]
        return ContextFreeGrammar(rules=self._rules, start=first.name, ignored=tuple(dict.fromkeys(ignored)))

    def _reference(self, key: _Key, arguments: tuple[Argument, ...], position: int | None) -> Reference:
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
        position = definition.position if instance.key.library == _MAIN else None
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
        key = self._definitions.find(library, name, position)
        place = position if library == _MAIN else None
        definition = self._definitions[key]
        if definition.is_terminal:
            return self._lexeme(self._terminals.named(key), name, place)
        return key if definition.parameters else self._reference(key, (), place)

    def template(self, library: str, name: str, position: int) -> _Key:
        return self._definitions.find(library, name, position)

    def applied(self, key: _Key, arguments: tuple[Argument, ...], position: int | None) -> Reference:
        return self._reference(key, arguments, position)

    def written(self, symbol: Written, library: str) -> Lexeme:
        position = symbol.position if library == _MAIN else None
        return self._lexeme(symbol.pattern, repr(symbol.pattern.value), position)

    def _lexeme(self, pattern: PatternText, name: str, position: int | None) -> Lexeme:
        if pattern.literal is None or not pattern.literal:
            try:
                check_never_empty(parse_ordered(pattern.regexp, self._limits))
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
        if isinstance(found, _Key):
            raise GrammarError(f"the template {found.name} needs arguments", position=self._place(symbol.position))
        return found

    def _argument(self, symbol: Name | Written | Usage) -> Argument:
        """A value. The arguments of nested templates are found first, without recursion."""
        done: dict[int, Argument] = {}
        stack = [symbol]
        while stack:
            current = stack[-1]
            if isinstance(current, Usage):
                missing = [argument for argument in current.arguments if id(argument) not in done]
                if missing:
                    stack.extend(missing)
                    continue
                done[id(current)] = self._used(current, tuple(done[id(argument)] for argument in current.arguments))
            elif isinstance(current, Written):
                done[id(current)] = self._builder.written(current, self._library)
            else:
                done[id(current)] = self._named(current.name, current.position)
            stack.pop()
        return done[id(symbol)]

    def _named(self, name: str, position: int) -> Argument:
        return self._arguments[name] if name in self._arguments else self._builder.value(self._library, name, position)

    def _used(self, usage: Usage, arguments: tuple[Argument, ...]) -> Reference:
        key = self._arguments.get(usage.name)
        if key is None:
            key = self._builder.template(self._library, usage.name, usage.position)
        if not isinstance(key, _Key):
            raise GrammarError(f"{usage.name} is no template", position=self._place(usage.position))
        return self._builder.applied(key, arguments, self._place(usage.position))

    def _place(self, position: int) -> int | None:
        return position if self._library == _MAIN else None
