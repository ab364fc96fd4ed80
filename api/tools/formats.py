"""All formats, and which one a model uses."""

from __future__ import annotations

from .format import ToolFormat
from .json_formats import FunctionTag, Hermes, Llama3Json, Mistral, PlainJson
from .pythonic import Pythonic
from .tool import ToolError

FORMATS: dict[str, ToolFormat] = {
    tool_format.name: tool_format for tool_format in (Hermes(), Llama3Json(), Pythonic(), Mistral(), FunctionTag(), PlainJson())
}

# What only the chat templates of a format hold, most telling first.
_SIGNS = (
    ("[TOOL_CALLS]", "mistral"),
    ("<tool_call>", "hermes"),
    ("<function=", "function"),
    ("[func_name1(", "pythonic"),
    ('"parameters": ', "llama3_json"),
    ("<|python_tag|>", "llama3_json"),
)


def format_named(name: str) -> ToolFormat:
    """The format of a name.

    Raises:
        ToolError: there is none.
    """
    if name not in FORMATS:
        raise ToolError(f"there is no tool call format {name[:80]!r}; there is {', '.join(FORMATS)}", field="tool_call_format")
    return FORMATS[name]


def format_of_template(source: str | None) -> ToolFormat:
    """The format that a chat template uses; JSON objects where it knows no tools."""
    if source is not None and knows_tools(source):
        for sign, name in _SIGNS:
            if sign in source:
                return FORMATS[name]
    return FORMATS["json"]


def knows_tools(source: str) -> bool:
    """Whether a chat template tells a model about its tools."""
    return "tools" in source
