"""What each keyword may hold, and where subschemas are: the check before anything is built.

Expansion is lazy, so a misplaced value or an unsupported keyword deep inside would surface in the middle of a generation.
`check` walks every subschema that the root can reach, once, without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from ..errors import GrammarError, LimitError
from ..limits import Limits
from ..regex import Language
from .document import EMPTY_SCOPE, Document, Draft, Scope
from .formats import FORMAT_NAMES
from .numbers import exact
from .pointers import ROOT, Pointer

Json = Any

MAX_COUNT = 1 << 30  # lengths and numbers of items beyond it are never reached; a larger maximum bounds nothing
_AT_LEAST = frozenset({"minLength", "minItems", "minProperties", "minContains"})
_COMPANIONS = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
TYPES = ("null", "boolean", "object", "array", "number", "integer", "string")
NUMBER_KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
STRING_KEYWORDS = ("minLength", "maxLength", "pattern", "format")
ARRAY_KEYWORDS = ("items", "prefixItems", "additionalItems", "contains", "minItems", "maxItems", "uniqueItems")
OBJECT_KEYWORDS = (
    "properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties", "maxProperties",
    "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties",
)  # fmt: skip
SCHEMA_MAPS = ("properties", "patternProperties", "dependentSchemas")
SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SCHEMAS = (
    "items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedItems",
    "unevaluatedProperties",
)  # fmt: skip
ANNOTATIONS = frozenset((
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$comment", "$defs", "definitions", "$vocabulary", "title",
    "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType",
    "contentSchema", "discriminator", "externalDocs", "xml",
))  # fmt: skip


def _is_number(x: Json) -> bool:
    return isinstance(x, int | float | Decimal) and not isinstance(x, bool)


def _count(x: Json) -> str | None:
    if _is_number(x) and x >= 0:
        # a Decimal with a huge exponent must not be written out
        whole = isinstance(x, int) or (x.is_integer() if isinstance(x, float) else x.adjusted() > 30 or x == x.to_integral_value())
        if whole:
            return None
    return "must be a non-negative integer"


def _number(x: Json) -> str | None:
    return None if _is_number(x) else "must be a number"


def _positive(x: Json) -> str | None:
    return None if _is_number(x) and x > 0 else "must be a number above 0"


def _number_or_bool(x: Json) -> str | None:
    return None if isinstance(x, bool) or _is_number(x) else "must be a number (or a boolean, in draft 4)"


def _bool(x: Json) -> str | None:
    return None if isinstance(x, bool) else "must be a boolean"


def _string(x: Json) -> str | None:
    return None if isinstance(x, str) else "must be a string"


def _names(x: Json) -> str | None:
    return None if isinstance(x, list) and all(isinstance(n, str) for n in x) else "must be an array of strings"


def _required(x: Json) -> str | None:
    # draft 3 wrote a boolean beside each property; validators of later drafts do not read it
    return None if isinstance(x, bool) else _names(x)


def _name_lists(x: Json) -> str | None:
    return None if isinstance(x, dict) and all(_names(v) is None for v in x.values()) else "must be an object of arrays of strings"


def _dependencies(x: Json) -> str | None:
    if isinstance(x, dict) and all(not isinstance(v, list) or _names(v) is None for v in x.values()):
        return None
    return "must be an object of schemas and arrays of strings"


def _array(x: Json) -> str | None:
    return None if isinstance(x, list) else "must be an array"


def _schemas(x: Json) -> str | None:
    return None if isinstance(x, list) and x else "must be a non-empty array of schemas"


def _object(x: Json) -> str | None:
    return None if isinstance(x, dict) else "must be an object"


def _type(x: Json) -> str | None:
    given = [x] if isinstance(x, str) else x
    if isinstance(given, list) and given and all(isinstance(t, str) for t in given):
        unknown = [t for t in given if t not in TYPES]
        return f"names the unknown type {unknown[0]!r}; known: {', '.join(TYPES)}" if unknown else None
    return "must be a type name or an array of them"


def _anything(x: Json) -> str | None:
    return None


VALUE_CHECKS: dict[str, Callable[[Json], str | None]] = {
    "type": _type, "enum": _array, "const": _anything, "nullable": _bool,
    "$ref": _string, "$dynamicRef": _string, "$recursiveRef": _string,
    "multipleOf": _positive, "minimum": _number, "maximum": _number,
    "exclusiveMinimum": _number_or_bool, "exclusiveMaximum": _number_or_bool,
    "minLength": _count, "maxLength": _count, "pattern": _string, "format": _string,
    "minItems": _count, "maxItems": _count, "uniqueItems": _bool, "minContains": _count, "maxContains": _count,
    "minProperties": _count, "maxProperties": _count, "required": _required,
    "dependentRequired": _name_lists, "dependencies": _dependencies,
    "properties": _object, "patternProperties": _object, "dependentSchemas": _object,
    "allOf": _schemas, "anyOf": _schemas, "oneOf": _schemas, "prefixItems": _array,
}  # fmt: skip
IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")  # apply to the same value
# Values that need no closer look: whether or not the draft knows the keyword, nothing is refused.
_PLAIN: dict[str, Callable[[Json], bool]] = {
    "type": lambda x: isinstance(x, str) and x in TYPES,
    "properties": lambda x: isinstance(x, dict),
    "required": lambda x: isinstance(x, list) and _names(x) is None,
    "format": lambda x: isinstance(x, str),
    "$ref": lambda x: isinstance(x, str),
    **dict.fromkeys(("minLength", "minItems", "maxLength", "maxItems"), lambda x: type(x) is int and 0 <= x <= MAX_COUNT),
    **dict.fromkeys(("items", "additionalProperties"), lambda _: True),
    **dict.fromkeys(("minimum", "maximum"), lambda x: type(x) is int and -MAX_COUNT <= x <= MAX_COUNT),
}
# Keywords whose meaning depends on other places, so that what they ask for may turn out to be unsupported.
_COMBINED = (
    "uniqueItems", "not", "oneOf", "allOf", "anyOf", "if", "dependentSchemas", "contains", "patternProperties", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_FEW = 100  # arrays and objects of an `enum` that are no burden
KNOWN = frozenset(VALUE_CHECKS) | frozenset(SCHEMAS)
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def types_of(schema: Mapping[str, Json]) -> set[str]:
    """The types that `type` and `nullable` admit."""
    given = schema.get("type")
    types: set[str] = set(TYPES) if given is None else {given} if isinstance(given, str) else set(given)
    if schema.get("nullable") is True:
        types.add("null")
    return types


class Finding(NamedTuple):
    """What becomes of one keyword at one place, or of one rule of a grammar. `over_limit` tells that a budget and not a missing feature
    refused it."""

    place: Pointer
    keyword: str
    status: str  # "enforced", "annotation" or "refused"; of a rule "unused"
    reason: str
    over_limit: bool = False

    @property
    def pointer(self) -> str:
        """The place as RFC 6901 writes it."""
        return str(self.place)


class Subschema(NamedTuple):
    """A schema inside another, under one of its keywords."""

    keyword: str
    place: Pointer
    schema: Json


def subschemas(schema: Mapping[str, Json], pointer: Pointer, draft: Draft) -> Iterator[Subschema]:
    """Subschemas that assert something."""
    for key in SCHEMA_MAPS:
        if isinstance(schema.get(key), dict) and draft.has(key):
            yield from (Subschema(key, pointer.child(key, name), s) for name, s in schema[key].items())
    for key in SCHEMA_LISTS:
        if isinstance(schema.get(key), list) and draft.has(key):
            yield from (Subschema(key, pointer.child(key, i), s) for i, s in enumerate(schema[key]))
    for key in SCHEMAS:
        if key not in schema or not draft.has(key) or (key in ("then", "else") and "if" not in schema):
            continue
        value = schema[key]
        if key == "items" and isinstance(value, list):
            yield from (Subschema(key, pointer.child(key, i), s) for i, s in enumerate(value))
        else:
            yield Subschema(key, pointer.child(key), value)
    key = "dependencies"
    if isinstance(schema.get(key), dict):
        yield from (Subschema(key, pointer.child(key, n), s) for n, s in schema[key].items() if not isinstance(s, list))


Probe = Callable[[Mapping[str, Json], str, Pointer, Scope], None]


def check(document: Document, limits: Limits, probe: Probe, *, only_refused: bool = False) -> Iterator[Finding]:
    """Walks the reachable schema; yields what becomes of each keyword. See `raise_refused`.

    Args:
        document: the schema.
        limits: budgets.
        only_refused: leave out most of what is not refused; faster.
        probe: expands a place `(schema, outer base, pointer, dynamic scope)` whose keywords are combined, and raises what decoding
            would raise there.
    """
    unknown_scopes = not document.has_dynamic_anchors
    walk = _Walk(document, limits, only_refused)
    findings = list(walk.run())
    if unknown_scopes and document.has_dynamic_anchors:
        walk = _Walk(document, limits, only_refused)  # now that the first reference has indexed the anchors, the root is entered with them
        findings = list(walk.run())
    yield from findings
    if any(finding.status == "refused" for finding in findings):
        return  # what is malformed cannot be combined
    for schema, base, pointer, scope, keyword in walk.probes:
        try:
            probe(schema, base, pointer, scope)
        except GrammarError as error:
            place = pointer.child(keyword) if error.pointer is None else Pointer(None, error.pointer)
            yield Finding(place, keyword, "refused", error.reason, isinstance(error, LimitError))


class _Reference(NamedTuple):
    """A reference and the place it leads to, as (identity, outer dynamic scope)."""

    target: tuple[int, Scope]
    pointer: Pointer
    keyword: str


class _Visit(NamedTuple):
    """A schema to look at.

    Attributes:
        schema, base, pointer, scope: as in `nodes.Place`.
        depth: how many schemas it is inside of.
        alone: whether values are judged by it alone, and not only together with what applies it in place.
    """

    schema: Json
    base: str
    pointer: Pointer
    scope: Scope
    depth: int
    alone: bool


class _Walk:
    """One walk over the reachable places of a document."""

    def __init__(self, document: Document, limits: Limits, only_refused: bool):
        self._document = document
        self._limits = limits
        self._only_refused = only_refused
        self._seen: set[tuple[int, Scope]] = set()
        self._alone: set[tuple[int, Scope]] = set()
        self._found: set[int] = set()
        self._references: dict[tuple[int, Scope], list[_Reference]] = {}
        self._stack = [_Visit(document.root, "", ROOT, EMPTY_SCOPE, 0, True)]
        self.probes: list[tuple[Mapping[str, Json], str, Pointer, Scope, str]] = []

    def run(self) -> Iterator[Finding]:
        while self._stack:
            visit = self._stack.pop()
            if isinstance(visit.schema, dict):
                key = (id(visit.schema), visit.scope)
                first = key not in self._seen
                if first or (visit.alone and key not in self._alone):
                    self._seen.add(key)
                    if visit.alone:
                        self._alone.add(key)
                    self._check_budget(visit.pointer, visit.depth)
                    yield from self._place(visit, first)
            elif not isinstance(visit.schema, bool):
                yield Finding(visit.pointer, "", "refused", f"a schema must be an object or a boolean, not {type(visit.schema).__name__}")
        circle = self._circle()
        if circle is not None:
            yield Finding(circle.pointer, circle.keyword, "refused", "the references lead in a circle")

    def _check_budget(self, pointer: Pointer, depth: int) -> None:
        limits = self._limits
        if len(self._seen) > limits.max_steps:
            raise LimitError(f"the schema has more than {limits.max_steps} places (max_steps)", pointer=pointer)
        if depth > limits.max_schema_depth:
            raise LimitError(f"the schema is nested deeper than {limits.max_schema_depth} (max_schema_depth)", pointer=pointer)

    def _place(self, visit: _Visit, first: bool) -> Iterator[Finding]:
        schema, outer, pointer, outer_scope, depth, alone = visit
        document = self._document
        base = document.base_of(schema, outer)
        draft, scope = document.draft_at(base), document.enter(outer_scope, base)
        only_ref = draft.ref_hides_siblings and isinstance(schema.get("$ref"), str)
        references = [k for k in REFERENCES if isinstance(schema.get(k), str) and draft.has(k)]
        # a schema that is nothing but a reference is the one it leads to
        passes_on = only_ref or (len(references) == 1 and not any(k in KNOWN for k in schema if k != references[0]))
        astray: dict[str, Finding] = {}
        for keyword in references:
            try:
                target = document.resolve_in_scope(keyword, schema[keyword], base, scope, pointer.child(keyword))
            except GrammarError as error:
                astray[keyword] = Finding(pointer.child(keyword), keyword, "refused", error.reason)
            else:
                self._stack.append(_Visit(target.schema, target.base, target.pointer, scope, depth, alone and passes_on))
                link = _Reference((id(target.schema), scope), pointer.child(keyword), keyword)
                self._references.setdefault((id(schema), outer_scope), []).append(link)
        if id(schema) not in self._found:
            self._found.add(id(schema))
            for keyword, value in schema.items():
                if self._only_refused and (keyword not in KNOWN or (keyword in _PLAIN and _PLAIN[keyword](value))):
                    continue
                finding = _finding(keyword, schema, pointer, draft, self._limits, only_ref)
                if keyword not in astray:
                    yield finding
                elif finding.status == "refused":
                    astray[keyword] = finding
        yield from astray.values()
        if only_ref:
            return
        if first:
            inner = subschemas(schema, pointer, draft)
            self._stack.extend(_Visit(s.schema, base, s.place, scope, depth + 1, s.keyword not in IN_PLACE) for s in inner)
        if alone and not passes_on:
            combined = next((k for k in (*references, *_COMBINED) if k in schema), None)
            if combined is None and _lists_many(schema):
                combined = "enum"
            if combined is not None:
                self.probes.append((schema, outer, pointer, outer_scope, combined))

    def _circle(self) -> _Reference | None:
        """A reference that closes a circle of nothing but references. (Circles through other keywords are found by the probes.)"""
        on_path: dict[tuple[int, Scope], bool] = {}
        for start in self._references:
            if start in on_path:
                continue
            on_path[start] = True
            path = [(start, iter(self._references[start]))]
            while path:
                place, links = path[-1]
                link = next(links, None)
                if link is None:
                    on_path[place] = False
                    path.pop()
                elif on_path.get(link.target):
                    return link
                elif link.target not in on_path and link.target in self._references:
                    on_path[link.target] = True
                    path.append((link.target, iter(self._references[link.target])))
        return None


def _lists_many(schema: Mapping[str, Json]) -> bool:
    values = schema.get("enum")
    return isinstance(values, list) and len(values) > _FEW and any(isinstance(value, list | Mapping) for value in values)


def _check_values(keyword: str, value: Json) -> None:
    """Raises GrammarError for a pattern that is not supported, or a value that no text can spell."""
    if keyword == "pattern":
        Language.pattern(value, "ecma", "search")
    elif keyword == "patternProperties":
        for text in value:
            Language.pattern(text, "ecma", "search")
    elif keyword in ("enum", "const"):
        for scalar in value if keyword == "enum" else [value]:
            if isinstance(scalar, str):
                Language.literal(scalar)
            elif _is_number(scalar):
                exact(scalar)
    elif keyword in NUMBER_KEYWORDS and not isinstance(value, bool):
        exact(value)
    elif keyword in _AT_LEAST and value > MAX_COUNT:
        raise LimitError(f"'{keyword}' is above {MAX_COUNT}")


def _finding(keyword: str, schema: Mapping[str, Json], pointer: Pointer, draft: Draft, limits: Limits, only_ref: bool) -> Finding:
    value = schema[keyword]
    companion = _COMPANIONS.get(keyword)
    if keyword not in KNOWN or not draft.has(keyword) or (only_ref and keyword != "$ref"):
        return Finding(pointer, keyword, "annotation", "" if keyword in ANNOTATIONS else "not an assertion of this draft")
    problem = VALUE_CHECKS.get(keyword, _anything)(value)
    if problem is not None:
        return Finding(pointer.child(keyword), keyword, "refused", f"'{keyword}' {problem}")
    if companion is not None and companion not in schema:
        return Finding(pointer, keyword, "annotation", f"without '{companion}' it asserts nothing")
    if keyword == "enum" and len(value) > limits.max_enum:
        return Finding(pointer.child(keyword), keyword, "refused", f"'enum' has more than {limits.max_enum} values (max_enum)", True)
    if keyword == "$recursiveRef" and value != "#":
        return Finding(pointer.child(keyword), keyword, "refused", "'$recursiveRef' must be '#'")
    if keyword == "format" and value not in FORMAT_NAMES:
        return Finding(pointer, keyword, "annotation", f"the format {value!r} is not known")
    try:
        _check_values(keyword, value)
    except GrammarError as error:
        return Finding(pointer.child(keyword), keyword, "refused", str(error), isinstance(error, LimitError))
    return Finding(pointer, keyword, "enforced", "")


def raise_refused(findings: Iterable[Finding]) -> None:
    """Raises GrammarError for the first place that cannot be enforced."""
    for finding in findings:
        if finding.status == "refused":
            kind = LimitError if finding.over_limit else GrammarError
            raise kind(finding.reason, pointer=finding.pointer)
