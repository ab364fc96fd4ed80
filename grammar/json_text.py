"""JSON text (RFC 8259) in and out, exact and without recursion.

The standard library's codec is used wherever it can be. It recurses, so nesting beyond its reach is read and written here; and
it has no place for `Decimal`, which schemas need so that `0.1` in a text stays 0.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import MAX_EMAX, Decimal, InvalidOperation
from typing import Any

Json = Any

_MAX_INT_DIGITS = 4_000
_SMALL = 1_000_000  # bytes of a text whose parts may be counted as often as they occur
_PLAIN_CONTAINERS = frozenset((dict, list, tuple))
_SCALARS = frozenset((str, int, float, bool, type(None), Decimal))
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS = {"null": None, "true": True, "false": False}


def loads(text: str) -> Json:
    """The value of a JSON text; numbers with a point or exponent as `Decimal`.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        return _Reader(text).read()


def dumps(value: Json) -> str:
    """JSON text of a value made of mappings, lists, tuples, strings, numbers (`Decimal` too), booleans and None.

    Raises:
        ValueError: a number is not finite, a key is not a string, or something is no JSON value.
    """
    try:
        return _ENCODER.encode(value)
    except (RecursionError, TypeError, ValueError) as error:
        if "Circular" in str(error):
            raise
        return "".join(_pieces(value))


def least_length(value: Json) -> int:
    """A lower bound of the length of a value's text, found without writing it: what occurs in several places is looked at once.

    Raises:
        ValueError: a value is inside itself.
    """
    small = _length_of_small(value)
    if small is not None:
        return small
    known: dict[int, int] = {}
    opened: set[int] = set()
    stack = [value]
    while stack:
        item = stack[-1]
        if id(item) in known or not isinstance(item, Mapping | list | tuple):
            stack.pop()
            continue
        members = list(item.values()) if isinstance(item, Mapping) else item
        inner = [member for member in members if isinstance(member, Mapping | list | tuple)]
        if id(item) not in opened:
            opened.add(id(item))
            if any(id(member) in opened and id(member) not in known for member in inner):
                raise ValueError("Circular reference detected")
            stack.extend(inner)
            continue
        known[id(item)] = 2 * len(members) + sum(known[id(member)] for member in inner)
        stack.pop()
    return known.get(id(value), 1)


def _length_of_small(value: Json) -> int | None:
    """What `least_length` answers for a few dictionaries and lists, a level at a time; None for whatever is not plainly that."""
    total, level = 0, [value]
    while level:
        if not _PLAIN_CONTAINERS.issuperset(map(type, level)):
            return None
        total += 2 * sum(map(len, level))
        if total > _SMALL:
            return None
        members = [member for item in level for member in (item.values() if type(item) is dict else item)]
        level = [member for member in members if type(member) not in _SCALARS]
    return total


def _decimal(text: str) -> Decimal:
    """The exact value; where the exponent is beyond what `Decimal` can hold, one just as far beyond every budget."""
    try:
        return Decimal(text)
    except InvalidOperation:
        sign = "-" if text.startswith("-") else ""
        return Decimal(f"{sign}1E{'-' if 'e-' in text.lower() else '+'}{MAX_EMAX}")


def _integer(text: str) -> int | Decimal:
    """Python's `int` refuses to read thousands of digits; `Decimal` does not mind."""
    return int(text) if len(text) <= _MAX_INT_DIGITS else Decimal(text)


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(parse_float=_decimal, parse_int=_integer, parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(allow_nan=False)


def _pieces(value: Json) -> list[str]:
    pieces: list[str] = []
    stack: list[Json] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, _Raw):
            pieces.append(item)
        elif isinstance(item, Mapping):
            inner: list[Json] = [_Raw("{")]
            for key, member in item.items():
                if not isinstance(key, str):
                    raise ValueError(f"the key {key!r} is not a string")
                inner += [_Raw((", " if len(inner) > 1 else "") + json.dumps(key) + ": "), member]
            stack.extend(reversed([*inner, _Raw("}")]))
        elif isinstance(item, list | tuple):
            inner = [_Raw("[")]
            for member in item:
                inner += [_Raw(", "), member] if len(inner) > 1 else [member]
            stack.extend(reversed([*inner, _Raw("]")]))
        else:
            pieces.append(_scalar(item))
    return pieces


class _Raw(str):
    """Text that is written as it is."""


def _scalar(value: Json) -> str:
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is not a JSON value")
        text = str(value)
        return text if _NUMBER.fullmatch(text) else format(value, "f")
    if isinstance(value, int) and value.bit_length() > 3 * _MAX_INT_DIGITS:
        return format(Decimal(value), "f")
    if value is None or isinstance(value, bool | int | float | str):
        return json.dumps(value, allow_nan=False)
    raise ValueError(f"{type(value).__name__} is not a JSON value")


class _Reader:
    """Reads one JSON text with an explicit stack."""

    def __init__(self, text: str):
        self._text = text
        self._at = 0

    def read(self) -> Json:
        root: list[Json] = []
        open_values: list[tuple[list[Json] | dict[str, Json], str]] = [(root, "")]
        self._value(open_values)
        while len(open_values) > 1:
            container, _ = open_values[-1]
            closer = "]" if isinstance(container, list) else "}"
            char = self._next_char()
            if char == closer:
                open_values.pop()
            elif char == ",":
                self._member(open_values)
            else:
                self._fail(f"expected ',' or '{closer}'")
        self._skip()
        if self._at != len(self._text):
            self._fail("extra data")
        return root[0]

    def _member(self, open_values: list[tuple[list[Json] | dict[str, Json], str]]) -> None:
        container, _ = open_values[-1]
        if isinstance(container, dict):
            self._skip()
            key = self._string()
            if self._next_char() != ":":
                self._fail("expected ':'")
            open_values[-1] = (container, key)
        self._value(open_values)

    def _value(self, open_values: list[tuple[list[Json] | dict[str, Json], str]]) -> None:
        """Reads a scalar, or opens a container and reads up to its first value."""
        while True:
            self._skip()
            char = self._text[self._at : self._at + 1]
            if char not in ("[", "{"):
                self._put(open_values, self._scalar(char))
                return
            self._at += 1
            container: list[Json] | dict[str, Json] = [] if char == "[" else {}
            self._put(open_values, container)
            self._skip()
            if self._text[self._at : self._at + 1] == ("]" if char == "[" else "}"):
                self._at += 1
                return
            open_values.append((container, ""))
            if char == "{":
                key = self._string()
                if self._next_char() != ":":
                    self._fail("expected ':'")
                open_values[-1] = (container, key)

    @staticmethod
    def _put(open_values: list[tuple[list[Json] | dict[str, Json], str]], value: Json) -> None:
        container, key = open_values[-1]
        if isinstance(container, list):
            container.append(value)
        else:
            container[key] = value

    def _scalar(self, char: str) -> Json:
        if char == '"':
            return self._string()
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            self._at = number.end()
            return _decimal(number[0]) if number[1] or number[2] else _integer(number[0])
        for word, value in _WORDS.items():
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return value
        self._fail("expected a value")

    def _string(self) -> str:
        if self._text[self._at : self._at + 1] != '"':
            self._fail("expected a string")
        value, self._at = json.decoder.scanstring(self._text, self._at + 1)  # pyright: ignore[reportAttributeAccessIssue]
        return value

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _next_char(self) -> str:
        self._skip()
        self._at += 1
        return self._text[self._at - 1 : self._at]

    def _fail(self, reason: str) -> Any:
        raise ValueError(f"{reason} at position {self._at}")
