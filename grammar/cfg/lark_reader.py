"""The notation of Lark grammars, read as written: statements and definitions, names not yet looked up.

Follows the lexical rules of lark 1.x: a comment takes the blank lines before it along, a line that begins with `|` continues the
rule, `?` before a lower-case letter is no quantifier.
"""

from __future__ import annotations

import re

from ..errors import GrammarError
from ..limits import Limits
from .lark_bodies import RULE_NAME, TERMINAL_NAME, BodyReader
from .lark_notation import Definition, Import, Module, is_terminal_name
from .written_parts import read_token

_LINE_END = re.compile(r"\r?\n\s*")
_RULE = re.compile(RULE_NAME)
_TERMINAL = re.compile(TERMINAL_NAME)
_NAME = re.compile(f"{RULE_NAME}|{TERMINAL_NAME}")
_MODIFIERS = re.compile(r"(?:!\??|\?!?)(?=[_a-z])")
_DOT = re.compile(r"\.(?!\.)")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_STATEMENT = re.compile(r"%[a-z]+")
_STATEMENTS = ("%ignore", "%import", "%declare", "%override", "%extend")


def read_lark(text: str, limits: Limits) -> Module:
    """Reads a grammar text.

    Raises:
        GrammarError: with the position of what is malformed.
    """
    return _LarkReader(text, limits).read()


class _LarkReader(BodyReader):
    def __init__(self, text: str, limits: Limits):
        super().__init__(text, limits)
        self._module = Module()

    def read(self) -> Module:
        self._skip_lines()
        while not self.at_end:
            self._statement()
            self.skip()
            if not self.at_end and self.match(_LINE_END) is None:
                raise self.error("the end of the line")
            self._skip_lines()
        return self._module

    def _skip_lines(self) -> None:
        self.skip()
        while self.match(_LINE_END) is not None:
            self.skip()

    def _statement(self) -> None:
        position = self.pos
        keyword = self.match(_STATEMENT)
        self.skip()
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
        self.skip()
        parameters = self._parameters()
        self._priority()
        self._colon()
        body, parts = self.body(aliases=True)
        return Definition(name=name, parameters=parameters, parts=parts, body=body, position=position)

    def _terminal_body(self, name: str, position: int) -> Definition:
        body, parts = self.body(aliases=False)
        return Definition(name=name, parameters=(), parts=parts, body=body, position=position)

    def _priority(self) -> None:
        self.skip()
        if self.match(_DOT) is not None:
            self.skip()
            if self.match(_NUMBER) is None:
                raise self.error("a priority")
            self.skip()

    def _colon(self) -> None:
        if not self.take(":"):
            raise self.error(":")

    def _parameters(self) -> tuple[str, ...]:
        if not self.take("{"):
            return ()
        names: list[str] = []
        while True:
            self.skip()
            start = self.pos
            name = self.match(_RULE)
            if name is None:
                raise self.error("the name of a parameter")
            if name in names:
                raise GrammarError(f"the parameter {name} is there twice", position=start)
            names.append(name)
            self.skip()
            if self.take("}"):
                self.skip()
                return tuple(names)
            if not self.take(","):
                raise self.error(",", "}")

    def _declare(self) -> None:
        while True:
            position = self.pos
            if read_token(self, named=False) is not None:
                self.skip()
                continue
            name = self.match(_NAME)
            if name is None:
                break
            definition = Definition(name=name, parameters=(), parts=(), body=None, position=position)
            self._module.definitions.setdefault(name, definition)
            self.skip()

    def _import(self, position: int) -> None:
        if self.peek() == ".":
            raise GrammarError("a grammar cannot import from files", position=position)
        path = [self._import_name()]
        self.skip()
        while self.match(_DOT) is not None:
            self.skip()
            path.append(self._import_name())
            self.skip()
        if self.take("("):
            for name in self._import_list():
                self._add_import(Import(path=tuple(path), name=name, alias=name, position=position))
            return
        if len(path) == 1:
            raise self.error(".", "(")
        alias = path[-1]
        if self.take("->"):
            self.skip()
            alias = self._import_name()
        self._add_import(Import(path=tuple(path[:-1]), name=path[-1], alias=alias, position=position))

    def _import_list(self) -> list[str]:
        names: list[str] = []
        while True:
            self.skip()
            names.append(self._import_name())
            self.skip()
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
