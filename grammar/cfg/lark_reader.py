"""The notation of Lark grammars, read as written: statements and definitions, names not yet looked up.

Follows the lexical rules of lark 1.x: a comment takes the blank lines before it along, a line that begins with `|` continues the
rule, `?` before a lower-case letter is no quantifier.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ..errors import GrammarError
from ..limits import Limits
from .lark_patterns import PatternText, literal_pattern, range_pattern
from .reader import BodyBuilder, Cursor
from .written_parts import read_json, read_token

_IGNORED = re.compile(r"(?:[ \t]+|\s*//[^\n]*|\s*#[^\n]*|\\ *\n)*")
_LINE_END = re.compile(r"(?:\r?\n)+\s*")
_RULE = re.compile(r"_?[a-z][_a-z0-9]*")
_TERMINAL = re.compile(r"_?[A-Z][_A-Z0-9]*")
_NAME = re.compile(r"_?[a-z][_a-z0-9]*|_?[A-Z][_A-Z0-9]*")
_MODIFIERS = re.compile(r"(?:!\??|\?!?)(?=[_a-z])")
_OPERATOR = re.compile(r"[+*]|\?(?![a-z_])")
_STRING = re.compile(r'"(?:\\[^\n]|[^"\\\n])*"i?')
_REGEXP = re.compile(r"/(?!/)(?:\\.|[^/\\])*/[imslux]*", re.DOTALL)
_DOT = re.compile(r"\.(?!\.)")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_STATEMENT = re.compile(r"%[a-z]+")
_COUNTS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_STATEMENTS = ("%ignore", "%import", "%declare", "%override", "%extend")


@dataclass(frozen=True, kw_only=True)
class Name:
    """A rule, terminal or template parameter."""

    name: str
    position: int


@dataclass(frozen=True, kw_only=True)
class Written:
    """A string, regular expression or range."""

    pattern: PatternText
    position: int


@dataclass(frozen=True, kw_only=True)
class Usage:
    """A template with arguments."""

    name: str
    arguments: tuple[Value, ...]
    position: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Nested:
    """A JSON Schema, read."""

    schema: Any
    position: int


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedTokens:
    """One of some special tokens, by names or ids."""

    tokens: tuple[str | int, ...]
    position: int


@dataclass(frozen=True, kw_only=True)
class Part:
    """A group of the same definition, by its index in `parts`."""

    index: int


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """A value or group `low` to `high` times."""

    body: Value | Part
    low: int
    high: int | None


Value = Name | Written | Usage | Nested | NamedTokens
LarkSymbol = Value | Part | Repeated
Body = tuple[tuple[LarkSymbol, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A rule or terminal.

    Attributes:
        parts: bodies of its groups; a group comes after the groups inside it.
        body: its alternatives, None if it was only declared.
    """

    name: str
    parameters: tuple[str, ...]
    parts: tuple[Body, ...]
    body: Body | None
    position: int

    @property
    def is_terminal(self) -> bool:
        return is_terminal_name(self.name)


@dataclass(frozen=True, kw_only=True)
class Import:
    """`name` of a library under the name `alias`."""

    path: tuple[str, ...]
    name: str
    alias: str
    position: int


@dataclass(kw_only=True)
class Module:
    """One grammar text."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    overrides: list[Definition] = field(default_factory=list)
    extensions: list[Definition] = field(default_factory=list)
    imports: dict[str, Import] = field(default_factory=dict)
    ignored: list[Definition] = field(default_factory=list)  # unnamed terminals


def is_terminal_name(name: str) -> bool:
    return name.lstrip("_")[:1].isupper()


def read_lark(text: str, limits: Limits) -> Module:
    """Reads a grammar text.

    Raises:
        GrammarError: with the position of what is malformed.
    """
    return _LarkReader(text, limits).read()


class _LarkReader(Cursor):
    def __init__(self, text: str, limits: Limits):
        super().__init__(text, limits)
        self._module = Module()
        self._parts: list[Body] = []

    def read(self) -> Module:
        self._skip_lines()
        while not self.at_end:
            self._statement()
            self._skip()
            if not self.at_end and self.match(_LINE_END) is None:
                raise self.error("the end of the line")
            self._skip_lines()
        return self._module

    def _skip(self) -> None:
        self.match(_IGNORED)

    def _skip_lines(self) -> None:
        self._skip()
        while self.match(_LINE_END) is not None:
            self._skip()

    # --- statements ------------------------------------------------------------------------------------------------

    def _statement(self) -> None:
        position = self.pos
        keyword = self.match(_STATEMENT)
        self._skip()
        if keyword is None:
            definition = self._definition()
            if definition.name in self._module.definitions or definition.name in self._module.imports:
                raise GrammarError(f"{definition.name} is defined twice", position=definition.position)
            self._module.definitions[definition.name] = definition
        elif keyword == "%ignore":
            self._module.ignored.append(self._terminal_body("ignored text", position))
        elif keyword == "%import":
            self._import(position)
        elif keyword == "%declare":
            self._declare()
        elif keyword == "%override":
            self._module.overrides.append(self._definition())
        elif keyword == "%extend":
            self._module.extensions.append(self._definition())
        else:
            raise GrammarError(f"the statement {keyword} is unknown", position=position, expected=_STATEMENTS)

    def _definition(self) -> Definition:
        position = self.pos
        name = self.match(_TERMINAL)
        if name is not None:
            self._priority()
            self._colon()
            return self._terminal_body(name, position)
        modifiers = self.match(_MODIFIERS) or ""
        position = self.pos
        name = self.match(_RULE)
        if name is None:
            raise self.error("the name of a rule or terminal", *_STATEMENTS)
        if "?" in modifiers and name.startswith("_"):
            raise GrammarError("a rule that begins with an underscore is inlined and cannot have the modifier ?", position=position)
        self._skip()
        parameters = self._parameters()
        self._priority()
        self._colon()
        body, parts = self._body(aliases=True)
        return Definition(name=name, parameters=parameters, parts=parts, body=body, position=position)

    def _terminal_body(self, name: str, position: int) -> Definition:
        body, parts = self._body(aliases=False)
        return Definition(name=name, parameters=(), parts=parts, body=body, position=position)

    def _priority(self) -> None:
        self._skip()
        if self.match(_DOT) is not None:
            self._skip()
            if self.match(_NUMBER) is None:
                raise self.error("a priority")
            self._skip()

    def _colon(self) -> None:
        if not self.take(":"):
            raise self.error(":")

    def _parameters(self) -> tuple[str, ...]:
        if not self.take("{"):
            return ()
        names: list[str] = []
        while True:
            self._skip()
            start = self.pos
            name = self.match(_RULE)
            if name is None:
                raise self.error("the name of a parameter")
            if name in names:
                raise GrammarError(f"the parameter {name} is there twice", position=start)
            names.append(name)
            self._skip()
            if self.take("}"):
                self._skip()
                return tuple(names)
            if not self.take(","):
                raise self.error(",", "}")

    def _declare(self) -> None:
        while True:
            position = self.pos
            if read_token(self, named=False) is not None:
                self._skip()
                continue
            name = self.match(_NAME)
            if name is None:
                break
            definition = Definition(name=name, parameters=(), parts=(), body=None, position=position)
            self._module.definitions.setdefault(name, definition)
            self._skip()

    def _import(self, position: int) -> None:
        if self.peek() == ".":
            raise GrammarError("a grammar cannot import from files", position=position)
        path = [self._import_name()]
        self._skip()
        while self.match(_DOT) is not None:
            self._skip()
            path.append(self._import_name())
            self._skip()
        if self.take("("):
            for name in self._import_list():
                self._add_import(Import(path=tuple(path), name=name, alias=name, position=position))
            return
        if len(path) == 1:
            raise self.error(".", "(")
        alias = path[-1]
        if self.take("->"):
            self._skip()
            alias = self._import_name()
        self._add_import(Import(path=tuple(path[:-1]), name=path[-1], alias=alias, position=position))

    def _import_list(self) -> list[str]:
        names: list[str] = []
        while True:
            self._skip()
            names.append(self._import_name())
            self._skip()
            if self.take(")"):
                return names
            if not self.take(","):
                raise self.error(",", ")")

    def _import_name(self) -> str:
        name = self.match(_NAME)
        if name is None:
            raise self.error("a name")
        return name

    def _add_import(self, entry: Import) -> None:
        if is_terminal_name(entry.name) != is_terminal_name(entry.alias):
            raise GrammarError("a rule stays a rule and a terminal a terminal when imported", position=entry.position)
        known = self._module.imports.get(entry.alias)
        if entry.alias in self._module.definitions or (known is not None and (known.path, known.name) != (entry.path, entry.name)):
            raise GrammarError(f"{entry.alias} is defined twice", position=entry.position)
        self._module.imports[entry.alias] = entry

    # --- bodies ----------------------------------------------------------------------------------------------------

    def _body(self, *, aliases: bool) -> tuple[Body, tuple[Body, ...]]:
        """Reads alternatives up to the end of the statement."""
        self._parts = []
        body: BodyBuilder[LarkSymbol] = BodyBuilder(self.pos, self._add_part)
        while True:
            self._skip()
            start = self.pos
            if self._takes_or():
                body.next_alternative()
            elif self.at_end or self.peek() in "\r\n":
                if body.closer:
                    raise self.error(body.closer, "|", position=start)
                return tuple(body.finish()), tuple(self._parts)
            elif self.take("("):
                body.open(start, ")")
            elif self.take("["):
                body.open(start, "]")
            elif body.closer and self.take(body.closer):
                optional = body.closer == "]"
                body.close()
                if optional:
                    body.sequence.append(self._repeated(body.sequence.pop(), 0, 1))
                self._quantify(body)
            elif self.take("->"):
                self._alias(start, aliases)
            else:
                body.sequence.append(self._value(body.closer))
                self._quantify(body)

    def _takes_or(self) -> bool:
        """Reads `|`, also at the beginning of the next line."""
        if self.peek() not in "|\r\n":
            return False
        start = self.pos
        self.match(_LINE_END)
        if self.take("|"):
            return True
        self.pos = start
        return False

    def _alias(self, start: int, allowed: bool) -> None:
        if not allowed:
            raise GrammarError("a terminal cannot have an alias", position=start)
        self._skip()
        if self.match(_RULE) is None:
            raise self.error("the name of an alias")
        self._skip()
        if not (self.at_end or self.peek() in "\r\n|)]"):
            raise self.error("|", "the end of the line")

    def _add_part(self, alternatives: list[tuple[LarkSymbol, ...]]) -> LarkSymbol:
        self._parts.append(tuple(alternatives))
        return Part(index=len(self._parts) - 1)

    def _repeated(self, body: LarkSymbol, low: int, high: int | None) -> LarkSymbol:
        if isinstance(body, Repeated):
            body = self._add_part([(body,)])
        assert not isinstance(body, Repeated)
        return Repeated(body=body, low=low, high=high)

    def _quantify(self, body: BodyBuilder[LarkSymbol]) -> None:
        """Reads at most one quantifier of the last symbol."""
        self._skip()
        start = self.pos
        operator = self.match(_OPERATOR)
        if operator is not None:
            low, high = _COUNTS[operator]
        elif self.take("~"):
            self._skip()
            low = high = self.number()
            self._skip()
            if self.take(".."):
                self._skip()
                high = self.number()
                if high < low:
                    raise GrammarError("the numbers of a quantifier are out of order", position=start)
        else:
            return
        body.sequence.append(self._repeated(body.sequence.pop(), low, high))

    def _value(self, closer: str) -> Value:
        start = self.pos
        name = self.match(_NAME)
        if name is not None:
            if is_terminal_name(name):
                return Name(name=name, position=start)
            self._skip()
            if self.take("{"):
                return Usage(name=name, arguments=self._arguments(), position=start)
            return Name(name=name, position=start)
        string = self.match(_STRING)
        if string is not None:
            self._skip()
            if not self.take(".."):
                return Written(pattern=literal_pattern(string, start), position=start)
            self._skip()
            last = self.match(_STRING)
            if last is None:
                raise self.error("a string")
            return Written(pattern=range_pattern(string, last, start), position=start)
        regexp = self.match(_REGEXP)
        if regexp is not None:
            return Written(pattern=literal_pattern(regexp, start), position=start)
        if self.take("%json"):
            self._skip()
            return Nested(schema=read_json(self), position=start)
        tokens = read_token(self, named=False)
        if tokens is not None:
            return NamedTokens(tokens=tokens, position=start)
        raise self.error("a name", "a string", "a regular expression", "(", "[", "|", closer or "the end of the line")

    def _arguments(self) -> tuple[Value, ...]:
        """Reads the arguments of a template, which may be templates with arguments, up to the closing brace."""
        stack: list[tuple[str, int, list[Value]]] = []
        arguments: list[Value] = []
        while True:
            self._skip()
            start = self.pos
            name = self.match(_RULE)
            self._skip()
            if name is not None and self.take("{"):
                stack.append((name, start, arguments))
                arguments = []
                continue
            self.pos = start
            arguments.append(self._value("}"))
            self._skip()
            while self.take("}"):
                if not stack:
                    return tuple(arguments)
                name, start, outer = stack.pop()
                outer.append(Usage(name=name, arguments=tuple(arguments), position=start))
                arguments = outer
                self._skip()
            if not self.take(","):
                raise self.error(",", "}")
