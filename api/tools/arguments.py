"""Tools and choices as Python code gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .tool import Mode, Tool, ToolChoice, ToolError

ToolArgument = Tool | Mapping[str, Any]
ChoiceArgument = str | Mapping[str, Any] | None

_FIELDS = frozenset(("name", "description", "parameters", "strict"))
_MODES: dict[str, Mode] = {"none": "none", "auto": "auto", "required": "required"}


def tools_from(given: Sequence[ToolArgument] | None, choice: ToolChoice) -> list[Tool]:
    """The tools that may be called.

    Args:
        given: each a `Tool`, or a dict as OpenAI has it. They are strict unless `strict` is false.

    Raises:
        ToolError: with the place.
    """
    tools = [tool if isinstance(tool, Tool) else _tool(tool, f"tools[{index}]") for index, tool in enumerate(given or ())]
    if not tools and (choice.mode == "required" or choice.name is not None):
        raise ToolError("'tool_choice' needs 'tools'", field="tool_choice")
    return [] if choice.mode == "none" else tools


def choice_from(given: ChoiceArgument, *, parallel: bool) -> ToolChoice:
    """What `tool_choice` says: "auto", "required", "none", the name of a tool, or OpenAI's dict of one.

    Raises:
        ToolError: it is none of these.
    """
    if given is None:
        return ToolChoice(parallel=parallel)
    if isinstance(given, str):
        return ToolChoice(mode=_MODES[given], parallel=parallel) if given in _MODES else _named(given)
    function = given.get("function", given)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise ToolError("'tool_choice' must be a mode or name a function", field="tool_choice")
    return _named(name)


def _named(name: str) -> ToolChoice:
    return ToolChoice(mode="required", name=name, parallel=False)


def _tool(given: Mapping[str, Any], field: str) -> Tool:
    if not isinstance(given, Mapping) or given.get("type", "function") != "function":
        raise ToolError("a tool is a function", field=field)
    function = given.get("function", {key: value for key, value in given.items() if key != "type"})
    unknown = sorted(set(function) - _FIELDS)
    if unknown:
        raise ToolError(f"a function has no field {unknown[0]!r}", field=f"{field}.{unknown[0]}")
    if not isinstance(function.get("name"), str):
        raise ToolError("a function needs a name", field=f"{field}.name")
    strict = function.get("strict") is not False
    return Tool(
        name=function["name"], description=function.get("description"), parameters=function.get("parameters"), strict=strict, field=field
    )
