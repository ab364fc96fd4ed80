"""The base of every request model: unknown fields are refused, types are not coerced."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from .errors import not_supported

_MAX_NAME_CHARS = 64


class StrictModel(BaseModel):
    """A part of a request body.

    A misspelt field must never be dropped: a dropped `response_format` is an answer without its constraint. The error names the
    field and the nearest field that exists.

    Attributes:
        hints: what to do instead, for names that are to be expected and that no field has.
        only: fields of the protocol that are understood, but may say no more than this value, which is what happens anyway (or null).
    """

    hints: ClassVar[Mapping[str, str]] = {}
    only: ClassVar[Mapping[str, Any]] = {}

    model_config = ConfigDict(strict=True, extra="forbid", protected_namespaces=())

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """Names as they stand in the JSON body."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    def refuse_others(self, prefix: str = "") -> None:
        """Refuse what `only` does not allow.

        Args:
            prefix: of the names of fields, such as `stream_options.`.

        Raises:
            ApiError: 400, with the field.
        """
        for field, default in self.only.items():
            given = getattr(self, field)
            if (given is not None and (type(given) is bool) != (type(default) is bool)) or given not in (None, default):
                shown = repr(default) if isinstance(default, str) else json.dumps(default)
                other = "" if default is None else f" other than {shown}"
                raise not_supported(f"'{prefix}{field}'{other}", param=prefix + field)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described = handler.resolve_ref_schema(handler(core_schema))
        for field, default in cls.only.items():
            described["properties"][field] = {"enum": [None] if default is None else [None, default]}
        return described

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_fields(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = cls.field_names()
            for name in data:
                if name not in known:
                    raise _unknown_field(name, known, cls.hints)
        return data


def _unknown_field(name: str, known: tuple[str, ...], hints: Mapping[str, str]) -> PydanticCustomError:
    shown = name if len(name) <= _MAX_NAME_CHARS else name[:_MAX_NAME_CHARS] + "..."
    nearest = difflib.get_close_matches(shown, known, n=1)
    hint = f": {hints[name]}" if name in hints else f"; did you mean '{nearest[0]}'?" if nearest else ""
    return PydanticCustomError("unknown_field", "unknown field '{field}'{hint}", {"field": shown, "hint": hint})
