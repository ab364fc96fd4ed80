"""Lark grammars as they are written: statements and definitions, names not yet looked up. As in `ir`, nothing is changed once made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .lark_patterns import PatternText


@dataclass(kw_only=True, unsafe_hash=True)
class Name:
    """A rule, terminal or template parameter."""

    name: str
    position: int


@dataclass(kw_only=True, unsafe_hash=True)
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


@dataclass(kw_only=True, unsafe_hash=True)
class Part:
    """A group of the same definition, by its index in `parts`."""

    index: int


@dataclass(kw_only=True, unsafe_hash=True)
class Repeated:
    """A value or group `low` to `high` times."""

    body: Value | Part
    low: int
    high: int | None


Value = Name | Written | Usage | Nested | NamedTokens
LarkSymbol = Value | Part | Repeated
Body = tuple[tuple[LarkSymbol, ...], ...]


@dataclass(kw_only=True, unsafe_hash=True)
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
