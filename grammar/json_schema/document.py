"""A schema document: drafts, base URIs, references (JSON Schema core, RFC 3986, RFC 6901)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from ..errors import GrammarError

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
    uri = schema.get("$schema") if isinstance(schema, Mapping) else None
    if not isinstance(uri, str):
        return Draft(number=_LATEST, declared=False)
    number = _DRAFTS.get(urldefrag(uri)[0].split("://")[-1].rstrip("/"))
    if number == 3:
        raise GrammarError("draft 3 of JSON Schema is not supported", pointer="/$schema")
    return Draft(number=number or _LATEST, declared=number is not None)


def escape_pointer(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


@dataclass(frozen=True)
class Target:
    """Where a reference leads."""

    schema: Json
    base: str
    pointer: str


class Document:
    """A root schema and the resources inside it.

    Args:
        root: the schema.
        draft: see `draft_of`.
        registry: further documents by absolute URI, for references that leave the document.
    """

    def __init__(self, root: Json, draft: Draft, registry: Mapping[str, Json] | None = None):
        self.root = root
        self.draft = draft
        self._registry = dict(registry or {})
        self._resources: dict[str, Target] | None = None
        self._anchors: dict[tuple[str, str], Target] = {}
        self._dynamic: dict[str, list[Target]] = {}

    @property
    def base(self) -> str:
        return self.base_of(self.root, "")

    def base_of(self, schema: Json, base: str) -> str:
        """The base URI inside `schema`, given the one outside."""
        identifier = schema.get(self.draft.id_keyword) if isinstance(schema, Mapping) else None
        if not isinstance(identifier, str) or identifier.startswith("#"):
            return base
        if self.draft.ref_hides_siblings and "$ref" in schema:
            return base
        return urldefrag(urljoin(base, identifier))[0]

    def resolve(self, reference: str, base: str, pointer: str) -> Target:
        """Follows a `$ref`.

        Raises:
            GrammarError: with the pointer of the reference, when it leads nowhere or out of the document.
        """
        resources = self._index()
        uri, fragment = urldefrag(urljoin(base, reference))
        resource = resources.get(uri) or self._load(uri)
        if resource is None:
            raise GrammarError(f"the reference {reference!r} leads to {uri!r}, which is not part of the schema", pointer=pointer)
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            anchor = self._anchors.get((uri, fragment))
            if anchor is None:
                raise GrammarError(f"there is no anchor {fragment!r} for the reference {reference!r}", pointer=pointer)
            return anchor
        return self._walk(resource, fragment, reference, pointer)

    def resolve_dynamic(self, reference: str, base: str, pointer: str) -> Target:
        """Follows a `$dynamicRef` whose target does not depend on the dynamic scope.

        Raises:
            GrammarError: several resources declare the anchor, so the target is not fixed.
        """
        target = self.resolve(reference, base, pointer)
        name = urldefrag(reference)[1]
        declared = isinstance(target.schema, Mapping) and target.schema.get("$dynamicAnchor") == name
        if declared and len(self._dynamic.get(name, ())) > 1:
            raise GrammarError(f"the target of $dynamicRef {reference!r} depends on the dynamic scope", pointer=pointer)
        return target

    def _walk(self, resource: Target, fragment: str, reference: str, pointer: str) -> Target:
        schema, base, place = resource.schema, resource.base, resource.pointer
        for part in fragment.split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(schema, Mapping) and part in schema:
                schema = schema[part]
            elif isinstance(schema, list) and part.isdecimal() and int(part) < len(schema):
                schema = schema[int(part)]
            else:
                raise GrammarError(
                    f"the reference {reference!r} leads nowhere: there is no {part!r} in {place or 'the root'}", pointer=pointer
                )
            base = self.base_of(schema, base)
            place += "/" + escape_pointer(part)
        return Target(schema, base, place)

    def _load(self, uri: str) -> Target | None:
        """A registered document or an official metaschema."""
        schema = self._registry.get(uri)
        if schema is None:
            from jsonschema_specifications import REGISTRY

            found = REGISTRY.get(uri) or REGISTRY.get(uri + "#")
            if found is None:
                return None
            schema = found.contents
        self._index_document(schema, uri, uri)
        return self._index().get(uri)

    def _index(self) -> dict[str, Target]:
        if self._resources is None:
            self._resources = {}
            self._index_document(self.root, "", "")
        return self._resources

    def _index_document(self, root: Json, base: str, pointer: str) -> None:
        resources = self._resources
        assert resources is not None
        resources.setdefault(base, Target(root, self.base_of(root, base), pointer))
        stack: list[tuple[Json, str, str]] = [(root, base, pointer)]
        while stack:
            schema, base, pointer = stack.pop()
            if isinstance(schema, list):
                stack.extend((x, base, f"{pointer}/{i}") for i, x in enumerate(schema) if isinstance(x, list | Mapping))
                continue
            inner = self.base_of(schema, base)
            if inner != base:
                resources.setdefault(inner, Target(schema, inner, pointer))
            self._index_anchors(schema, inner, pointer)
            stack.extend((x, inner, f"{pointer}/{escape_pointer(k)}") for k, x in _children(schema))

    def _index_anchors(self, schema: Mapping[str, Json], base: str, pointer: str) -> None:
        names = [schema.get("$anchor"), schema.get("$dynamicAnchor")]
        identifier = schema.get(self.draft.id_keyword)
        if isinstance(identifier, str) and identifier.startswith("#"):
            names.append(identifier[1:])
        for name in names:
            if isinstance(name, str):
                self._anchors.setdefault((base, name), Target(schema, base, pointer))
        dynamic = schema.get("$dynamicAnchor")
        if isinstance(dynamic, str):
            self._dynamic.setdefault(dynamic, []).append(Target(schema, base, pointer))


def _children(schema: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Values that may hold schemas: everything but data."""
    for key, value in schema.items():
        if key not in ("enum", "const", "default", "examples") and isinstance(value, list | Mapping):
            yield key, value
