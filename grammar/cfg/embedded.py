"""Readers of what is no text of a terminal: JSON values and special tokens.

To the terminals around it a special token is the end of the text. A JSON value ends wherever the parse wants it to.
"""

from __future__ import annotations

from ..errors import GrammarError
from ..json_schema.compile import SchemaCompiler
from ..json_schema.expand import Expander
from ..languages import CharAutomaton
from ..machine import Machine
from ..machine_layout import DEAD, END, FINAL_ROW, LEAF, NIL, VALUE
from ..machine_parts import Element
from ..regex import CharSet, Language
from ..regex.charset import NO_CHARS
from ..structural_tag.spec import Token
from ..structural_tag.symbols import SymbolTable, token_of
from ..token_rows import TokenRows
from .guards import ONLY_FREE, Guards
from .ir import JsonValue, SpecialToken
from .lexemes import Reader


class EmbeddedReader(Reader):
    """A reader of something that is one node of the machine.

    Attributes:
        element: that node.
    """

    element: Element

    def texts(self, guard: int, ends: frozenset[int]) -> Language | CharAutomaton:
        raise AssertionError("it has no texts, but an element")


class TokenReader(EmbeddedReader):
    """Reads one of some special tokens."""

    def __init__(self, token_ids: list[int], guards: Guards):
        self._rows = TokenRows(token_ids)
        self.element = Element(LEAF, self._rows.start_row())
        self._guards = guards

    def outcomes(self, guard: int) -> frozenset[int]:
        return ONLY_FREE if self._guards.allows_end(guard) else frozenset()

    def first(self) -> CharSet:
        return NO_CHARS


class JsonReader(EmbeddedReader):
    """Reads a JSON value.

    Raises:
        GrammarError: no value satisfies the schema.
    """

    def __init__(self, value: JsonValue, guards: Guards, machine: Machine):
        self._value = value
        self._guards = guards
        try:
            root = SchemaCompiler(Expander(value.document, machine.limits), machine, any_order=False).root_value()
        except GrammarError as error:
            raise value.placed(error) from error
        self.element = Element(VALUE, root, FINAL_ROW)
        before = machine.node(VALUE, root, FINAL_ROW, 0, machine.node(END, 0, FINAL_ROW, 0, NIL))
        self._first = CharSet.of((byte, byte) for byte in range(0x80) if machine.run(before, bytes((byte,))) != DEAD)

    def outcomes(self, guard: int) -> frozenset[int]:
        if not self._guards.lets_pass(guard, self._first):
            reason = "the terminal before this JSON value could go on into it: put something between them"
            raise GrammarError(reason, position=self._value.position)
        return ONLY_FREE

    def first(self) -> CharSet:
        return self._first


def token_ids_of(token: SpecialToken, symbols: SymbolTable) -> list[int] | str:
    """The ids of a special token, or the text that its name is where the vocabulary has no such token.

    Raises:
        GrammarError: an id that is no special token, or a token that ends the text.
    """
    ids: list[int] = []
    for one in token.tokens:
        try:
            found = symbols.of(Token(token=one))
        except GrammarError as error:
            raise GrammarError(error.reason, position=token.position) from error
        if not found:
            raise GrammarError(f"{one} ends the text, so no text holds it", position=token.position)
        token_id = token_of(found[0])
        if token_id is None:
            return str(one)
        ids.append(token_id)
    return ids
