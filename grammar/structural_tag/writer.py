"""Trees as JSON."""

from __future__ import annotations

from typing import Any

from .spec import (
    AnyText,
    AnyToken,
    Boundary,
    GrammarText,
    JsonSchema,
    Node,
    Optional,
    Or,
    Regex,
    Repeat,
    Sequence,
    Tag,
    Text,
    Token,
    TriggeredTags,
    boundary_of,
    pieces,
)

Json = Any


def to_json(node: Node) -> dict[str, Json]:
    """The JSON form of a tree; `read_tree` reads it back."""
    if isinstance(node, Text):
        return {"type": "const_string", "value": node.value}
    if isinstance(node, Token):
        return {"type": "token", "token": node.token}
    if isinstance(node, AnyText):
        bounds = {"max_tokens": node.max_tokens, "max_chars": node.max_chars}
        return {"type": "any_text", "excludes": _boundaries(node.excludes), **bounds}
    if isinstance(node, AnyToken):
        return {"type": "exclude_token", "exclude_tokens": _boundaries(node.excludes)}
    if isinstance(node, GrammarText):
        return {"type": "grammar", "grammar": node.grammar, "notation": node.notation, "start": node.start}
    if isinstance(node, Regex):
        return {"type": "regex", "pattern": node.pattern, "dialect": node.dialect, "excludes": list(node.excludes)}
    if isinstance(node, JsonSchema):
        options = {"whitespace": node.whitespace, "property_order": node.property_order}
        return {"type": "json_schema", "json_schema": node.json_schema, "style": node.style, **options}
    if isinstance(node, Sequence):
        separated = _separated(node)
        if separated is not None:
            return separated
        return {"type": "sequence", "elements": [to_json(element) for element in node.elements]}
    if isinstance(node, Or):
        return {"type": "or", "elements": [to_json(element) for element in node.elements]}
    if isinstance(node, Optional):
        return {"type": "optional", "content": to_json(node.content)}
    if isinstance(node, Repeat):
        return {"type": "repeat", "content": to_json(node.content), "min": node.min, "max": node.max}
    if isinstance(node, Tag):
        begin, end = _boundary(node.begin), _boundaries(node.end)
        return {"type": "tag", "begin": begin, "content": to_json(node.content), "end": end, "name": node.name}
    assert isinstance(node, TriggeredTags)
    return {
        "type": "triggered_tags",
        "triggers": _boundaries(node.triggers),
        "tags": [to_json(tag) for tag in node.tags],
        "at_least_one": node.at_least_one,
        "stop_after_first": node.stop_after_first,
        "excludes": _boundaries(node.excludes),
        "text_before": node.text_before,
    }


def _separated(node: Sequence) -> dict[str, Json] | None:
    """One of some tags and then any number of them after a separator, so that they are written once; None if it is something else."""
    first, *more = node.elements
    tags = first.elements if isinstance(first, Or) else (first,)
    if len(more) != 1 or not isinstance(more[0], Repeat) or not all(isinstance(tag, Tag) for tag in tags):
        return None
    again = more[0]
    if (again.min, again.max) != (0, None) or not isinstance(again.content, Sequence) or len(again.content.elements) != 2:
        return None
    separator, tag = again.content.elements
    boundary = boundary_of(separator)
    if boundary is None or tag is not first:
        return None
    written = {"type": "tags_with_separator", "tags": [to_json(tag) for tag in tags], "separator": _boundary(boundary)}
    return {**written, "at_least_one": True}


def _boundary(boundary: Boundary) -> Json:
    if isinstance(boundary, str):
        return boundary
    parts = [Text(value=piece) if isinstance(piece, str) else piece for piece in pieces(boundary)]
    return to_json(parts[0] if len(parts) == 1 else Sequence(elements=tuple(parts)))


def _boundaries(boundaries: tuple[Boundary, ...]) -> list[Json]:
    return [_boundary(boundary) for boundary in boundaries]
