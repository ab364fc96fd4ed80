"""Places whose keywords are surely supported together, so that the check need not expand them to know.

Expansion refuses what has too many alternatives, what refers to itself without end, and a few combinations. Most combinators of real
schemas are far from all of that, which is seen from their keywords.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import GrammarError
from .document import Document, Scope
from .pointers import ROOT

Json = Any

_MOST_WAYS = 64  # alternatives of one place; expansion refuses more than 1,000
_MOST_DEPTH = 20  # places that apply each other to the same value
_MOST_PATTERNS = 3  # of names, which are told apart without much ado
_WILD = frozenset((
    "not", "if", "then", "else", "dependentSchemas", "dependencies", "dependentRequired", "contains", "minContains", "maxContains",
    "uniqueItems", "patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedItems", "unevaluatedProperties",
    "$dynamicRef", "$recursiveRef",
))  # fmt: skip
_COMBINING = _WILD.union(("allOf", "anyOf", "oneOf", "$ref"))
_COUNTED = frozenset((
    "type", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "title", "description", "default", "examples",
))  # fmt: skip
_SHARED = frozenset(("object", "array", "string"))  # types whose values a schema tells apart


class Tameness:
    """Answers for the places of one document whose references all lead somewhere.

    Args:
        document: the schema.
    """

    def __init__(self, document: Document):
        self._document = document
        self._known: dict[tuple[int, Scope], int | None] = {}

    def is_tame(self, schema: Mapping[str, Json], base: str, scope: Scope) -> bool:
        """Whether expansion surely refuses nothing at a place with an outer base URI and an outer dynamic scope."""
        try:
            return self._is_tame(schema, base, scope)
        except GrammarError:
            return False  # the place has to be looked at to know what to say of it

    def _is_tame(self, schema: Mapping[str, Json], base: str, scope: Scope) -> bool:
        combined = [keyword for keyword in schema if keyword in _COMBINING]
        if combined == ["patternProperties"]:
            return len(schema["patternProperties"]) <= _MOST_PATTERNS
        if combined == ["uniqueItems"]:
            return not isinstance(schema.get("items"), list) and "prefixItems" not in schema and self._is_counted(schema, base, scope)
        return self._ways(schema, base, scope, 0) is not None

    def _is_counted(self, schema: Mapping[str, Json], outer: str, scope: Scope) -> bool:
        """Whether it is easily told which values the items have, if they are few."""
        base, scope = self._inside(schema, outer, scope)
        items, base, scope = self._target(schema.get("items", True), base, scope)
        if not isinstance(items, dict):
            return True
        if items.get("type") in ("object", "array"):
            return self._ways(items, base, scope, 0) is not None or _COMBINING.isdisjoint(items)
        return _COUNTED.issuperset(items)

    def _inside(self, schema: Mapping[str, Json], outer: str, scope: Scope) -> tuple[str, Scope]:
        base = self._document.base_of(schema, outer)
        return base, self._document.enter(scope, base)

    def _target(self, schema: Json, outer: str, scope: Scope) -> tuple[Json, str, Scope]:
        """What a schema that is a reference leads to, with its outer base URI and outer scope."""
        for _ in range(_MOST_DEPTH):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            base, scope = self._inside(schema, outer, scope)
            target = self._document.resolve_in_scope("$ref", schema["$ref"], base, scope, ROOT)
            schema, outer = target.schema, target.base
        return schema, outer, scope

    def _ways(self, schema: Json, outer: str, outer_scope: Scope, depth: int) -> int | None:
        """How many alternatives a place has at most; None where there may be many, or something is not easily combined."""
        if not isinstance(schema, dict):
            return 1
        key = (id(schema), outer_scope)
        if key not in self._known:
            self._known[key] = None  # where it applies itself
            self._known[key] = self._count(schema, outer, outer_scope, depth)
        return self._known[key]

    def _count(self, schema: Mapping[str, Json], outer: str, outer_scope: Scope, depth: int) -> int | None:
        if not _WILD.isdisjoint(schema) or depth > _MOST_DEPTH:
            return None
        base, scope = self._inside(schema, outer, outer_scope)
        factors: list[int | None] = [_nested(schema["enum"]) + 1 if "enum" in schema else 1]
        if isinstance(schema.get("$ref"), str):
            target = self._document.resolve_in_scope("$ref", schema["$ref"], base, scope, ROOT)
            factors.append(self._ways(target.schema, target.base, scope, depth + 1))
            if self._document.draft_at(base).ref_hides_siblings:
                return factors[1]
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword in schema:
                parts = [self._ways(part, base, scope, depth + 1) for part in schema[keyword]]
                if None in parts or (keyword == "oneOf" and not self._are_apart(schema[keyword], base, scope)):
                    return None
                factors += parts if keyword == "allOf" else [sum(part or 0 for part in parts)]
        ways = 1
        for factor in factors:
            if factor is None or ways * factor > _MOST_WAYS:
                return None
            ways *= factor
        return ways

    def _are_apart(self, branches: Sequence[Json], base: str, scope: Scope) -> bool:
        """True only if no value is in two of the branches."""
        seen: dict[str, list[Mapping[str, Json]]] = {}
        for branch in branches:
            branch, _, _ = self._target(branch, base, scope)
            named = branch.get("type") if isinstance(branch, dict) else None
            if not isinstance(named, str) or "nullable" in branch:
                return False
            seen.setdefault("number" if named == "integer" else named, []).append(branch)
        return all(len(alike) == 1 or (named in _SHARED and self._have_tags(named, alike, base)) for named, alike in seen.items())

    def _have_tags(self, named: str, branches: Sequence[Mapping[str, Json]], base: str) -> bool:
        """Whether branches of one type differ in what they list, or in what they list for one required member."""
        has_const = self._document.draft_at(base).has("const")
        if named == "string":
            return _disjoint([_listed(branch, has_const) for branch in branches])
        if named == "array":
            return False
        first = branches[0].get("required", ())
        return isinstance(first, list) and any(_disjoint([_tag(branch, name, has_const) for branch in branches]) for name in first)


def _tag(branch: Mapping[str, Json], name: str, has_const: bool) -> frozenset[str] | None:
    required, properties = branch.get("required"), branch.get("properties")
    if not isinstance(required, list) or name not in required or not isinstance(properties, dict):
        return None
    member = properties.get(name)
    return _listed(member, has_const) if isinstance(member, dict) else None


def _listed(schema: Mapping[str, Json], has_const: bool) -> frozenset[str] | None:
    """The values of a schema that lists strings and says nothing in place beside that."""
    if not _COMBINING.isdisjoint(schema):
        return None
    values = [schema["const"]] if has_const and "const" in schema else schema.get("enum")
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return None
    return frozenset(values)


def _disjoint(sets: Iterable[frozenset[str] | None]) -> bool:
    seen: set[str] = set()
    for one in sets:
        if one is None or not seen.isdisjoint(one):
            return False
        seen |= one
    return True


def _nested(values: Iterable[Json]) -> int:
    return sum(isinstance(value, list | Mapping) for value in values)
