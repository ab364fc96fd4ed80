"""URI references (RFC 3986 section 5), for every scheme."""

from __future__ import annotations

import re
from typing import NamedTuple

# RFC 3986 appendix B: scheme, authority, path, query, fragment
_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


class Resolved(NamedTuple):
    """A URI without its fragment, and the fragment ("" when there is none)."""

    uri: str
    fragment: str


def resolve(base: str, reference: str) -> Resolved:
    """`reference` seen from `base`. A base without a scheme is itself relative, and so is the answer then."""
    if reference.startswith("#") and "#" not in base:
        return Resolved(base, reference[1:])
    scheme, authority, path, query, fragment = _split(reference)
    if scheme is None:
        scheme, base_authority, base_path, base_query, _ = _split(base)
        if authority is None:
            authority = base_authority
            if not path:
                path, query = base_path, base_query if query is None else query
            elif not path.startswith("/"):
                path = _without_dots(_merge(base_path, path, authority is not None))
            else:
                path = _without_dots(path)
        else:
            path = _without_dots(path)
    uri = f"{scheme}:" if scheme is not None else ""
    uri += f"//{authority}" if authority is not None else ""
    uri += path + (f"?{query}" if query is not None else "")
    return Resolved(uri, fragment or "")


def _split(uri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(uri)
    assert match is not None, "every text is a URI reference to the pattern"
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path, query, fragment


def _merge(base_path: str, path: str, has_authority: bool) -> str:
    if has_authority and not base_path:
        return "/" + path
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Removes `.` and `..` segments (RFC 3986 section 5.2.4)."""
    if "." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")
    for i, segment in enumerate(segments):
        last = i == len(segments) - 1
        if segment == "..":
            if kept and kept != [""] and kept[-1] != "..":
                kept.pop()
            elif path[:1] != "/":
                kept.append("..")
        elif segment != ".":
            kept.append(segment)
            continue
        if last:
            kept.append("")
    return "/".join(kept)
