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
        bound = {"max_chars": rng.randrange(4)} if rng.random() < 0.3 else {}
        return {"type": kind, "excludes": rng.sample(("<b", "ab", "aa"), rng.randrange(2)), **bound}
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


class Recogniser:
    """Whether a text is one of a tree, by trying everything. Knows the leaves from whole grammars of their own.

    Args:
        leaf: node, text -> whether the text as a whole is one of a regex, schema or grammar.
    """

    def __init__(self, text: str, leaf: Any):
        self._text = text
        self._leaf = leaf

    def accepts(self, tree: Json) -> bool:
        return len(self._text) in self._after(tree, 0, None)

    def _after(self, node: Json, at: int, ends: list[str] | None) -> set[int]:
        """Places after a node that begins `at`, and after the end of the tag whose last part it is."""
        kind = node["type"]
        if kind == "any_text":
            return self._free(at, [], {}, node.get("excludes", []), ends, set(), may_end=True, most=node.get("max_chars"))
        if kind == "triggered_tags":
            return self._triggered(node, at, ends)
        if kind == "sequence":
            *first, last = node["elements"]
            places = {at}
            for element in first:
                places = {after for place in places for after in self._after(element, place, None)}
            return {after for place in places for after in self._after(last, place, ends)}
        if kind == "or":
            return {after for element in node["elements"] for after in self._after(element, at, ends)}
        if kind == "optional":
            return self._after(node["content"], at, ends) | self._close({at}, ends)
        return self._close(self._plain(node, at), ends)

    def _plain(self, node: Json, at: int) -> set[int]:
        kind, text = node["type"], self._text
        if kind == "const_string":
            return {at + len(node["value"])} if text.startswith(node["value"], at) else set()
        if kind == "repeat":
            return self._repeated(node, at)
        if kind == "tag":
            ends = node["end"] if isinstance(node["end"], list) else [node["end"]]
            return self._after(node["content"], at + len(node["begin"]), ends) if text.startswith(node["begin"], at) else set()
        if kind == "tags_with_separator":
            one = {"type": "or", "elements": node["tags"]}
            more = {"type": "sequence", "elements": [{"type": "const_string", "value": node["separator"]}, one]}
            places = self._after(one, at, None)
            reached = places | {p for place in places for p in self._repeated({"content": more, "min": 0, "max": -1}, place)}
            return reached if node["at_least_one"] else reached | {at}
        return {after for after in range(at, len(text) + 1) if self._leaf(node, text[at:after])}

    def _repeated(self, node: Json, at: int) -> set[int]:
        places, found, count = {at}, set(), 0
        seen: set[int] = set()
        while places and (node["max"] == -1 or count <= node["max"]):
            if count >= node["min"]:
                found |= places
                if node["max"] == -1 and places <= seen:
                    break
                seen |= places
            places = {after for place in places for after in self._after(node["content"], place, None)}
            count += 1
        return found

    def _close(self, places: set[int], ends: list[str] | None) -> set[int]:
        if ends is None:
            return places
        return {place + len(end) for place in places for end in ends if self._text.startswith(end, place)}

    def _triggered(self, node: Json, at: int, ends: list[str] | None) -> set[int]:
        found: set[int] = set()
        done: set[int] = set()
        todo = [(at, True)]
        while todo:
            at, first = todo.pop()
            tags: set[int] = set()
            if first and not node["text_before"]:
                for tag in node["tags"]:
                    tags |= self._plain(tag, at)
                if not node["at_least_one"]:
                    found |= self._close({at}, ends)
            else:
                may_end = not first or not node["at_least_one"]
                found |= self._free(at, node["triggers"], {"tags": node["tags"]}, node.get("excludes", []), ends, tags, may_end=may_end)
            if node["stop_after_first"]:
                found |= self._close(tags, ends)
            else:
                todo.extend((place, False) for place in tags - done)
                done |= tags
        return found

    def _free(
        self,
        at: int,
        triggers: list[str],
        node: Json,
        excludes: list[str],
        ends: list[str] | None,
        tags: set[int],
        *,
        may_end: bool,
        most: int | None = None,
    ) -> set[int]:
        """Places after free text and the end around it; places after the tags that its triggers begin are added to `tags`."""
        exits = ends if may_end and ends is not None and "" not in ends else []
        found: set[int] = set()
        place = at
        while True:
            watched = {word for word in (*triggers, *exits, *excludes) if place - len(word) >= at and self._text[:place].endswith(word)}
            if watched:
                longest = max(watched, key=len)
                if longest in exits:
                    if most is None or place - len(longest) - at <= most:
                        found.add(place)
                elif longest in triggers:
                    for tag in node["tags"]:
                        if tag["begin"].startswith(longest):
                            tags |= self._plain(tag, place - len(longest))
                return found
            if may_end and not exits and (most is None or place - at <= most):
                found |= self._close({place}, ends)
            if place == len(self._text):
                return found
            place += 1
