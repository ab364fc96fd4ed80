"""Where in a JSON document a text stands that has been read up to some character."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from enum import Enum, auto

_PLAIN = re.compile(r'[^"\\]*')
_SCALAR = re.compile(r"[-+.0-9A-Za-z]+")
_SPACE = re.compile(r"[ \t\n\r]*")


class Expects(Enum):
    """What may come next."""

    VALUE = auto()
    FIRST_KEY = auto()  # or the end of the object
    KEY = auto()
    IN_KEY = auto()
    COLON = auto()
    IN_STRING = auto()
    IN_SCALAR = auto()  # further characters of a number or word, or what comes after it
    AFTER = auto()  # a comma or the end of the array or object, or the end of the text


@dataclass
class _Open:
    """An array or object that is not closed yet."""

    is_object: bool
    key: str = ""
    index: int = 0


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place in a JSON document.

    Attributes:
        tokens: keys and indices that lead from the root to the value that is being read.
        expects: what may come next.
        in_object: whether the innermost open container is an object; None outside of all.
        partial: the characters of the open string so far, as they are spelt.
    """

    tokens: tuple[str, ...]
    expects: Expects
    in_object: bool | None
    partial: str = ""

    @property
    def pointer(self) -> str:
        """RFC 6901."""
        return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in self.tokens)


    def behind_scalar(self) -> Place:
        """The place where the number or word being read has ended."""
        return replace(self, tokens=self.tokens[:-1], expects=Expects.AFTER)


@dataclass
class _Scan:
    stack: list[_Open] = field(default_factory=list)
    expects: Expects = Expects.VALUE
    partial: str = ""

    def place(self) -> Place:
        tokens = [o.key if o.is_object else str(o.index) for o in self.stack]
        if self.stack and self.stack[-1].is_object and self.expects not in (Expects.VALUE, Expects.IN_STRING, Expects.IN_SCALAR):
            tokens.pop()  # between members it is the object that is read
        elif self.stack and self.expects is Expects.AFTER:
            tokens.pop()
        in_object = self.stack[-1].is_object if self.stack else None
        return Place(tokens=tuple(tokens), expects=self.expects, in_object=in_object, partial=self.partial)


def place_after(text: str) -> Place:
    """The place after `text`, which is the beginning of a JSON document."""
    scan, at = _Scan(), 0
    while at < len(text):
        at = _read(scan, text, at)
    return scan.place()


def _read(scan: _Scan, text: str, at: int) -> int:
    """Reads one token; the index behind it."""
    char = text[at]
    if char in " \t\n\r":
        if scan.expects is Expects.IN_SCALAR:
            scan.expects = Expects.AFTER
        match = _SPACE.match(text, at)
        assert match is not None
        return match.end()
    if char == '"':
        return _read_string(scan, text, at)
    if char in "{[":
        scan.stack.append(_Open(char == "{"))
        scan.expects = Expects.FIRST_KEY if char == "{" else Expects.VALUE
        return at + 1
    if char in "}]":
        if scan.stack:
            scan.stack.pop()
        scan.expects = Expects.AFTER
        return at + 1
    if char == ",":
        if scan.stack and not scan.stack[-1].is_object:
            scan.stack[-1].index += 1
            scan.expects = Expects.VALUE
        else:
            scan.expects = Expects.KEY
        return at + 1
    if char == ":":
        scan.expects = Expects.VALUE
        return at + 1
    scan.expects = Expects.IN_SCALAR
    match = _SCALAR.match(text, at)
    return match.end() if match is not None else at + 1


def _read_string(scan: _Scan, text: str, at: int) -> int:
    is_key = scan.expects in (Expects.FIRST_KEY, Expects.KEY)
    end = at + 1
    while end < len(text):
        match = _PLAIN.match(text, end)
        assert match is not None
        end = match.end()
        if end < len(text) and text[end] == '"':
            if is_key:
                scan.stack[-1].key = _decoded(text[at : end + 1])
            scan.expects, scan.partial = (Expects.COLON if is_key else Expects.AFTER), ""
            return end + 1
        end += 2  # a backslash and what it escapes
    scan.expects, scan.partial = (Expects.IN_KEY if is_key else Expects.IN_STRING), text[at + 1 :]
    return len(text)


def _decoded(spelling: str) -> str:
    try:
        return json.loads(spelling)
    except ValueError:
        return spelling[1:-1]
