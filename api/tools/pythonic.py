"""Calls as Python writes them: `[get_weather(city="Rome", days=3)]`. Values are JSON; `True`, `False` and `None` are understood where
they are all of an argument.

Each argument is a tag of its own, in the order of the schema. That needs a schema whose members do not depend on each other; any
other one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Any

from ...grammar.grammar import Grammar
from ...grammar.structural_tag import JsonSchema, Node, Optional, Or, Sequence, Tag, Text, Token
from ...grammar.structural_tag.spec import Boundary
from .format import SectionFormat, ToolFormat, WholeAnswerFormat, any_of, group, repeated
from .labels import ARGUMENT, CONSTANT, NAMED_CALL
from .tool import NO_PARAMETERS, Tool, ToolError

Json = Any

_ANNOTATIONS = ("title", "description", "default", "examples", "$schema", "$id")
_KNOWN = frozenset(("type", "properties", "required", "additionalProperties", "$defs", "definitions", *_ANNOTATIONS))
_CONSTANTS = {"true": "True", "false": "False", "null": "None"}
_SCOPE = "urn:formcast:tool"


class _PythonicCall(ToolFormat):
    def call(self, tool: Tool) -> Tag:
        if not tool.name.isidentifier():
            raise ToolError(f"the format {self.name!r} needs a name that Python takes, not {tool.name!r}", field=f"{tool.field}.name")
        return Tag(name=NAMED_CALL + tool.name, begin=f"{tool.name}(", content=_arguments(tool), end=(")",))

    def bare(self, name: str, arguments: str) -> str:
        values = json.loads(arguments)
        return f"{name}({', '.join(f'{key}={_value(value)}' for key, value in values.items())})"


class Pythonic(_PythonicCall, WholeAnswerFormat):
    """Calls in square brackets, which are the whole answer: Llama 3.2."""

    name = "pythonic"
    separator = ", "

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        one = self.one_of(tools)
        return group(repeated(one, self.separator) if parallel else one, begin="[", end="]")

    def written(self, name: str, arguments: str) -> str:
        return self.written_calls([(name, arguments)])

    def written_calls(self, calls: Items[tuple[str, str]]) -> str:
        return f"[{', '.join(self.bare(name, arguments) for name, arguments in calls)}]"

    def beginnings(self, tools: Items[Tool]) -> list[str]:
        return [f"[{name}(" for name in sorted({tool.name for tool in tools})]


class Llama4Pythonic(Pythonic):
    """The same, maybe between `<|python_start|>` and `<|python_end|>`: Llama 4."""

    name = "llama4_pythonic"
    _START, _END = "<|python_start|>", "<|python_end|>"

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        plain = super().calls(tools, parallel=parallel)
        return Or(elements=(group(plain, begin=Token(token=self._START), end=Token(token=self._END)), plain))

    def beginnings(self, tools: Items[Tool]) -> list[str]:
        return [*super().beginnings(tools), self._START]


@dataclass(frozen=True, kw_only=True)
class PythonicSection(_PythonicCall, SectionFormat):
    """Calls in a section: OLMo 3, LFM 2."""

    name: str
    begin: Boundary
    end: Boundary
    opening: str = ""
    closing: str = ""
    separator: str = ", "


def _arguments(tool: Tool) -> Node:
    """All arguments in order: a sequence in which each optional one may be missing, with commas between those that are there."""
    schema = tool.parameters or NO_PARAMETERS
    field = f"{tool.field}.parameters"
    unknown = sorted(set(schema) - _KNOWN)
    if unknown:
        raise ToolError(f"this format cannot enforce {unknown[0]!r} of a tool's parameters", field=field)
    properties, required = schema.get("properties", {}), set(schema.get("required", ()))
    if not isinstance(properties, Mapping) or not required <= set(properties):
        raise ToolError("the parameters of a tool need a schema for each required argument", field=field)
    for name in properties:
        if not name.isidentifier():
            raise ToolError(f"this format needs arguments that Python takes, not {name!r}", field=field)
    tags = [(_argument(tool, schema, name), name in required) for name in properties]
    after: list[Node] = []  # each argument after a comma
    for tag, is_required in tags:
        with_comma = Sequence(elements=(Text(value=", "), tag))
        after.append(with_comma if is_required else Optional(content=with_comma))
    ways: list[Node] = []  # by the argument that comes first
    for index, (tag, is_required) in enumerate(tags):
        ways.append(Sequence(elements=(tag, *after[index + 1 :])))
        if is_required:
            return any_of(ways)
    return any_of([*ways, Text(value="")])


def _argument(tool: Tool, schema: Mapping[str, Json], name: str) -> Tag:
    if not tool.strict:
        value: Json = True
    else:
        scope = schema.get("$id", _SCOPE)
        value = {"$ref": f"{scope}#/properties/{name}", "$defs": {"tool": {**schema, "$id": scope}}}
        if "$schema" in schema:
            value["$schema"] = schema["$schema"]
    return Tag(name=ARGUMENT + name, begin=f"{name}=", content=_with_constants(value), end=("",))


def _with_constants(schema: Json) -> Node:
    """A value as JSON, or a constant as Python spells it where the schema admits it."""
    grammar = Grammar.json_schema(schema)
    constants = [
        Tag(name=CONSTANT + word, begin=spelling, content=Text(value=""), end=("",))
        for word, spelling in _CONSTANTS.items()
        if grammar.accepts(word)
    ]
    return any_of([JsonSchema(json_schema=schema), *constants])


def _value(value: Json) -> str:
    return repr(value) if value is None or isinstance(value, bool) else json.dumps(value, ensure_ascii=False)
