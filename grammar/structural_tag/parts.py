"""The parts of a tree that are grammars themselves: read and checked once, compiled into any machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import json_text
from ..cfg.ebnf import parse_ebnf
from ..cfg.gbnf import parse_gbnf
from ..cfg.ir import ContextFreeGrammar, JsonValue, SpecialToken
from ..cfg.lark import parse_lark
from ..errors import GrammarError
from ..json_schema.check import Finding, raise_refused
from ..json_schema.compile import check_schema
from ..json_schema.document import Document, draft_of
from ..json_schema.expand import Expander
from ..json_schema.pointers import Pointer
from ..limits import Limits
from ..regex import Language
from ..shipped import grammar_text, shipped_name, shipped_schema
from ..whitespace import Whitespace
from .bounded_text import text_without
from .pointers import child
from .spec import GrammarText, JsonSchema, Node, Regex, walk

Part = Language | Document | ContextFreeGrammar

_NOTATIONS: dict[str, Any] = {"lark": (parse_lark, "start"), "gbnf": (parse_gbnf, "root"), "ebnf": (parse_ebnf, "root")}


class Parts:
    """What the regexes, schemas and grammars of a tree say, by pointer.

    Attributes:
        whitespace: of all schemas.
        have_tokens: some grammar names a special token.

    Raises:
        GrammarError: with the pointer of a part that is malformed, or supported only alone.
    """

    def __init__(self, root: Node, limits: Limits):
        self._limits = limits
        self._languages: dict[tuple[str, str, tuple[str, ...]], Language] = {}
        self._parts: dict[str, Part] = {}
        self._documents: dict[str, Document] = {}  # by the text of the schema
        self._schemas: list[tuple[str, Document]] = []
        self.whitespace = Whitespace.policy("bounded")
        self.have_tokens = False
        self._spaced: str | None = None
        for node in walk(root):
            part = self._read(node)
            if part is not None:
                self._parts[node.pointer] = part

    def __getitem__(self, node: Node) -> Part:
        return self._parts[node.pointer]

    def findings(self) -> Iterator[Finding]:
        """What becomes of each keyword of the schemas."""
        for base, document in self._schemas:
            for finding in check_schema(Expander(document, self._limits)):
                yield finding._replace(place=Pointer(None, base + finding.pointer))

    def _read(self, node: Node) -> Part | None:
        if isinstance(node, Regex):
            return placed(node, "pattern", lambda: self._language(node))
        if isinstance(node, GrammarText):
            return self._grammar(node)
        if isinstance(node, JsonSchema):
            self._use_whitespace(node, node.whitespace)
            return placed(node, node.schema_pointer, lambda: self._document(node))
        return None

    def _language(self, node: Regex) -> Language:
        key = (node.pattern, node.dialect, node.excludes)
        if key not in self._languages:
            self._languages[key] = self._made_language(node)
        return self._languages[key]

    def _made_language(self, node: Regex) -> Language:
        language = Language.pattern(node.pattern, node.dialect, "full", self._limits)
        if node.excludes:
            language &= text_without(node.excludes)
        if language.is_empty(self._limits):
            raise GrammarError("no text satisfies the pattern")
        return language

    def _grammar(self, node: GrammarText) -> ContextFreeGrammar:
        parse, start = _NOTATIONS[node.notation]
        text: str = placed(node, "grammar", lambda: grammar_text(node.grammar, node.notation))
        grammar: ContextFreeGrammar = placed(node, "grammar", lambda: parse(text, node.start or start, self._limits))
        for part in grammar.embedded():
            self.have_tokens |= isinstance(part, SpecialToken)
            if isinstance(part, JsonValue):
                self._use_whitespace(node, "bounded")
        return grammar

    def _document(self, node: JsonSchema) -> Document:
        name = shipped_name(node.json_schema)
        schema = node.json_schema if name is None else shipped_schema(name)
        text = json_text.dumps(schema)
        document = self._documents.get(text)
        if document is None:
            document = self._documents[text] = Document(schema, draft_of(schema, None), {})
            raise_refused(check_schema(Expander(document, self._limits), only_refused=True))
        self._schemas.append((child(node.pointer, node.schema_pointer), document))
        return document

    def _use_whitespace(self, node: Node, policy: str) -> None:
        if self._spaced is not None and self._spaced != policy:
            reason = f"all schemas of a structural tag need the same whitespace, which was {self._spaced!r} before"
            raise GrammarError(reason, pointer=child(node.pointer, "whitespace"))
        self._spaced = policy
        self.whitespace = placed(node, "whitespace", lambda: Whitespace.policy(policy, None, self._limits))


def placed(node: Node, field: str, make: Any) -> Any:
    """What `make` makes; its errors are placed at a field of the node."""
    try:
        return make()
    except GrammarError as error:
        pointer = child(node.pointer, field) + (error.pointer or "")
        raise type(error)(error.reason, pointer=pointer, position=error.position, expected=error.expected) from error
