"""Earlier calls and their results, for chat templates that know them and for those that do not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .format import ToolFormat
from .tool import Tool

Message = dict[str, Any]


def for_template(messages: Sequence[Message], source: str = "") -> list[Message]:
    """Messages as templates that know tools read them: the arguments of calls are values, not texts.

    Args:
        source: of the template. Some call an earlier thought `thinking`, and take it or a content beside calls.
    """
    renamed = [_with_thinking(message) for message in messages] if "message.thinking" in source else messages
    return [_with_values({**message, "content": message.get("content") or ""}) for message in renamed]


def _with_thinking(message: Message) -> Message:
    thought = message.get("reasoning_content")
    return message if not thought or (message.get("content") and message.get("tool_calls")) else {**message, "thinking": thought}


def for_plain_template(messages: Sequence[Message], tools: Sequence[Tool], tool_format: ToolFormat) -> list[Message]:
    """Messages for a template that knows no tools: what tools there are is said in a system message, calls are written out, and
    results come from the user."""
    told = [_written(message, tool_format) for message in messages]
    if not tools:
        return told
    text = tool_format.instructions(tools)
    if told and told[0]["role"] == "system":
        return [{**told[0], "content": f"{told[0]['content']}\n\n{text}"}, *told[1:]]
    return [{"role": "system", "content": text}, *told]


def _with_values(message: Message) -> Message:
    if not message.get("tool_calls"):
        return message
    calls = [{**call, "function": _with_value(call["function"])} for call in message["tool_calls"]]
    return {**message, "tool_calls": calls}


def _with_value(function: dict[str, Any]) -> dict[str, Any]:
    value = function["arguments"]
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):  # a client may send back what was cut
            value = json.loads(value or "{}")
    return {**function, "arguments": value}


def _text_of(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _written(message: Message, tool_format: ToolFormat) -> Message:
    if message["role"] == "tool":
        return {"role": "user", "content": f"<tool_response>\n{message['content']}\n</tool_response>"}
    if not message.get("tool_calls"):
        return message
    calls = [(call["function"]["name"], _text_of(call["function"]["arguments"])) for call in message["tool_calls"]]
    pieces = [message.get("content"), tool_format.written_calls(calls)]
    return {"role": "assistant", "content": "\n".join(piece for piece in pieces if piece)}
