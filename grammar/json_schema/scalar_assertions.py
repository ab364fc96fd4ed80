"""What keywords say about scalars. It depends on nothing around them, so all schemas of the process share it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..regex import Language
from .document import Draft
from .formats import format_language
from .keywords import MAX_COUNT, NUMBER_KEYWORDS, STRING_KEYWORDS, types_of
from .numbers import NumberSet
from .shapes import ALL_NUMBERS, ALL_SHAPES, LITERALS, NO_NUMBERS, NO_SHAPES, NO_STRING, Numbers, Shapes, StringSet

Json = Any
Item = tuple[str, Json, type]

_SCALAR_TYPES = frozenset(("string", "number", "integer", "boolean", "null"))
_SAYING = frozenset(("type", "nullable", "enum", "const", *NUMBER_KEYWORDS, *STRING_KEYWORDS))
_OF_NUMBERS, _OF_STRINGS = frozenset(NUMBER_KEYWORDS), frozenset(STRING_KEYWORDS)
_STRING = frozenset((str,))


def is_old(draft: Draft) -> bool:
    """Whether a number with a point is no integer, whatever its value."""
    return draft.declared and draft.number == 4


def scalar_shapes(schema: Mapping[str, Json], draft: Draft) -> Shapes | None:
    """What the assertions of a schema admit that says it is about scalars; None for any other, or where equal ones are not told easily."""
    types = schema.get("type")
    if isinstance(types, str):
        if types not in _SCALAR_TYPES:
            return None
    elif not isinstance(types, list) or not _SCALAR_TYPES.issuperset(types):
        return None
    said: list[Item] = []
    for keyword, value in schema.items():
        if keyword in _SAYING and (keyword != "const" or draft.has(keyword)):
            if isinstance(value, list):
                if not _STRING.issuperset(map(type, value)):
                    return None
                value = tuple(value)
            elif isinstance(value, Mapping):
                return None
            said.append((keyword, value, type(value)))
    return _shapes(tuple(said), is_old(draft))


@lru_cache(maxsize=4096)
def _shapes(said: tuple[Item, ...], old: bool) -> Shapes:
    schema = {keyword: list(value) if isinstance(value, tuple) else value for keyword, value, _ in said}
    shapes = typed_scalars(schema, old=old)
    if "enum" in schema:
        shapes = _both(shapes, listed_scalars(schema["enum"]))
    return _both(shapes, listed_scalars([schema["const"]])) if "const" in schema else shapes


def _both(a: Shapes, b: Shapes) -> Shapes:
    return Shapes(a.literals & b.literals, a.number & b.number, a.string & b.string, (), ())


def typed_scalars(schema: Mapping[str, Json], *, old: bool) -> Shapes:
    """The scalars that `type` and the keywords of numbers and strings admit."""
    named = schema.get("type")
    if (named == "object" or named == "array") and "nullable" not in schema:
        return NO_SHAPES
    types = types_of(schema)
    literals = frozenset(t for t in LITERALS if ("null" if t == "null" else "boolean") in types)
    number = NO_NUMBERS
    if "number" in types or "integer" in types:
        number = ALL_NUMBERS if "number" in types else _OLD_INTEGERS if old else _INTEGERS
        if not _OF_NUMBERS.isdisjoint(schema):
            number = number & Numbers.of(_numbers_of(schema))
    string = NO_STRING
    if "string" in types:
        string = ALL_SHAPES.string if _OF_STRINGS.isdisjoint(schema) else _strings_of(schema)
    return Shapes(literals, number, string, (), ())


_INTEGERS = Numbers.of(NumberSet.integers())
_OLD_INTEGERS = Numbers(NumberSet.integers(), NumberSet.nothing())


def listed_scalars(values: list[Json]) -> Shapes:
    """The scalars among some values."""
    literals = frozenset("null" if v is None else str(v).lower() for v in values if v is None or isinstance(v, bool))
    strings = [v for v in values if isinstance(v, str)]
    numbers = [v for v in values if not isinstance(v, bool | str | list | Mapping) and v is not None]
    number = Numbers.of(NumberSet.literals(numbers)) if numbers else NO_NUMBERS
    string = StringSet(Language.literals(strings)) if strings else NO_STRING
    return Shapes(literals, number, string, (), ())


def _numbers_of(schema: Mapping[str, Json]) -> NumberSet:
    low, high = schema.get("minimum"), schema.get("maximum")
    low_open, high_open = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    numbers = NumberSet.range(
        minimum=low,
        maximum=high,
        exclusive_minimum=low_open is True and low is not None,
        exclusive_maximum=high_open is True and high is not None,
    )
    if low_open is not None and not isinstance(low_open, bool):
        numbers = numbers & NumberSet.range(minimum=low_open, exclusive_minimum=True)
    if high_open is not None and not isinstance(high_open, bool):
        numbers = numbers & NumberSet.range(maximum=high_open, exclusive_maximum=True)
    if "multipleOf" in schema:
        numbers = numbers & NumberSet.multiple_of(schema["multipleOf"])
    return numbers


def _strings_of(schema: Mapping[str, Json]) -> StringSet:
    strings = StringSet()
    if "minLength" in schema or "maxLength" in schema:
        low, high = int(schema.get("minLength", 0)), at_most(schema, "maxLength")
        if high is not None and low > high:
            return NO_STRING
        strings = StringSet(None, low, high)
    if "pattern" in schema:
        strings = strings & StringSet(Language.pattern(schema["pattern"], "ecma", "search"))
    if "format" in schema:
        language = format_language(schema["format"])
        if language is not None:
            strings = strings & StringSet(language)
    return strings


def at_most(schema: Mapping[str, Json], keyword: str) -> int | None:
    """An upper bound; None where there is none, or none that is ever reached."""
    bound = schema.get(keyword)
    return None if bound is None or bound > MAX_COUNT else int(bound)
