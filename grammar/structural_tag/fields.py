"""The fields of JSON objects, read and checked one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import GrammarError
from .pointers import child
from .spec import Boundary, Node, Piece, Sequence, Tag, Text, Token

Json = Any
_SURROGATE = "a lone surrogate is in no text"
Reader = Callable[[Json, str, int], Node]  # of a value, its pointer and its depth


class Fields:
    """The fields of one JSON object. Each is taken once; `done` refuses what is left.

    Args:
        depth: of the object in the tree.
        read: makes the node of an object inside.
    """

    def __init__(self, data: Json, pointer: str, depth: int, read: Reader):
        if not isinstance(data, Mapping):
            raise GrammarError(f"a part of a structural tag is an object, not {_named(data)}", pointer=pointer)
        self._data = dict(data)
        self.pointer = pointer
        self._depth = depth
        self._read = read

    def at(self, name: str) -> str:
        return child(self.pointer, name)

    def done(self) -> None:
        for name in self._data:
            raise GrammarError(f"there is no field {str(name)[:80]!r} here", pointer=self.at(str(name)))

    def value(self, name: str) -> Json:
        if name not in self._data:
            raise GrammarError(f"the field {name!r} is missing", pointer=self.pointer)
        return self._data.pop(name)

    def has(self, name: str) -> bool:
        return self._data.get(name) is not None

    def text(self, name: str) -> str:
        text = self._typed(name, self.value(name), str, "a text")
        if not _is_unicode(text):
            raise GrammarError(_SURROGATE, pointer=self.at(name))
        return text

    def optional_text(self, name: str) -> str | None:
        value = self._data.pop(name, None)
        return None if value is None else self._typed(name, value, str, "a text")

    def texts(self, name: str) -> list[str]:
        """A list of texts, none of them empty; none where it is missing."""
        found = self.boundaries(name)
        for i, text in enumerate(found):
            if not isinstance(text, str):
                raise GrammarError("this has to be a text", pointer=child(self.at(name), i))
        return [text for text in found if isinstance(text, str)]

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._data.pop(name, None)
        return default if value is None else self._typed(name, value, bool, "true or false")

    def count(self, name: str, unbounded: int | None = None) -> int | None:
        """A number; None where it is missing or `unbounded`."""
        value = self._data.pop(name, None)
        if value is None or value == unbounded:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise GrammarError(f"{name!r} is a whole number from 0 on", pointer=self.at(name))
        return value

    def choice(self, name: str, options: tuple[str, ...]) -> str:
        value = self._data.pop(name, None)
        if value is None:
            return options[0]
        if value not in options:
            raise GrammarError(f"{name!r} has no option {str(value)[:80]!r}", pointer=self.at(name), expected=options)
        return value

    def refuse(self, name: str, reason: str) -> None:
        """Refuses a field that is known but not supported, unless it is null or empty."""
        if self._data.pop(name, None) not in (None, [], False):
            raise GrammarError(reason, pointer=self.at(name))

    def node(self, name: str) -> Node:
        return self._read(self.value(name), self.at(name), self._depth + 1)

    def nodes(self, name: str) -> tuple[Node, ...]:
        return tuple(self._read(data, child(self.at(name), i), self._depth + 1) for i, data in enumerate(self.items(name)))

    def tags(self, name: str) -> tuple[Tag, ...]:
        found = []
        for i, data in enumerate(self.items(name)):
            pointer = child(self.at(name), i)
            if isinstance(data, Mapping) and "type" not in data:
                data = {"type": "tag", **data}
            node = self._read(data, pointer, self._depth + 1)
            if not isinstance(node, Tag):
                raise GrammarError("this has to be a tag", pointer=pointer)
            found.append(node)
        return tuple(found)

    def boundary(self, name: str, *, may_be_empty: bool = True) -> Boundary:
        return self._boundary(self.value(name), self.at(name), may_be_empty)

    def boundaries(self, name: str, *, token: bool = False, may_be_empty: bool = False, required: bool = False) -> tuple[Boundary, ...]:
        """A list of boundaries.

        Args:
            token: texts and numbers name tokens.
        """
        if not required and not self.has(name):
            self._data.pop(name, None)
            return ()
        return tuple(self._boundary(data, child(self.at(name), i), may_be_empty, token) for i, data in enumerate(self.items(name)))

    def ends(self, name: str) -> tuple[Boundary, ...]:
        """One boundary or a list of them; none where it is empty."""
        if isinstance(self._data.get(name), list):
            return self.boundaries(name, may_be_empty=True, required=True) or ("",)
        return (self.boundary(name),)

    def rules(self, name: str, *, token: bool = False) -> tuple[Tag, ...]:
        """`[boundary, part]` pairs, as tags without an end."""
        tags = []
        for i, pair in enumerate(self.items(name)):
            pointer = child(self.at(name), i)
            if not isinstance(pair, list) or len(pair) != 2:
                raise GrammarError("a rule is a pair: what begins it, and what follows", pointer=pointer)
            begin = self._boundary(pair[0], child(pointer, 0), False, token)
            content = self._read(pair[1], child(pointer, 1), self._depth + 1)
            tags.append(Tag(begin=begin, content=content, end=("",), pointer=pointer))
        return tuple(tags)

    def items(self, name: str) -> list[Json]:
        return self._typed(name, self.value(name), list, "a list")

    def _boundary(self, data: Json, pointer: str, may_be_empty: bool, token: bool = False) -> Boundary:
        if token and isinstance(data, str | int) and not isinstance(data, bool):
            return Token(token=data, pointer=pointer)
        if isinstance(data, Mapping):
            plain = _plain_pieces(data, pointer)
            return self._pieces(self._read(data, pointer, self._depth + 1)) if plain is None else plain
        if not isinstance(data, str):
            raise GrammarError(f"a boundary is a text or a token, not {_named(data)}", pointer=pointer)
        if not data and not may_be_empty:
            raise GrammarError("this text may not be empty", pointer=pointer)
        if not _is_unicode(data):
            raise GrammarError(_SURROGATE, pointer=pointer)
        return data

    def _pieces(self, node: Node) -> Boundary:
        """A node as a boundary: a token, or texts and tokens in a sequence."""
        pieces: list[Piece] = []
        for part in node.elements if isinstance(node, Sequence) else (node,):
            if isinstance(part, Text) and part.value:
                pieces.append(part.value)
            elif isinstance(part, Token):
                pieces.append(part)
            else:
                raise GrammarError("a boundary is a text, a token, or a sequence of these", pointer=part.pointer)
        return pieces[0] if len(pieces) == 1 else tuple(pieces)

    def _typed(self, name: str, value: Json, kind: type, what: str) -> Json:
        if not isinstance(value, kind):
            raise GrammarError(f"{name!r} is {what}, not {_named(value)}", pointer=self.at(name))
        return value


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _plain_pieces(data: Mapping[str, Json], pointer: str) -> Boundary | None:
    """A boundary as this library writes it, in a hurry: there are many. None where it has to be looked at."""
    pieces: list[Piece] = []
    for part in data["elements"] if data.get("type") == "sequence" and isinstance(data.get("elements"), list) else (data,):
        if not isinstance(part, Mapping) or len(part) != 2:
            return None
        kind, token, text = part.get("type"), part.get("token"), part.get("value")
        if kind == "token" and isinstance(token, str) and token:
            pieces.append(Token(token=token, pointer=pointer))
        elif kind == "const_string" and isinstance(text, str) and text and text.isascii():
            pieces.append(text)
        else:
            return None
    return pieces[0] if len(pieces) == 1 else tuple(pieces)


def _named(value: Json) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
