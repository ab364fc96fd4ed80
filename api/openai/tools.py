"""Tools in request bodies, and calls in messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ...grammar.errors import GrammarError
from ...grammar.structural_tag.part_of import part_of
from ..constraints import Constraint
from ..tools.format import ToolFormat
from ..tools.tool import Mode, Tool, ToolChoice, ToolError
from ..tools.use import ToolUse, ToolUses
from .errors import bad_request
from .strict import StrictModel

_MAX_TOOLS = 1024


class FunctionBody(StrictModel):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolBody(StrictModel):
    """One of `tools`."""

    type: Literal["function"]
    function: FunctionBody


class CalledFunction(StrictModel):
    name: str
    arguments: str


class CallBody(StrictModel):
    """One of the `tool_calls` of an assistant's message."""

    id: str | None = None
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = None


class NamedFunction(StrictModel):
    name: str


class NamedTool(StrictModel):
    type: Literal["function"]
    function: NamedFunction


class AllowedTools(StrictModel):
    mode: Literal["auto", "required"]
    tools: list[NamedTool]


class AllowedToolsChoice(StrictModel):
    """`tool_choice` with a part of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


ToolChoiceBody = Literal["none", "auto", "required"] | NamedTool | AllowedToolsChoice


def tools_of(given: Sequence[ToolBody] | None, choice: ToolChoiceBody | None) -> list[Tool]:
    """The tools of a body that may be called.

    Raises:
        ApiError: 400.
    """
    if given is None:
        if choice not in (None, "none"):
            raise bad_request("'tool_choice' needs 'tools'", param="tool_choice")
        return []
    if not 0 < len(given) <= _MAX_TOOLS:
        raise bad_request(f"'tools' has 1 to {_MAX_TOOLS} entries, not {len(given)}", param="tools")
    if choice == "none":
        return []
    try:
        tools = [_tool(body.function, f"tools[{index}].function") for index, body in enumerate(given)]
    except ToolError as error:
        raise bad_request(str(error), param=error.field) from None
    if not isinstance(choice, AllowedToolsChoice):
        return tools
    names = {tool.function.name for tool in choice.allowed_tools.tools}
    unknown = names - {tool.name for tool in tools}
    if unknown or not names:
        raise bad_request(f"there is no tool of the name {min(unknown, default='')!r} to allow", param="tool_choice.allowed_tools.tools")
    return [tool for tool in tools if tool.name in names]


def use_of(
    uses: ToolUses,
    tool_format: ToolFormat,
    tools: Sequence[Tool],
    choice: ToolChoiceBody | None,
    *,
    parallel: bool | None,
    constraint: Constraint | None,
) -> ToolUse:
    """How the tools of a body are used.

    Args:
        constraint: what an answer without calls has to be.

    Raises:
        ApiError: 400.
    """
    try:
        final = None if constraint is None else part_of(constraint.grammar)
        return uses.use(tool_format, tools, _choice(choice, parallel is not False), final)
    except ToolError as error:
        raise bad_request(str(error), param=error.field, code="invalid_tool") from None
    except GrammarError as error:
        assert constraint is not None
        raise bad_request(f"'{constraint.field}' does not go with 'tools': {error}", param=constraint.field) from None


def _tool(body: FunctionBody, field: str) -> Tool:
    return Tool(name=body.name, description=body.description, parameters=body.parameters, strict=bool(body.strict), field=field)


def _choice(given: ToolChoiceBody | None, parallel: bool) -> ToolChoice:
    if isinstance(given, NamedTool):
        return ToolChoice(mode="required", name=given.function.name, parallel=False)
    mode: Mode = given.allowed_tools.mode if isinstance(given, AllowedToolsChoice) else given or "auto"
    return ToolChoice(mode=mode, parallel=parallel)


def message_calls(given: Sequence[CallBody]) -> list[dict[str, Any]]:
    """Calls of a message as chat templates read them, their arguments still as text."""
    return [{"id": call.id, "type": "function", "function": call.function.model_dump()} for call in given]
