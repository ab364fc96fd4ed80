"""Structural tags: free text and tags with a grammar inside, and the parser of such texts.

The parser and the grammar are loaded when first used: a vocabulary needs the spelling of special tokens only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import Event, TagBegin, TagDelta, TagEnd, TextDelta
from .spec import AnyText, AnyToken, GrammarText, JsonSchema, Node, Optional, Or, Regex, Repeat, Sequence, Tag, Text, Token, TriggeredTags
from .writer import to_json

if TYPE_CHECKING:
    from .parser import StructuralParser

__all__ = [
    "AnyText",
    "AnyToken",
    "Event",
    "GrammarText",
    "JsonSchema",
    "Node",
    "Optional",
    "Or",
    "Regex",
    "Repeat",
    "Sequence",
    "StructuralParser",
    "Tag",
    "TagBegin",
    "TagDelta",
    "TagEnd",
    "Text",
    "TextDelta",
    "Token",
    "TriggeredTags",
    "to_json",
]


def __getattr__(name: str) -> Any:
    if name == "StructuralParser":
        from .parser import StructuralParser

        return StructuralParser
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
