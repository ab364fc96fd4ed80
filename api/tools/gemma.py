"""Calls of Gemma 4 and FunctionGemma: `call:name{city:<|"|>Rome<|"|>,days:3}` between two tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ...grammar.structural_tag import JsonSchema, Tag, Token
from ...grammar.structural_tag.bare_values import BARE_STYLES, is_bare
from ...grammar.structural_tag.spec import joined
from .format import TriggeredFormat, spelled
from .tool import Tool

Json = Any


@dataclass(frozen=True, kw_only=True)
class GemmaCalls(TriggeredFormat):
    """Attributes:
    trigger, end: before and after a call.
    bare_style: of the arguments.
    """

    name: str
    trigger: Token
    end: Token
    bare_style: str
    separator: str = ""

    def call(self, tool: Tool) -> Tag:
        content = JsonSchema(json_schema=tool.schema, style=self.bare_style)
        begin = joined(self.trigger, f"call:{tool.name}")
        return Tag(name=f"{self.bare_style} call:{tool.name}", begin=begin, content=content, end=(self.end,))

    def written(self, name: str, arguments: str) -> str:
        bare = bare_text(json.loads(arguments), spelled(BARE_STYLES[self.bare_style].quote))
        return f"{spelled(self.trigger)}call:{name}{bare}{spelled(self.end)}"


def bare_text(value: Json, quote: str) -> str:
    """A JSON value as these models write it."""
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, list):
        return f"[{','.join(bare_text(item, quote) for item in value)}]"
    if isinstance(value, dict):
        members = (f"{name if is_bare(name) else bare_text(name, quote)}:{bare_text(item, quote)}" for name, item in value.items())
        return "{" + ",".join(members) + "}"
    return json.dumps(value)


class BareReader:
    """Turns a value, as its pieces arrive, into JSON text.

    Args:
        quote: before and after each string.
    """

    def __init__(self, quote: str):
        self._quote = quote
        self._held = ""  # may be the beginning of a quote
        self._in_string = False
        self._open: list[str] = []
        self._name: str | None = None  # what is read of the name of a member; None elsewhere

    def feed(self, text: str) -> str:
        text = self._held + text
        self._held = ""
        found: list[str] = []
        at = 0
        while at < len(text):
            end = text.find(self._quote[0], at)
            end = len(text) if end < 0 else end
            found.append(self._plain(text[at:end]))
            at = end
            if text.startswith(self._quote, at):
                self._in_string = not self._in_string
                found.append('"' if self._name is None else "")
                at += len(self._quote)
            elif self._quote.startswith(text[at:]):
                self._held, at = text[at:], len(text)
            elif at < len(text):
                found.append(self._plain(text[at]))
                at += 1
        return "".join(found)

    def _plain(self, text: str) -> str:
        if self._in_string and self._name is not None:
            self._name += text
            return ""
        if self._in_string:
            return json.dumps(text, ensure_ascii=False)[1:-1]
        return "".join(map(self._outside, text))

    def _outside(self, char: str) -> str:
        """What a character outside of strings becomes."""
        if self._name is not None and char not in ":}":
            self._name += char
            return ""
        if char == ":":
            name, self._name = self._name or "", None
            return f"{json.dumps(name, ensure_ascii=False)}: "
        if char in "{[":
            self._open.append(char)
        elif char in "}]":
            self._open.pop()
        self._name = "" if char == "{" or (char == "," and self._open[-1] == "{") else None
        return ", " if char == "," else char
