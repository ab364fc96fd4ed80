"""A schema document: drafts, base URIs, references, dynamic scope (JSON Schema core, RFC 3986, RFC 6901)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urldefrag

from ..errors import GrammarError
from .pointers import ROOT, Pointer
from .uris import resolve as resolve_uri

Json = Any

_DRAFTS = {
    "json-schema.org/draft-03/schema": 3,
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
}
_LATEST = 2020
_BY_NAME = {"4": 4, "6": 6, "7": 7, "2019-09": 2019, "2020-12": 2020}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The dialect a document is read in.

    Attributes:
        number: 4, 6, 7, 2019 or 2020.
        declared: False when the document names none; older keywords then keep their older meaning beside the newest.
    """

    number: int
    declared: bool

    @property
    def ref_hides_siblings(self) -> bool:
        return self.declared and self.number <= 7

    @property
    def id_keyword(self) -> str:
        return "id" if self.number == 4 else "$id"

    @property
    def contains_evaluates(self) -> bool:
        """Whether items that match `contains` are not left to `unevaluatedItems`."""
        return self.number >= 2020

    def has(self, keyword: str) -> bool:
        """Whether the draft knows a keyword that came or went with some draft."""
        first, last = _ERAS.get(keyword, (0, 9999))
        return not self.declared or first <= self.number <= last


# keyword -> first and last draft in which it asserts something
_ERAS = {
    "const": (6, 9999),
    "contains": (6, 9999),
    "propertyNames": (6, 9999),
    "if": (7, 9999),
    "dependentRequired": (2019, 9999),
    "dependentSchemas": (2019, 9999),
    "minContains": (2019, 9999),
    "maxContains": (2019, 9999),
    "unevaluatedItems": (2019, 9999),
    "unevaluatedProperties": (2019, 9999),
    "prefixItems": (2020, 9999),
    "additionalItems": (0, 2019),
    # "dependencies" stays an assertion everywhere: validators of the newer drafts keep it as an optional extension
    "$recursiveRef": (2019, 2019),
    "$dynamicRef": (2020, 9999),
    "$anchor": (2019, 9999),
    "$dynamicAnchor": (2020, 9999),
}


def draft_of(schema: Json, name: str | None = None) -> Draft:
    """The draft of a document, by `$schema` or by an explicit name such as "2020-12".

    Raises:
        GrammarError: a draft that is not supported.
    """
    if name is not None:
        if name not in _BY_NAME:
            raise GrammarError(f"unknown draft {name!r}; known: {', '.join(_BY_NAME)}")
        return Draft(number=_BY_NAME[name], declared=True)
    uri = schema.get("$schema") if isinstance(schema, dict) else None
    return _draft_of_uri(uri) if isinstance(uri, str) else _UNDECLARED


_UNDECLARED = Draft(number=_LATEST, declared=False)


@lru_cache(maxsize=64)
def _draft_of_uri(uri: str) -> Draft:
    number = _DRAFTS.get(urldefrag(uri)[0].split("://")[-1].rstrip("/"))
    if number == 3:
        raise GrammarError("draft 3 of JSON Schema is not supported", pointer="/$schema")
    return Draft(number=number or _LATEST, declared=number is not None)


# For each dynamic anchor that some resource on the way declared, the outermost of them: pairs (anchor, base URI), sorted. That is all
# of the dynamic scope that a reference can ask for, so places of equal scope mean the same and recursion stays finite.
Scope = tuple[tuple[str, str], ...]
EMPTY_SCOPE: Scope = ()

_INDEX = re.compile("0|[1-9][0-9]{0,9}")  # RFC 6901 section 4
_RECURSIVE = "#"  # `$recursiveAnchor: true` is a dynamic anchor with the empty name
_SCHEMA_MAPS = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
_SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SCHEMAS = (
    "items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedItems",
    "unevaluatedProperties", "contentSchema",
)  # fmt: skip
_NAMING = frozenset(("$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"))
_NAMING_OR_HOLDING = _NAMING.union(_SCHEMA_MAPS, _SCHEMA_LISTS, _SCHEMAS)
_DATA = ("enum", "const", "default", "examples")


@dataclass(frozen=True)
class Target:
    """Where a reference leads.

    Attributes:
        schema: the schema there.
        base: base URI outside of it, to which its own identifier is relative.
        pointer: its place, for messages.
    """

    schema: Json
    base: str
    pointer: Pointer


@dataclass(frozen=True)
class _Source:
    """A document that references may lead into: the root, a registered one or a metaschema."""

    root: Json
    uri: str
    draft: Draft


Children = Callable[[Json], Iterator[tuple[tuple[str | int, ...], Json]]]


class Document:
    """A root schema and the resources inside it.

    References are followed when the document is checked, so that everything they lead to is indexed before anything is expanded.

    Args:
        root: the schema.
        draft: see `draft_of`.
        registry: further documents by absolute URI, for references that leave the document.
    """

    def __init__(self, root: Json, draft: Draft, registry: Mapping[str, Json] | None = None):
        self.root = root
        self.draft = draft
        self._registry = dict(registry or {})
        self._sources: list[_Source] = []
        self._loose = False  # whether places that are no known subschemas are indexed too
        self._targets: dict[tuple[str, str], Target] = {}  # by reference and base
        self._resources: dict[str, Target] = {}
        self._anchors: dict[tuple[str, str], Target] = {}
        self._dynamic: dict[str, dict[str, Target]] = {}  # base -> dynamic anchors of that resource
        self._drafts: dict[str, Draft] = {}  # base -> draft, for resources that differ from the root

    # --- places ----------------------------------------------------------------------------------------------------

    def draft_at(self, base: str) -> Draft:
        """The draft of the resource with a base URI."""
        return self._drafts.get(base, self.draft) if self._drafts else self.draft

    def base_of(self, schema: Json, base: str) -> str:
        """The base URI inside `schema`, given the one outside."""
        if not isinstance(schema, dict) or ("$id" not in schema and "id" not in schema):
            return base
        draft = self._draft_of(schema, self.draft_at(base))
        identifier = schema.get(draft.id_keyword)
        if not isinstance(identifier, str) or identifier.startswith("#") or (draft.ref_hides_siblings and "$ref" in schema):
            return base
        return resolve_uri(base, identifier).uri

    def _draft_of(self, schema: Mapping[str, Json], outer: Draft) -> Draft:
        if schema is self.root or not isinstance(schema.get("$schema"), str):
            return outer
        draft = draft_of(schema)
        return draft if draft.declared else outer

    @property
    def has_dynamic_anchors(self) -> bool:
        """Whether some resource indexed so far declares a `$dynamicAnchor` or `$recursiveAnchor`."""
        return bool(self._dynamic)

    def enter(self, scope: Scope, base: str) -> Scope:
        """The dynamic scope inside the resource `base`, entered from `scope`."""
        declared = self._dynamic.get(base)
        if not declared:
            return scope
        known = {name for name, _ in scope}
        new = [(name, base) for name in declared if name not in known]
        return tuple(sorted((*scope, *new))) if new else scope

    # --- references ------------------------------------------------------------------------------------------------

    def resolve(self, reference: str, base: str, pointer: Pointer) -> Target:
        """Follows a `$ref`.

        Raises:
            GrammarError: with the pointer of the reference, when it leads nowhere or out of the document.
        """
        target = self._targets.get((reference, base))
        if target is None:
            target = self._targets[reference, base] = self._resolve(reference, base, pointer)
        return target

    def _resolve(self, reference: str, base: str, pointer: Pointer) -> Target:
        uri, fragment = resolve_uri(base, reference)
        fragment = unquote(fragment)
        resource = self._resource(uri)
        if resource is None:
            raise GrammarError(f"the reference {reference!r} leads to {uri!r}, which is not part of the schema", pointer=pointer)
        if not fragment or fragment.startswith("/"):
            return self._walk(resource, fragment, reference, pointer)
        if (uri, fragment) not in self._anchors:
            self._index_loosely()
        anchor = self._anchors.get((uri, fragment))
        if anchor is None:
            raise GrammarError(f"there is no anchor {fragment!r} for the reference {reference!r}", pointer=pointer)
        return anchor

    def resolve_in_scope(self, keyword: str, reference: str, base: str, scope: Scope, pointer: Pointer) -> Target:
        """Follows a `$ref`, `$dynamicRef` or `$recursiveRef` met in a dynamic scope.

        Raises:
            GrammarError: as `resolve`.
        """
        target = self.resolve(reference, base, pointer)
        anchor = self._dynamic_anchor(keyword, reference, target)
        if anchor is None:
            return target
        outermost = dict(scope).get(anchor)
        return target if outermost is None else self._dynamic[outermost][anchor]

    def _dynamic_anchor(self, keyword: str, reference: str, target: Target) -> str | None:
        """The dynamic anchor that the reference asks the dynamic scope for; None if its target is fixed.

        The target found without the scope decides: it must carry the anchor itself (core 2020-12 section 8.2.3.2, 2019-09 8.2.4.2).
        """
        if keyword == "$ref" or not isinstance(target.schema, dict):
            return None
        if keyword == "$recursiveRef":
            return _RECURSIVE if target.schema.get("$recursiveAnchor") is True else None
        name = unquote(urldefrag(reference)[1])
        return "#" + name if name and target.schema.get("$dynamicAnchor") == name else None

    def _walk(self, resource: Target, fragment: str, reference: str, pointer: Pointer) -> Target:
        schema, base, place = resource.schema, resource.base, resource.pointer
        for part in fragment.split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            base = self.base_of(schema, base)
            if isinstance(schema, dict) and part in schema:
                schema = schema[part]
            elif isinstance(schema, list) and _INDEX.fullmatch(part) and int(part) < len(schema):
                schema = schema[int(part)]
            else:
                raise GrammarError(
                    f"the reference {reference!r} leads nowhere: there is no {part!r} in {str(place) or 'the root'}", pointer=pointer
                )
            place = place.child(part)
        return Target(schema, base, place)

    # --- index -----------------------------------------------------------------------------------------------------

    def _resource(self, uri: str) -> Target | None:
        if not self._sources:
            self._add(_Source(self.root, "", self.draft))
        found = self._resources.get(uri)
        if found is None:
            self._load(uri)
            found = self._resources.get(uri)
        if found is None:
            self._index_loosely()
            found = self._resources.get(uri)
        return found

    def _load(self, uri: str) -> None:
        """Adds a registered document or an official metaschema."""
        schema = self._registry.get(uri)
        if schema is None:
            from jsonschema_specifications import REGISTRY

            found = REGISTRY.get(uri) or REGISTRY.get(uri + "#")
            if found is None:
                return
            schema = found.contents
        self._add(_Source(schema, uri, self.draft))

    def _add(self, source: _Source) -> None:
        self._sources.append(source)
        self._index(source, _subschemas)
        if self._loose:
            self._index(source, _containers)

    def _index_loosely(self) -> None:
        """Also finds identifiers and anchors below unknown keywords, which come after those of known subschemas."""
        if not self._loose:
            self._loose = True
            for source in self._sources:
                self._index(source, _containers)

    def _index(self, source: _Source, children: Children) -> None:
        base, pointer = source.uri, Pointer(None, source.uri) if source.uri else ROOT
        self._resources.setdefault(base, Target(source.root, base, pointer))
        stack: list[tuple[Json, str, Pointer, Draft]] = [(source.root, base, pointer, source.draft)]
        while stack:
            schema, base, pointer, draft = stack.pop()
            inner = base
            if isinstance(schema, dict) and (schema is source.root or not _NAMING.isdisjoint(schema)):
                inner = self.base_of(schema, base)
                is_resource = inner != base or schema is source.root
                if is_resource:
                    draft = self._draft_of(schema, draft)
                    if draft != self.draft:
                        self._drafts.setdefault(inner, draft)
                self._index_place(schema, Target(schema, base, pointer), inner, draft, is_resource=is_resource)
            stack.extend((x, inner, pointer.child(*steps), draft) for steps, x in children(schema))

    def _index_place(self, schema: Mapping[str, Json], target: Target, base: str, draft: Draft, *, is_resource: bool) -> None:
        if is_resource:
            self._resources.setdefault(base, target)
            if schema.get("$recursiveAnchor") is True and draft.has("$recursiveRef"):
                self._dynamic.setdefault(base, {}).setdefault(_RECURSIVE, target)
        names = [schema.get("$anchor"), schema.get("$dynamicAnchor")]
        identifier = schema.get(draft.id_keyword)
        if isinstance(identifier, str) and "#" in identifier:
            names.append(urldefrag(identifier)[1])
        for name in names:
            if isinstance(name, str):
                self._anchors.setdefault((base, name), target)
        dynamic = schema.get("$dynamicAnchor")
        if isinstance(dynamic, str) and draft.has("$dynamicAnchor"):
            self._dynamic.setdefault(base, {}).setdefault("#" + dynamic, target)


def _subschemas(schema: Json) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Subschemas of a schema that have a name or subschemas, with the steps to them."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if isinstance(value, dict):
            if keyword in _SCHEMA_MAPS:
                for name, x in value.items():
                    if isinstance(x, dict) and not _NAMING_OR_HOLDING.isdisjoint(x):
                        yield (keyword, name), x
            elif keyword in _SCHEMAS and not _NAMING_OR_HOLDING.isdisjoint(value):
                yield (keyword,), value
        elif isinstance(value, list) and keyword in _SCHEMA_LISTS:
            for i, x in enumerate(value):
                if isinstance(x, dict) and not _NAMING_OR_HOLDING.isdisjoint(x):
                    yield (keyword, i), x


def _containers(value: Json) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Everything in a value that may hold schemas: all but data."""
    if isinstance(value, list):
        yield from (((i,), x) for i, x in enumerate(value) if isinstance(x, list | Mapping))
    elif isinstance(value, dict):
        for key, x in value.items():
            if key not in _DATA and isinstance(x, list | Mapping):
                yield (key,), x
