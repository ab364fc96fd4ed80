"""Messages of a conversation as the protocol spells them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from .errors import bad_request, not_supported
from .strict import StrictModel
from .tools import CallBody, CalledFunction, message_calls

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]



class ContentPart(StrictModel):
    """A piece of a message. Only text is understood; the other kinds are named so that their refusal is clear."""

    type: Literal["text", "image_url", "input_audio", "file", "refusal"]
    text: str | None = None
    image_url: Any = None
    input_audio: Any = None
    file: Any = None
    refusal: str | None = None


def _or_text(schema: dict[str, Any]) -> None:
    schema["anyOf"].insert(0, {"type": "string"})


class Message(StrictModel):
    """One turn. A message that a client got from an answer can be sent back as it is."""

    role: Role
    content: list[ContentPart] | None = Field(default=None, json_schema_extra=_or_text)
    name: str | None = None
    refusal: str | None = None
    annotations: Any = None
    audio: Any = None
    tool_calls: list[CallBody] | None = None
    function_call: CalledFunction | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    parsed: Any = None

    @field_validator("content", mode="before")
    @classmethod
    def _text_as_part(cls, content: Any) -> Any:
        if not isinstance(content, (str, list, type(None))):
            raise PydanticCustomError("form", "must be a text or a list of parts")
        return [{"type": "text", "text": content}] if isinstance(content, str) else content


def template_messages(messages: list[Message]) -> list[dict[str, Any]]:
    """Messages as chat templates read them: `role` and `content` text; `developer` is the newer name of `system`.

    Raises:
        ApiError: 400 for images, audio or files, and for calls where none can be, with the path of the part.
    """
    return [_template_message(message, f"messages[{index}]") for index, message in enumerate(_with_tool_calls(messages))]


def _with_tool_calls(messages: list[Message]) -> list[Message]:
    """The older form of calls and results in the newer one: a result is that of the last call of its name."""
    ids: dict[str, str] = {}
    found: list[Message] = []
    for index, message in enumerate(messages):
        call, path = message.function_call, f"messages[{index}]"
        if message.role == "function":
            if message.name is None:
                raise bad_request(f"'{path}.name' is missing", param=f"{path}.name", code="missing_value")
            if message.name not in ids:
                raise bad_request(f"no function {message.name[:80]!r} was called before", param=f"{path}.name")
            message = message.model_copy(update={"role": "tool", "tool_call_id": ids[message.name]})
        elif call is not None:
            if message.tool_calls:
                raise bad_request("'function_call' is the older form of 'tool_calls'", param=f"{path}.function_call")
            ids[call.name] = f"call_{index}"
            calls = [CallBody(id=ids[call.name], function=call)]
            message = message.model_copy(update={"tool_calls": calls})
        found.append(message)
    return found


def _template_message(message: Message, path: str) -> dict[str, Any]:
    if message.audio:
        raise not_supported("'audio' in a message", param=f"{path}.audio")
    if message.content is None and message.role != "assistant":
        raise bad_request(f"'{path}.content' is missing", param=f"{path}.content", code="missing_value")
    role = "system" if message.role == "developer" else message.role
    rendered: dict[str, Any] = {"role": role, "content": _text(message.content or [], f"{path}.content")}
    if message.name is not None:
        rendered["name"] = message.name
    reasoning = message.reasoning_content if message.reasoning is None else message.reasoning
    if reasoning and message.role == "assistant":
        rendered["reasoning_content"] = reasoning
    if message.tool_calls:
        if message.role != "assistant":
            raise bad_request("only an assistant calls tools", param=f"{path}.tool_calls")
        rendered["tool_calls"] = message_calls(message.tool_calls)
    if message.tool_call_id is not None:
        if message.role != "tool":
            raise bad_request("only the result of a tool has a 'tool_call_id'", param=f"{path}.tool_call_id")
        rendered["tool_call_id"] = message.tool_call_id
    return rendered


def _text(parts: list[ContentPart], path: str) -> str:
    return "".join(_part_text(part, f"{path}[{index}]") for index, part in enumerate(parts))


def _part_text(part: ContentPart, path: str) -> str:
    if part.type != "text":
        raise not_supported(f"content of type '{part.type}'", param=path)
    if part.text is None:
        raise bad_request(f"'{path}.text' is missing", param=f"{path}.text", code="missing_value")
    return part.text
