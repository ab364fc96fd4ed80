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


def input_messages(given: Any, instructions: str | None) -> list[dict[str, Any]]:
    """Messages in order, the instructions first.

    Raises:
        ApiError: 400 for items and contents other than text, with their path.
    """
    messages = [{"role": "system", "content": instructions}] if instructions else []
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise bad_request("'input' must be a text or a list of items", param="input")
    return messages + [_message(item, f"input[{index}]") for index, item in enumerate(given)]


def _message(item: Any, path: str) -> dict[str, Any]:
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if kind == "item_reference":
        raise bad_request("answers are never kept here: send the items themselves", param=path, code="unsupported_parameter")
    if kind is not None and kind != "message":
        raise not_supported(f"an item of type '{str(kind)[:64]}'", param=f"{path}.type")
    try:
        message = InputMessage.model_validate(item)
    except ValidationError as error:
        raise from_validation(error, prefix=path) from None
    role = "system" if message.role == "developer" else message.role
    return {"role": role, "content": _text(message.content, f"{path}.content")}


def _text(content: str | list[InputContent], path: str) -> str:
    if isinstance(content, str):
        return content
    return "".join(_part_text(part, f"{path}[{index}]") for index, part in enumerate(content))


def _part_text(part: InputContent, path: str) -> str:
    text = part.refusal if part.type == "refusal" else part.text
    if (part.type.startswith("input_") and part.type != "input_text") or text is None:
        raise not_supported(f"content of type '{part.type}' without text", param=path)
    return text
