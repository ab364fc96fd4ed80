"""JSON values as they are compared by `uniqueItems`: each distinct one once, so that identity is equality."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ..errors import LimitError
from .numbers import NumberSet
from .shapes import Numbers

_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")
_WORDS = {"null": None, "true": True, "false": False}
_MAX_EXPONENT_DIGITS = 1_000
_MAX_DEPTH = 200
_FAR = 900  # decimal places
_TINY = Decimal(f"1e-{_FAR}")
_NEAR = NumberSet.range(minimum=-(10**_FAR), maximum=10**_FAR) & (NumberSet.literal(0) | ~NumberSet.range(minimum=-_TINY, maximum=_TINY))


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """Attributes:
    kind: "string", "number", "array", "object", or a word: "null", "true", "false".
    data: the str, the Decimal, the items as a tuple, the members as a mapping; None for words.
    """

    kind: str
    data: Any = None


class Values:
    """Makes values."""

    def __init__(self) -> None:
        self._known: dict[Any, Value] = {}

    def _make(self, key: Any, kind: str, data: Any = None) -> Value:
        value = self._known.get(key)
        if value is None:
            value = self._known[key] = Value(kind, data)
        return value

    def word(self, word: str) -> Value:
        return self._make(word, word)

    def string(self, text: str) -> Value:
        return self._make(("string", text), "string", text)

    def number(self, text: str) -> Value:
        """The number that a JSON text spells; 1, 1.0 and 10e-1 are one."""
        match = _NUMBER.fullmatch(text)
        assert match is not None
        sign, whole, fraction, exponent = match.groups()
        if exponent is not None and len(exponent) > _MAX_EXPONENT_DIGITS:
            raise LimitError("a number has too large an exponent to be compared with others")
        fraction = fraction or ""
        digits = (whole + fraction).lstrip("0")
        scale = int(exponent or 0) - len(fraction)
        short = digits.rstrip("0")
        scale = scale + len(digits) - len(short) if short else 0
        key = ("number", sign if short else "", short, scale)
        return self._make(key, "number", ((short and sign + short) or "0", scale))

    def array(self, items: tuple[Value, ...]) -> Value:
        return self._make(("array", items), "array", items)

    def object(self, members: Mapping[str, Value]) -> Value:
        return self._make(("object", frozenset(members.items())), "object", members)


def plain(value: Value, depth: int = 0) -> Any:
    """The value as Python has it, numbers as Decimal.

    Raises:
        LimitError: it is nested too deep, or one of its numbers is too large or too small.
    """
    if depth > _MAX_DEPTH:
        raise LimitError(f"a value nested more than {_MAX_DEPTH} deep can't be compared with a schema")
    if value.kind == "array":
        return [plain(item, depth + 1) for item in value.data]
    if value.kind == "object":
        return {name: plain(member, depth + 1) for name, member in value.data.items()}
    if value.kind == "number":
        digits, scale = value.data
        if abs(len(digits) + scale) >= _FAR:
            raise LimitError("a number is too large or too small to be compared with a schema")
        return Decimal(f"{digits}e{scale}")
    return value.data if value.kind == "string" else _WORDS[value.kind]


def spelt(value: Value) -> bytes:
    """The bytes by which the automaton compares a string with others."""
    return b'"' + value.data.encode()


def numbers_unlike(numbers: Numbers, values: Iterable[Value]) -> Numbers:
    """`numbers` without some values. Where one of them is too large or too small to be left out exactly, so are all such numbers."""
    near: list[Decimal] = []
    is_far = False
    for value in values:
        digits, scale = value.data
        if abs(len(digits) + scale) < _FAR:
            near.append(Decimal(f"{digits}e{scale}"))
        else:
            is_far = True
    if near:
        numbers = numbers & Numbers.of(~NumberSet.literals(near))
    if is_far:
        numbers = numbers & Numbers.of(_NEAR)
    return numbers


def number_text(value: Decimal | int | float) -> str:
    return str(value).replace("E", "e") if isinstance(value, Decimal) else json.dumps(value)
