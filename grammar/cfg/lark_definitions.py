"""What names mean in a Lark grammar: its own definitions, and those of the library grammars that lark ships."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from ..errors import GrammarError
from ..limits import Limits
from .lark_notation import Body, Definition, LarkSymbol, Module, Name, Part, Repeated, Usage, is_terminal_name
from .lark_reader import read_lark
from .reader import like

MAIN = ""  # the grammar itself, where a library is named
_LIBRARIES = ("common", "lark", "python", "unicode")


class Key(NamedTuple):
    """A definition: the library it is in ("" for the grammar itself) and its name there."""

    library: str
    name: str


@cache
def _library(name: str) -> Module:
    source = (resources.files("lark") / "grammars" / f"{name}.lark").read_text(encoding="utf-8")
    return read_lark(source, Limits())


class Definitions:
    """All definitions that names can lead to."""

    def __init__(self, main: Module):
        self.main = main
        self._changed: dict[Key, Definition] = {}
        for definition in main.overrides:
            self._changed[self.find(MAIN, definition.name, definition.position)] = definition
        for extension in main.extensions:
            key = self.find(MAIN, extension.name, extension.position)
            self._changed[key] = _extended(self[key], extension)

    def __getitem__(self, key: Key) -> Definition:
        return self._changed.get(key) or self._module(key.library).definitions[key.name]

    def find(self, library: str, name: str, position: int | None) -> Key:
        """The definition that a name means inside a library.

        Raises:
            GrammarError: there is none.
        """
        start = position if library == MAIN else None
        while True:
            module = self._module(library)
            entry = module.imports.get(name)
            if entry is None:
                if name not in module.definitions:
                    kind = "terminal" if is_terminal_name(name) else "rule"
                    alike = like(name, (*module.definitions, *module.imports))
                    raise GrammarError(f"the {kind} {name} is used but not defined", position=start, expected=alike)
                return Key(library, name)
            if len(entry.path) != 1 or entry.path[0] not in _LIBRARIES:
                place = entry.position if library == MAIN else None
                raise GrammarError(f"there is no library grammar {'.'.join(entry.path)}", position=place, expected=_LIBRARIES)
            library, name = entry.path[0], entry.name

    def check(self) -> None:
        """Raises GrammarError if the grammar uses a name that is not defined."""
        for entry in self.main.imports.values():
            self.find(MAIN, entry.alias, entry.position)
        for definition in (*self.main.definitions.values(), *self.main.overrides, *self.main.extensions, *self.main.ignored):
            for name in names_in(definition):
                if name.name not in definition.parameters:
                    self.find(MAIN, name.name, name.position)

    def _module(self, library: str) -> Module:
        return self.main if library == MAIN else _library(library)


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
