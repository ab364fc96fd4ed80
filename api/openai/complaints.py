"""What Pydantic says about a request body -> what its sender should change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

Location = list[int | str]

_KINDS = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "float_type": "a number",
    "int_from_float": "an integer",
    "int_type": "an integer",
    "list_type": "a list",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_type": "a text",
}
_MAX_SHOWN_CHARS = 60


class Complaint(NamedTuple):
    """What is wrong, as one sentence, and where."""

    message: str
    param: str | None
    code: str


def first_complaint(error: ValidationError, prefix: str = "") -> Complaint:
    """The first thing that is wrong with a body, or with the part of one that `prefix` names."""
    found = error.errors(include_url=False)
    told = _most_telling(found)
    location = _without_tags(told["loc"])
    if told["type"] == "unknown_field":
        return Complaint(told["msg"], _path([*location, told["ctx"]["field"]], prefix), "unknown_parameter")  # type: ignore[typeddict-item]
    param = _path(location, prefix) or None
    name = f"'{param}'" if param else "the body"
    if told["type"] == "missing":
        return Complaint(f"{name} is missing", param, "missing_value")
    return Complaint(_sentence(name, told), param, "invalid_value")


def _sentence(name: str, told: ErrorDetails) -> str:
    kind, context = told["type"], told.get("ctx", {})
    if kind in _KINDS:
        return f"{name} must be {_KINDS[kind]}, not {_shown(told['input'])}"
    if kind == "literal_error":
        return f"{name} must be {context['expected']}, not {_shown(told['input'])}"
    if kind == "too_short":
        return f"{name} must have at least {context['min_length']} entries"
    if kind == "too_long":
        return f"{name} may have at most {context['max_length']} entries"
    if kind == "form":
        return f"{name} {told['msg']}"
    return f"{name}: {told['msg']}"


def _most_telling(found: Sequence[ErrorDetails]) -> ErrorDetails:
    """The first complaint. Of the alternatives of one field the first that fits the value's shape: about a member of an object, say,
    and not that it is no text."""
    first = found[0]
    place = _without_tags(first["loc"])
    if isinstance(first["input"], (dict, list)) and (first["type"] == "literal_error" or first["type"].endswith("_type")):
        deeper = [other for other in found[1:] if _without_tags(other["loc"])[: len(place)] == place]
        return next((other for other in deeper if len(other["loc"]) > len(first["loc"]) or other["type"] == "unknown_field"), first)
    return first


def _without_tags(location: Sequence[int | str]) -> Location:
    """A location without the names of the alternatives that Pydantic tried; these are written like types, and fields never are."""
    return [part for part in location if isinstance(part, int) or not ("[" in part or part[:1].isupper())]


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    shown = repr(value)
    return shown if len(shown) <= _MAX_SHOWN_CHARS else shown[:_MAX_SHOWN_CHARS] + "..."


def _path(location: Location, text: str) -> str:
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
