"""Tools as `/v1/responses` spells them: a function is not wrapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ..tools.tool import Tool, ToolChoice
from .strict import StrictModel
from .tools import FunctionBody, callable_tools


class FunctionTool(StrictModel):
    """One of `tools`. As with OpenAI, it is strict unless `strict` is false."""

    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class NamedChoice(StrictModel):
    type: Literal["function"]
    name: str


class AllowedChoice(StrictModel):
    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: list[NamedChoice]


ChoiceBody = Literal["none", "auto", "required"] | NamedChoice | AllowedChoice


def tools_of(given: Sequence[FunctionTool] | None, choice: ChoiceBody | None) -> list[Tool]:
    """The tools of a body that may be called.

    Raises:
        ApiError: 400.
    """
    functions = [_function(tool) for tool in given] if given else None  # clients send an empty list for none
    allowed = {tool.name for tool in choice.tools} if isinstance(choice, AllowedChoice) else None
    return callable_tools(functions, "", is_off=choice in (None, "none", "auto"), is_none=choice == "none", allowed=allowed)


def choice_of(given: ChoiceBody | None, *, parallel: bool | None) -> ToolChoice:
    """What a body says about the use of its tools."""
    if isinstance(given, NamedChoice):
        return ToolChoice(mode="required", name=given.name, parallel=False)
    mode = given.mode if isinstance(given, AllowedChoice) else given or "auto"
    return ToolChoice(mode=mode, parallel=parallel is not False)


def _function(tool: FunctionTool) -> FunctionBody:
    return FunctionBody(name=tool.name, description=tool.description, parameters=tool.parameters, strict=tool.strict is not False)
