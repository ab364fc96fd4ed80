"""The older form of tool calls: `functions`, `function_call`, and messages of the role `function`. At most one call an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ..tools.tool import Tool, ToolChoice
from .errors import bad_request
from .tools import FunctionBody, NamedFunction, callable_tools

FunctionChoice = Literal["none", "auto"] | NamedFunction


def functions_of(given: Sequence[FunctionBody] | None, choice: FunctionChoice | None) -> list[Tool]:
    """The functions of a body that may be called, as tools.

    Raises:
        ApiError: 400.
    """
    off, none = choice in (None, "none"), choice == "none"
    return callable_tools(given, "", is_off=off, is_none=none, allowed=None, field="functions", choice_field="function_call")


def function_choice_of(given: FunctionChoice | None) -> ToolChoice:
    """What a body says about the use of its functions."""
    if isinstance(given, NamedFunction):
        return ToolChoice(mode="required", name=given.name, parallel=False, field="function_call")
    return ToolChoice(mode=given or "auto", parallel=False)


def refuse_both(body: Any) -> None:
    """Refuses a body with both forms.

    Raises:
        ApiError: 400, with both names.
    """
    older = next((name for name in ("functions", "function_call") if getattr(body, name) is not None), None)
    newer = next((name for name in ("tools", "tool_choice", "parallel_tool_calls") if getattr(body, name) is not None), None)
    if older is not None and newer is not None:
        raise bad_request(f"'{older}' is the older form of tool calls and does not go with '{newer}'", param=older)
