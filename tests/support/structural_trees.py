"""Random trees of structural tags, texts of them, and an independent recogniser."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

_SCHEMAS: tuple[Any, ...] = (
    {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False},
    {"enum": ["x", 1, None]},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 3}, "maxItems": 2},
    {"type": "integer", "minimum": 0, "maximum": 20},
)
_LEAVES = ("const_string", "regex", "json_schema", "grammar", "any_text", "triggered_tags")
_INNER = ("sequence", "or", "optional", "repeat", "tag", "tags_with_separator")
_WORDS = ("", "a", "b", "ab", "é<", "</t>", "<", "x")
_BEGINS = ("<a>", "<a", "<ab>", "<b>", "[a", "<")
_ENDS = ("</a>", "</", ">", "]", "a", "")
_PATTERNS = ("[ab]", "a+", "[^<]{1,3}", "(<|a)b?", "x")


def random_tree(rng: random.Random, depth: int = 3) -> Json:
    """The JSON form of a tree; it may be one that is refused."""
    kind = rng.choice(_LEAVES if depth == 0 else (*_LEAVES, *_INNER, *_INNER))
    if kind == "const_string":
        return {"type": kind, "value": rng.choice(_WORDS)}
    if kind == "regex":
        return {"type": kind, "pattern": rng.choice(_PATTERNS)}
    if kind == "json_schema":
        return {"type": kind, "json_schema": rng.choice(_SCHEMAS), "whitespace": "compact"}
    if kind == "grammar":
        return {"type": kind, "grammar": 'root ::= "(" root ")" | "a" | "b" root'}
    if kind == "any_text":
        return {"type": kind, "excludes": rng.sample(("<b", "ab", "aa"), rng.randrange(2))}
    if kind == "triggered_tags":
        tags = [random_tag(rng, depth) for _ in range(rng.randint(1, 3))]
        triggers = {tag["begin"][: rng.randint(1, len(tag["begin"]))] for tag in tags}
        flags = {name: rng.random() < 0.4 for name in ("at_least_one", "stop_after_first", "text_before")}
        return {"type": kind, "triggers": sorted(triggers), "tags": tags, **flags}
    if kind in ("sequence", "or"):
        return {"type": kind, "elements": [random_tree(rng, depth - 1) for _ in range(rng.randint(1, 3))]}
    if kind == "optional":
        return {"type": kind, "content": random_tree(rng, depth - 1)}
    if kind == "repeat":
        low = rng.randrange(3)
        return {"type": kind, "content": random_tree(rng, depth - 1), "min": low, "max": rng.choice((-1, low, low + 2))}
    if kind == "tags_with_separator":
        tags = [random_tag(rng, depth) for _ in range(rng.randint(1, 2))]
        return {"type": kind, "tags": tags, "separator": rng.choice((",", "a")), "at_least_one": rng.random() < 0.5}
    return random_tag(rng, depth)


def random_tag(rng: random.Random, depth: int) -> Json:
    ends = rng.sample(_ENDS, rng.choice((1, 1, 2)))
    content = random_tree(rng, max(depth - 1, 0)) if depth else {"type": "any_text"}
    return {"type": "tag", "begin": rng.choice(_BEGINS), "content": content, "end": ends if len(ends) > 1 else ends[0]}
