"""Ready-made JSON Schemas and grammars, by name.

A schema lies beside this file as `<name>.json` (draft 2020-12), a grammar as `<name>.lark`, `<name>.gbnf` or `<name>.ebnf`. They keep
to bounded strings, lists and blanks, so that an answer of a small model ends. The command line takes them as
`--json-schema formcast:<name>`, `--lark formcast:<name>` and so on.
"""

from __future__ import annotations

import difflib
import json
from functools import cache
from importlib import resources
from typing import Any, ClassVar, NamedTuple

from ..grammar.errors import FormcastError

__all__ = ["GrammarText", "UnknownGrammar", "UnknownName", "UnknownSchema", "grammar_names", "load", "load_grammar", "names"]

_SCHEMA = "json"
_GRAMMAR_KINDS = ("lark", "gbnf", "ebnf")


class GrammarText(NamedTuple):
    """A shipped grammar.

    Attributes:
        kind: "lark", "gbnf" or "ebnf".
        text: in the notation of that name. A Lark grammar starts with the rule `start`, the others with `root`.
    """

    kind: str
    text: str


class UnknownName(FormcastError, KeyError):
    """Nothing of that name and kind is shipped.

    Attributes:
        name: what was asked for.
        near: shipped names that look like it, best first.
    """

    what: ClassVar[str] = "schema or grammar"

    def __init__(self, name: str, *, known: tuple[str, ...]):
        self.name = name
        self.near = tuple(difflib.get_close_matches(name, known, n=3))
        self._known = known
        super().__init__(self._message())

    def __str__(self) -> str:  # KeyError would show the message quoted
        return self._message()

    def _message(self) -> str:
        hint = f"did you mean {' or '.join(self.near)}?" if self.near else f"there are {', '.join(self._known)}"
        return f"no {self.what} is named {self.name!r}; {hint}"


class UnknownSchema(UnknownName):
    """No schema of that name is shipped."""

    what = "schema"


class UnknownGrammar(UnknownName):
    """No grammar of that name is shipped."""

    what = "grammar"


def names() -> tuple[str, ...]:
    """The names of all shipped schemas, sorted."""
    return tuple(sorted(name for name, kind in _files() if kind == _SCHEMA))


def load(name: str) -> dict[str, Any]:
    """The schema of that name, a fresh copy that the caller may change. Raises `UnknownSchema`."""
    known = names()
    if name not in known:
        raise UnknownSchema(name, known=known)
    return json.loads(_read(name, _SCHEMA))


def grammar_names() -> tuple[str, ...]:
    """The names of all shipped grammars, sorted."""
    return tuple(sorted(_grammar_kinds()))


def load_grammar(name: str) -> GrammarText:
    """The kind and the text of the grammar of that name. Raises `UnknownGrammar`."""
    kinds = _grammar_kinds()
    if name not in kinds:
        raise UnknownGrammar(name, known=tuple(sorted(kinds)))
    return GrammarText(kinds[name], _read(name, kinds[name]))


def _grammar_kinds() -> dict[str, str]:
    return {name: kind for name, kind in _files() if kind in _GRAMMAR_KINDS}


@cache
def _files() -> list[tuple[str, str]]:
    """Name and ending of each file beside this one."""
    parts = (entry.name.rpartition(".") for entry in resources.files(__name__).iterdir())
    return [(name, ending) for name, _, ending in parts]


def _read(name: str, ending: str) -> str:
    return resources.files(__name__).joinpath(f"{name}.{ending}").read_text(encoding="utf-8")
