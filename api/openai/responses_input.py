"""`input` of `/v1/responses` -> messages as chat templates read them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ValidationError

from .errors import bad_request, from_validation, not_supported
from .strict import StrictModel


class InputContent(StrictModel):
    """A piece of a message. What an answer held can be sent back as it is."""

    type: Literal["input_text", "output_text", "text", "refusal", "input_image", "input_file", "input_audio"]
    text: str | None = None
    refusal: str | None = None
    annotations: Any = None
    logprobs: Any = None
    parsed: Any = None
    image_url: Any = None
    detail: Any = None
    file_id: Any = None
    file_data: Any = None
    file_url: Any = None
    filename: Any = None
    input_audio: Any = None


class InputMessage(StrictModel):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[InputContent]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class FunctionCall(StrictModel):
    """A call of the assistant, as an answer held it."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None
    parsed_arguments: Any = None


class FunctionCallOutput(StrictModel):
    """The result of a call."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | list[InputContent]
    id: str | None = None
    name: str | None = None
    status: str | None = None


class ReasoningContent(StrictModel):
    type: Literal["reasoning_text", "summary_text"]
    text: str


class ReasoningItem(StrictModel):
    """A thought of the assistant, as an answer held it."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: list[ReasoningContent] | None = None
    content: list[ReasoningContent] | None = None
    encrypted_content: str | None = None
    status: str | None = None


Item = InputMessage | FunctionCall | FunctionCallOutput | ReasoningItem
_ITEMS: dict[Any, type[Item]] = {
    "message": InputMessage,
    "function_call": FunctionCall,
    "function_call_output": FunctionCallOutput,
    "reasoning": ReasoningItem,
}


def input_messages(given: Any, instructions: str | None) -> list[dict[str, Any]]:
    """Messages in order, the instructions first. The thought, the text and the calls of one answer are one message.

    Raises:
        ApiError: 400 for items and contents of other kinds, with their path.
    """
    messages = [{"role": "system", "content": instructions}] if instructions else []
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise bad_request("'input' must be a text or a list of items", param="input")
    for index, item in enumerate(given):
        path = f"input[{index}]"
        _add(messages, _item(item, path), path)
    return messages


def _item(item: Any, path: str) -> Item:
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if kind == "item_reference":
        raise bad_request("answers are never kept here: send the items themselves", param=path, code="unsupported_parameter")
    if kind is not None and (not isinstance(kind, str) or kind not in _ITEMS):
        raise not_supported(f"an item of type '{str(kind)[:64]}'", param=f"{path}.type")
    try:
        return _ITEMS.get(kind, InputMessage).model_validate(item)
    except ValidationError as error:
        raise from_validation(error, prefix=path) from None


def _add(messages: list[dict[str, Any]], item: Item, path: str) -> None:
    """Adds an item to the messages, or to the last of them."""
    if isinstance(item, InputMessage):
        role, content = "system" if item.role == "developer" else item.role, _text(item.content, f"{path}.content")
        last = messages[-1] if messages else {}
        if role == "assistant" and set(last) == {"role", "content", "reasoning_content"} and not last["content"]:
            last["content"] = content
        else:
            messages.append({"role": role, "content": content})
    elif isinstance(item, FunctionCallOutput):
        messages.append({"role": "tool", "content": _text(item.output, f"{path}.output"), "tool_call_id": item.call_id})
    elif isinstance(item, FunctionCall):
        if not messages or messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": ""})
        function = {"name": item.name, "arguments": item.arguments}
        messages[-1].setdefault("tool_calls", []).append({"id": item.call_id, "type": "function", "function": function})
    else:
        if item.encrypted_content:
            raise not_supported("a thought that is encrypted", param=f"{path}.encrypted_content")
        thought = "".join(part.text for part in item.content or item.summary or ())
        if thought:
            messages.append({"role": "assistant", "content": "", "reasoning_content": thought})


def _text(content: str | list[InputContent], path: str) -> str:
    if isinstance(content, str):
        return content
    return "".join(_part_text(part, f"{path}[{index}]") for index, part in enumerate(content))


def _part_text(part: InputContent, path: str) -> str:
    text = part.refusal if part.type == "refusal" else part.text
    if part.type.startswith("input_") and part.type != "input_text":
        raise not_supported(f"content of type '{part.type}'", param=path)
    if text is None:
        raise bad_request(f"'{path}.text' is missing", param=f"{path}.text", code="missing_value")
    return text
