"""Masks of random trees and of tool calls over real vocabularies."""

from __future__ import annotations

import random

import pytest
from real_vocabularies import NAMES, check_masks, vocabulary
from structural_trees import random_tree

from formcast import Grammar, GrammarError
from formcast.api.tools.formats import FORMATS
from formcast.api.tools.tool import Tool, ToolChoice

pytestmark = pytest.mark.slow

_PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer"}, "any": {}},
    "required": ["city"],
    "additionalProperties": False,
}
_TOOLS = [Tool(name="get_weather", parameters=_PARAMETERS, strict=True), Tool(name="get", parameters=_PARAMETERS, strict=True), Tool(name="stop")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_masks_of_random_trees(name: str, seed: int):
    rng = random.Random(seed)
    while True:
        try:
            grammar = Grammar.structural_tag(random_tree(rng))
        except GrammarError:
            continue
        return check_masks(grammar, vocabulary(name), rng, 3)


@pytest.mark.parametrize("name", FORMATS)
def test_masks_of_tool_calls(name: str):
    """Walks that pass the begin of a call: its text is taken first."""
    rng = random.Random(name)
    grammar = Grammar.structural_tag(FORMATS[name].tree(_TOOLS, ToolChoice(mode="required")))
    check_masks(grammar, vocabulary(rng.choice(NAMES)), rng, 8)
