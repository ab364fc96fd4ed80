"""The check before anything is built.

Expansion is lazy, so a misplaced value or an unsupported keyword deep inside would surface in the middle of a generation.
`check` walks every subschema that the root can reach, once, without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import GrammarError, LimitError
from ..limits import Limits
from ..regex import Language
from .document import EMPTY_SCOPE, Document, Draft, Scope
from .formats import FORMAT_NAMES
from .keywords import (
    ANNOTATIONS,
    IN_PLACE,
    KNOWN,
    MAX_COUNT,
    NUMBER_KEYWORDS,
    REFERENCES,
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    SCHEMAS,
    TYPES,
    VALUE_CHECKS,
    is_number,
)
from .numbers import exact
from .pointers import ROOT, Pointer
from .tame import Tameness

Json = Any

_AT_LEAST = frozenset({"minLength", "minItems", "minProperties", "minContains"})
_COMPANIONS = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
# Values that need no closer look: whether or not the draft knows the keyword, nothing is refused.
_PLAIN: dict[str, Callable[[Json], bool]] = {
    "type": lambda x: x in _TYPES if isinstance(x, str) else _names_types(x),
    "properties": lambda x: isinstance(x, dict),
    "required": lambda x: isinstance(x, list) and _are_strings(x),
    "enum": lambda x: isinstance(x, list) and len(x) <= _FEW and _are_strings(x) and "".join(x).isascii(),
    "const": lambda x: isinstance(x, str) and x.isascii(),
    "format": lambda x: isinstance(x, str),
    "$ref": lambda x: isinstance(x, str),
    **dict.fromkeys(("minLength", "minItems", "maxLength", "maxItems"), lambda x: type(x) is int and 0 <= x <= MAX_COUNT),
    **dict.fromkeys(("items", "additionalProperties"), lambda _: True),
    **dict.fromkeys(("minimum", "maximum"), lambda x: type(x) is int and -MAX_COUNT <= x <= MAX_COUNT),
    **dict.fromkeys(("allOf", "anyOf"), lambda x: isinstance(x, list) and bool(x)),
}
_TYPES = frozenset(TYPES)
_STRING = frozenset((str,))
# Of these, the ones that lead to no other schema. With remarks they make up most places, and all that is to be known of such a place
# is seen from the one above it.
_SETTLED = {keyword: _PLAIN[keyword] for keyword in ("type", "enum", "const", "format", "minLength", "maxLength", "minimum", "maximum")}
_REMARKS = frozenset(("title", "description", "default", "examples", "example", "$comment", "deprecated", "readOnly", "writeOnly"))
# Keywords whose meaning depends on other places, so that what they ask for may turn out to be unsupported.
_COMBINED = (
    "uniqueItems", "not", "oneOf", "allOf", "anyOf", "if", "dependentSchemas", "contains", "patternProperties", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_COMBINING = frozenset((*REFERENCES, *_COMBINED))
_REFERENCES = frozenset(REFERENCES)
_SCHEMAS = frozenset(SCHEMAS)
# keywords that hold schemas, in the order in which these are looked at
_ORDER = {keyword: i for i, keyword in enumerate((*SCHEMA_MAPS, *SCHEMA_LISTS, *SCHEMAS, "dependencies"))}
_BESIDE = {reference: KNOWN - {reference} for reference in REFERENCES}
_PLAIN_REFERENCE = ("$ref",)
_NONE: tuple[str, ...] = ()
_FEW = 100  # values of an `enum` that are no burden


def _are_strings(values: list[Json]) -> bool:
    return _STRING.issuperset(map(type, values))


def _names_types(x: Json) -> bool:
    return isinstance(x, list) and bool(x) and _are_strings(x) and _TYPES.issuperset(x)


def _is_settled(schema: Json) -> bool:
    """Whether nothing in a schema can be refused, and nothing in it leads on."""
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict):
        return False
    for keyword, value in schema.items():
        if keyword not in _REMARKS:
            is_plain = _SETTLED.get(keyword)
            if is_plain is None or not is_plain(value):
                return False
    return True


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


def _subschemas(schema: Mapping[str, Json], draft: Draft) -> Iterator[tuple[str, Iterable[tuple[str, Json]]]]:
    """Subschemas that assert something: each keyword with their names, or their numbers, and the schemas; a single one has no name."""
    keywords = [keyword for keyword in schema if keyword in _ORDER]
    if len(keywords) > 1:
        keywords.sort(key=_ORDER.__getitem__)
    for keyword in keywords:
        if not draft.has(keyword) or (keyword in ("then", "else") and "if" not in schema):
            continue
        value = schema[keyword]
        if keyword in _SCHEMAS and not (keyword == "items" and isinstance(value, list)):
            yield keyword, (("", value),)
        elif isinstance(value, list):
            yield keyword, [(str(i), inner) for i, inner in enumerate(value)]
        elif isinstance(value, dict):
            yield keyword, value.items() if keyword != "dependencies" else [x for x in value.items() if not isinstance(x[1], list)]


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
    findings = walk.run()
    if unknown_scopes and document.has_dynamic_anchors:
        walk = _Walk(document, limits, only_refused)  # now that the first reference has indexed the anchors, the root is entered with them
        findings = walk.run()
    yield from findings
    if any(finding.status == "refused" for finding in findings):
        return  # what is malformed cannot be combined
    tameness = Tameness(document)
    for schema, base, pointer, scope, keyword in walk.probes:
        if tameness.is_tame(schema, base, scope):
            continue
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
        self._plain = dict(_PLAIN) if only_refused else {}
        if limits.max_enum < _FEW:
            self._plain.pop("enum", None)
        self._num_settled = 0
        self._seen: dict[tuple[int, Scope], bool] = {}  # and whether alone
        self._found: set[int] = set()
        self._references: dict[tuple[int, Scope], list[_Reference]] = {}
        self._stack = [_Visit(document.root, "", ROOT, EMPTY_SCOPE, 0, True)]
        self.probes: list[tuple[Mapping[str, Json], str, Pointer, Scope, str]] = []

    def run(self) -> list[Finding]:
        found: list[Finding] = []
        stack, seen = self._stack, self._seen
        while stack:
            visit = stack.pop()
            schema = visit.schema
            if isinstance(schema, dict):
                key = (id(schema), visit.scope)
                known = seen.get(key)
                if known is None or (visit.alone and not known):
                    seen[key] = visit.alone
                    self._check_budget(visit.pointer, visit.depth)
                    self._place(visit, known is None, found)
            elif not isinstance(schema, bool):
                found.append(Finding(visit.pointer, "", "refused", f"a schema must be an object or a boolean, not {type(schema).__name__}"))
        circle = self._circle()
        if circle is not None:
            found.append(Finding(circle.pointer, circle.keyword, "refused", "the references lead in a circle"))
        return found

    def _check_budget(self, pointer: Pointer, depth: int) -> None:
        limits = self._limits
        if len(self._seen) + self._num_settled > limits.max_steps:
            raise LimitError(f"the schema has more than {limits.max_steps} places (max_steps)", pointer=pointer)
        if depth > limits.max_schema_depth:
            raise LimitError(f"the schema is nested deeper than {limits.max_schema_depth} (max_schema_depth)", pointer=pointer)

    def _place(self, visit: _Visit, first: bool, found: list[Finding]) -> None:
        schema, outer, pointer, outer_scope, depth, alone = visit
        document = self._document
        base = document.base_of(schema, outer)
        draft, scope = document.draft_at(base), document.enter(outer_scope, base)
        only_ref, references, passes_on, astray = False, _NONE, False, dict[str, Finding]()
        if not _REFERENCES.isdisjoint(schema):
            only_ref = draft.ref_hides_siblings and isinstance(schema.get("$ref"), str)
            references = tuple([k for k in REFERENCES if k in schema and isinstance(schema[k], str) and draft.has(k)])
            # a schema that is nothing but a reference is the one it leads to
            is_bare = len(references) == 1 and _BESIDE[references[0]].isdisjoint(schema)
            passes_on = only_ref or is_bare
            astray = self._follow(visit, references, base, scope, alone=alone and passes_on)
            if is_bare and references == _PLAIN_REFERENCE and self._only_refused and not astray:
                return  # whatever else is there is no keyword
        if id(schema) not in self._found:
            self._found.add(id(schema))
            plain = self._plain
            for keyword, value in schema.items():
                is_plain = plain.get(keyword)
                if self._only_refused and (keyword not in KNOWN if is_plain is None else is_plain(value)):
                    continue
                finding = _finding(keyword, schema, pointer, draft, self._limits, only_ref)
                if keyword not in astray:
                    found.append(finding)
                elif finding.status == "refused":
                    astray[keyword] = finding
        found.extend(astray.values())
        if only_ref:
            return
        if first:
            self._go_on(schema, pointer, base, scope, depth + 1, draft)
        if alone and not passes_on and not (_COMBINING.isdisjoint(schema) and "enum" not in schema):
            combined = next((k for k in (*references, *_COMBINED) if k in schema), None)
            if combined is None and _lists_many(schema):
                combined = "enum"
            if combined is not None:
                self.probes.append((schema, outer, pointer, outer_scope, combined))

    def _follow(self, visit: _Visit, references: Iterable[str], base: str, scope: Scope, *, alone: bool) -> dict[str, Finding]:
        """Leaves what the references lead to, to be looked at; those that lead nowhere."""
        astray: dict[str, Finding] = {}
        schema, pointer = visit.schema, visit.pointer
        for keyword in references:
            place = Pointer(pointer, keyword)
            try:
                target = self._document.resolve_in_scope(keyword, schema[keyword], base, scope, place)
            except GrammarError as error:
                astray[keyword] = Finding(place, keyword, "refused", error.reason)
            else:
                there = (id(target.schema), scope)
                known = self._seen.get(there)
                if known is None or (alone and not known):
                    self._stack.append(_Visit(target.schema, target.base, target.pointer, scope, visit.depth, alone))
                self._references.setdefault((id(schema), visit.scope), []).append(_Reference(there, place, keyword))
        return astray

    def _go_on(self, schema: Mapping[str, Json], pointer: Pointer, base: str, scope: Scope, depth: int, draft: Draft) -> None:
        """Leaves the subschemas to be looked at, but for those where there is nothing to see."""
        skips = self._only_refused and depth <= self._limits.max_schema_depth and self._limits.max_enum >= _FEW
        for keyword, members in _subschemas(schema, draft):
            place, alone, single = Pointer(pointer, keyword), keyword not in IN_PLACE, keyword in _SCHEMAS
            for name, inner in members:
                if skips and _is_settled(inner):
                    self._num_settled += 1
                else:
                    inside = Pointer(place, name) if name or not single else place
                    self._stack.append(_Visit(inner, base, inside, scope, depth, alone))

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
                if not scalar.isascii():
                    Language.literal(scalar)
            elif is_number(scalar):
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
    problem = VALUE_CHECKS[keyword](value) if keyword in VALUE_CHECKS else None
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
