"""The tree of a structural tag: free text, and the places in it that follow a grammar.

Each node stands for a set of texts. `StructuralTag` reads a tree from JSON and `to_json` writes it; the JSON form is a superset of
xgrammar's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Json = Any
Notation = Literal["lark", "gbnf", "ebnf"]


@dataclass(frozen=True, kw_only=True)
class Node:
    """Attributes:
    pointer: where the node stands in the JSON form, for errors.
    """

    pointer: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Text(Node):
    """Exactly this text."""

    value: str


@dataclass(frozen=True, kw_only=True)
class Token(Node):
    """One special token. Where the vocabulary has no such token, its name as plain text.

    Attributes:
        token: its name, or its id.
    """

    token: str | int


Piece = str | Token
Boundary = Piece | tuple[Piece, ...]  # a text, a token, or several of them one after another


@dataclass(frozen=True, kw_only=True)
class AnyText(Node):
    """Any text. As the last part of a tag, it ends at the first end of that tag.

    Attributes:
        excludes: what may not be in it.
        max_tokens: most tokens it may take, None for any number. A token counts if it has brought text and the text goes on after it.
        max_chars: most characters it may have, None for any number; not together with `max_tokens`.
    """

    excludes: tuple[Boundary, ...] = ()
    max_tokens: int | None = None
    max_chars: int | None = None


@dataclass(frozen=True, kw_only=True)
class AnyToken(Node):
    """One token of text. Whoever sees no tokens takes any text that is not empty.

    Attributes:
        excludes: what may not be in it.
    """

    excludes: tuple[Boundary, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GrammarText(Node):
    """A text of a context-free grammar.

    Attributes:
        start: the rule to start with; None is `start` in Lark and `root` in the others.
    """

    grammar: str
    notation: Notation = "ebnf"
    start: str | None = None


@dataclass(frozen=True, kw_only=True)
class Regex(Node):
    """A text that matches a regular expression from beginning to end.

    Attributes:
        excludes: texts that may not be in it.
    """

    pattern: str
    dialect: Literal["ecma", "python"] = "ecma"
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class JsonSchema(Node):
    """A JSON document; the options are those of `Grammar.json_schema`. All schemas of one tree share their whitespace.

    Attributes:
        style: "json", or how the members of the object are written apart: one of `parameter_styles.STYLES`.
        schema_pointer: where the schema stands in the JSON form, below `pointer`.
    """

    json_schema: Json
    style: str = "json"
    whitespace: str = "bounded"
    property_order: Literal["schema", "any"] = "schema"
    schema_pointer: str = field(default="json_schema", compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Member(Node):
    """The value of one member of an object whose members are written apart. It is made of a `JsonSchema` with a style, see `parameters`.

    Attributes:
        schema: of the object.
        shape: number of the way to be such an object.
        name: of the member.
        as_text: the value is a string, written as it is; else it is written as JSON.
        is_mixed: a value that is no string is possible too, so a text that could be JSON is JSON.
    """

    schema: JsonSchema
    shape: int
    name: str
    as_text: bool
    is_mixed: bool


@dataclass(frozen=True, kw_only=True)
class Sequence(Node):
    """One after another."""

    elements: tuple[Node, ...]


@dataclass(frozen=True, kw_only=True)
class Or(Node):
    """Any one of several."""

    elements: tuple[Node, ...]


@dataclass(frozen=True, kw_only=True)
class Optional(Node):
    """The content or nothing."""

    content: Node


@dataclass(frozen=True, kw_only=True)
class Repeat(Node):
    """The content `min` to `max` times (None: no bound)."""

    content: Node
    min: int = 0
    max: int | None = None


@dataclass(frozen=True, kw_only=True)
class Tag(Node):
    """A content between two boundaries.

    Attributes:
        end: one of these ends it; empty: it ends with its content.
        name: what a parser of the output calls it; by default its number in the tree.
    """

    begin: Boundary
    content: Node
    end: tuple[Boundary, ...]
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class TriggeredTags(Node):
    """Free text in which a trigger begins a tag.

    A trigger is the beginning of the `begin` of some tags. Once it is complete, the text goes on with the rest of one of them; after the
    tag comes free text again.

    Attributes:
        at_least_one: the text may not end before a tag.
        stop_after_first: the end of the first tag ends it all.
        excludes: what may not be in the free text.
        text_before: there may be text before the first tag.
    """

    triggers: tuple[Boundary, ...]
    tags: tuple[Tag, ...]
    at_least_one: bool = False
    stop_after_first: bool = False
    excludes: tuple[Boundary, ...] = ()
    text_before: bool = True


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside a node."""
    if isinstance(node, Sequence | Or):
        return node.elements
    if isinstance(node, TriggeredTags):
        return node.tags
    if isinstance(node, Optional | Repeat | Tag):
        return (node.content,)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes inside it, outer ones first, in the order of the text; one that stands at several places, at the first."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(reversed(children(node)))


def pieces(boundary: Boundary) -> tuple[Piece, ...]:
    """The texts and tokens of a boundary, in order."""
    return boundary if isinstance(boundary, tuple) else (boundary,)


def boundary_of(node: Node) -> Boundary | None:
    """A node as a boundary; None for what is no text, token, or sequence of these."""
    parts = node.elements if isinstance(node, Sequence) else (node,)
    found = [part.value if isinstance(part, Text) else part for part in parts if isinstance(part, Text | Token)]
    return joined(*found) if len(found) == len(parts) else None


def reading(boundary: Boundary) -> Node:
    """A node that reads a boundary."""
    parts = tuple(Text(value=piece) if isinstance(piece, str) else piece for piece in pieces(boundary))
    return parts[0] if len(parts) == 1 else Sequence(elements=parts)


def joined(*boundaries: Boundary) -> Boundary:
    """Boundaries one after another, as one."""
    found: list[Piece] = []
    for piece in (piece for boundary in boundaries for piece in pieces(boundary) if piece != ""):
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        else:
            found.append(piece)
    return tuple(found) if len(found) > 1 else found[0] if found else ""


def tokens_of(node: Node) -> Iterator[Token]:
    """The tokens that a node itself names."""
    named: tuple[Boundary, ...] = ()
    if isinstance(node, Tag):
        named = (node.begin, *node.end)
    elif isinstance(node, TriggeredTags):
        named = (*node.triggers, *node.excludes)
    elif isinstance(node, AnyText | AnyToken):
        named = node.excludes
    elif isinstance(node, Token):
        named = (node,)
    yield from (piece for boundary in named for piece in pieces(boundary) if isinstance(piece, Token))
