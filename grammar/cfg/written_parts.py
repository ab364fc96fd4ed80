"""What stands for itself in several notations: special tokens, and JSON Schemas in the middle of a text."""

from __future__ import annotations

import json
import re
from typing import Any

from .. import json_text
from ..errors import GrammarError
from ..json_schema.check import raise_refused
from ..json_schema.compile import check_schema
from ..json_schema.document import Document, draft_of
from ..json_schema.expand import Expander
from ..limits import Limits
from .ir import JsonValue
from .reader import Cursor

_TOKEN = re.compile(r"<(?:(\|[^<>|\s]+\|)|\[([0-9, ]+)\]|([^<>\[\]\s]+))>")
_PIPED_TOKEN = re.compile(r"<(?:(\|[^<>|\s]+\|)|\[([0-9, ]+)\])()>")
_JSON_STEP = re.compile(r'[^"{}\[\]]*(?:"(?:\\.|[^"\\])*"|[{}\[\]])', re.DOTALL)
_ID_DIGITS = 9


def read_token(cursor: Cursor, *, named: bool) -> tuple[str | int, ...] | None:
    """Reads `<|name|>` or `<[id, id]>`, and `<name>` if `named`: names with their brackets, or ids. None if that does not come next.

    Raises:
        GrammarError: an id is malformed.
    """
    found = (_TOKEN if named else _PIPED_TOKEN).match(cursor.text, cursor.pos)
    if found is None:
        return None
    if found.group(2) is None:
        cursor.pos = found.end()
        return (found.group(),)
    ids = [digits.strip() for digits in found.group(2).split(",")]
    if not all(digits.isdecimal() and len(digits) <= _ID_DIGITS for digits in ids):
        raise GrammarError("the ids of special tokens must be numbers", position=cursor.pos)
    cursor.pos = found.end()
    return tuple(map(int, ids))


def read_json(cursor: Cursor) -> Any:
    """Reads a JSON object, however deep.

    Raises:
        GrammarError: with the position of what is no JSON.
    """
    start = cursor.pos
    if cursor.peek() != "{":
        raise cursor.error("{")
    depth = 0
    while True:
        if cursor.match(_JSON_STEP) is None:
            raise GrammarError("a JSON object is not closed", position=start, expected=("}",))
        last = cursor.text[cursor.pos - 1]
        depth += (last in "{[") - (last in "}]")
        if depth == 0:
            break
    try:
        return json_text.loads(cursor.text[start : cursor.pos])
    except json.JSONDecodeError as error:
        raise GrammarError(f"a schema is not JSON: {error.msg}", position=start + error.pos) from error
    except ValueError as error:
        raise GrammarError(f"a schema is not JSON: {error}", position=start) from error


def json_value(schema: Any, position: int, limits: Limits) -> JsonValue:
    """The values of a schema.

    Raises:
        GrammarError: with the position, and the JSON pointer of what is malformed or unsupported.
    """
    try:
        document = Document(schema, draft_of(schema, None), {})
        raise_refused(check_schema(Expander(document, limits), only_refused=True))
    except GrammarError as error:
        raise type(error)(error.reason, pointer=error.pointer or "", position=position, expected=error.expected) from error
    return JsonValue(document=document, position=position)
