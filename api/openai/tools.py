"""Tools in request bodies, and calls in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from ..tools.tool import Mode, Tool, ToolChoice, ToolError
from .errors import bad_request
from .strict import StrictModel

_MAX_TOOLS = 1024
_FUNCTIONS_ONLY = {"custom": "only tools of the type 'function' are served"}


class FunctionBody(StrictModel):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolBody(StrictModel):
    """One of `tools`."""

    type: Literal["function"]
    function: FunctionBody

    hints: ClassVar[Mapping[str, str]] = _FUNCTIONS_ONLY | dict.fromkeys(
        ("name", "description", "parameters", "strict", "input_schema"), "it belongs into 'function'"
    )


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

    hints: ClassVar[Mapping[str, str]] = _FUNCTIONS_ONLY | {"name": "it belongs into 'function'"}


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
    allowed = None
    if isinstance(choice, AllowedToolsChoice):
        allowed = {tool.function.name for tool in choice.allowed_tools.tools}
    functions = None if given is None else [body.function for body in given]
    return callable_tools(functions, ".function", is_off=choice in (None, "none"), is_none=choice == "none", allowed=allowed)


def callable_tools(
    functions: Sequence[FunctionBody] | None,
    path: str,
    *,
    is_off: bool,
    is_none: bool,
    allowed: set[str] | None,
    field: str = "tools",
    choice_field: str = "tool_choice",
) -> list[Tool]:
    """The functions of a body that may be called.

    Args:
        functions: None if the body has none.
        path: where a function stands inside its entry of `field`.
        is_off: the body's choice needs no tools.
        is_none: the body's choice is to call none.
        allowed: names of those that the choice allows; None for all.
        field, choice_field: of the body.

    Raises:
        ApiError: 400.
    """
    if functions is None:
        if not is_off:
            raise bad_request(f"'{choice_field}' needs '{field}'", param=choice_field)
        return []
    if not 0 < len(functions) <= _MAX_TOOLS:
        raise bad_request(f"'{field}' has 1 to {_MAX_TOOLS} entries, not {len(functions)}", param=field)
    if is_none:
        return []
    try:
        tools = [_tool(body, f"{field}[{index}]{path}") for index, body in enumerate(functions)]
    except ToolError as error:
        raise bad_request(str(error), param=error.field) from None
    if allowed is None:
        return tools
    unknown = allowed - {tool.name for tool in tools}
    if unknown or not allowed:
        raise bad_request(f"there is no tool of the name {min(unknown, default='')!r} to allow", param="tool_choice")
    return [tool for tool in tools if tool.name in allowed]


def choice_of(given: ToolChoiceBody | None, *, parallel: bool | None) -> ToolChoice:
    """What a body says about the use of its tools."""
    if isinstance(given, NamedTool):
        return ToolChoice(mode="required", name=given.function.name, parallel=False)
    mode: Mode = given.allowed_tools.mode if isinstance(given, AllowedToolsChoice) else given or "auto"
    return ToolChoice(mode=mode, parallel=parallel is not False)


def _tool(body: FunctionBody, field: str) -> Tool:
    return Tool(name=body.name, description=body.description, parameters=body.parameters, strict=body.strict is not False, field=field)


def message_calls(given: Sequence[CallBody]) -> list[dict[str, Any]]:
    """Calls of a message as chat templates read them, their arguments still as text."""
    return [{"id": call.id, "type": "function", "function": call.function.model_dump()} for call in given]
