"""Other grammars as parts of a tree."""

from __future__ import annotations

import json

from .. import json_text
from ..errors import GrammarError
from ..grammar import Grammar
from .grammar import TagGrammar
from .spec import GrammarText, JsonSchema, Node, Or, Regex, Text


def part_of(grammar: Grammar) -> Node:
    """The node that admits what a grammar admits.

    Raises:
        GrammarError: it has options that a part of a tree has not: separators, a draft or a registry.
    """
    if isinstance(grammar, TagGrammar):
        return grammar.tree
    kind, first, *options = json.loads(grammar.key)
    if kind == "json_schema":
        whitespace, property_order, separators, draft, registry = options
        if separators is not None or draft is not None or registry != "{}":
            raise GrammarError("a schema with separators, a draft or a registry of its own cannot be a part of a structural tag")
        return JsonSchema(json_schema=json_text.loads(first), whitespace=whitespace, property_order=property_order)
    if kind == "regex":
        return Regex(pattern=first, dialect=options[0])
    if kind == "choice":
        return Or(elements=tuple(Text(value=text) for text in first))
    return GrammarText(grammar=first, notation=kind, start=options[0])
