"""Calls as Python writes them: `[get_weather(city="Rome", days=3)]` (Llama 3.2 and 4). Values are JSON.

Each argument is a tag of its own, in the order of the schema. That needs a schema whose members do not depend on each other; any
other one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Any

from ...grammar.structural_tag import JsonSchema, Node, Optional, Sequence, Tag, Text
from .format import ARGUMENT, NAMED_CALL, WholeAnswerFormat, any_of, group, repeated
from .tool import NO_PARAMETERS, Tool, ToolError

Json = Any

_ANNOTATIONS = ("title", "description", "default", "examples", "$schema", "$id")
_KNOWN = frozenset(("type", "properties", "required", "additionalProperties", "$defs", "definitions", *_ANNOTATIONS))
_SCOPE = "urn:formcast:tool"


class Pythonic(WholeAnswerFormat):
    name = "pythonic"
    separator = ", "

    def calls(self, tools: Items[Tool], *, parallel: bool) -> Node:
        one = any_of([self.call(tool) for tool in tools])
        return group(repeated(one, self.separator) if parallel else one, begin="[", end="]")

    def call(self, tool: Tool) -> Tag:
        if not tool.name.isidentifier():
            raise ToolError(f"the format 'pythonic' needs a name that Python takes, not {tool.name!r}", field=f"{tool.field}.name")
        return Tag(name=NAMED_CALL + tool.name, begin=f"{tool.name}(", content=_arguments(tool), end=(")",))

    def written(self, name: str, arguments: str) -> str:
        return f"[{self._call(name, arguments)}]"

    def written_calls(self, calls: Items[tuple[str, str]]) -> str:
        return f"[{', '.join(self._call(name, arguments) for name, arguments in calls)}]"

    def beginnings(self, tools: Items[Tool]) -> list[str]:
        return [f"[{name}(" for name in sorted({tool.name for tool in tools})]

    @staticmethod
    def _call(name: str, arguments: str) -> str:
        values = json.loads(arguments)
        return f"{name}({', '.join(f'{key}={json.dumps(value, ensure_ascii=False)}' for key, value in values.items())})"


def _arguments(tool: Tool) -> Node:
    """All arguments in order: a sequence in which each optional one may be missing, with commas between those that are there."""
    schema = tool.parameters or NO_PARAMETERS
    field = f"{tool.field}.parameters"
    unknown = sorted(set(schema) - _KNOWN)
    if unknown:
        raise ToolError(f"the format 'pythonic' cannot enforce {unknown[0]!r} of a tool's parameters", field=field)
    properties, required = schema.get("properties", {}), set(schema.get("required", ()))
    if not isinstance(properties, Mapping) or not required <= set(properties):
        raise ToolError("the parameters of a tool need a schema for each required argument", field=field)
    for name in properties:
        if not name.isidentifier():
            raise ToolError(f"the format 'pythonic' needs arguments that Python takes, not {name!r}", field=field)
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
    return Tag(name=ARGUMENT + name, begin=f"{name}=", content=JsonSchema(json_schema=value), end=("",))
