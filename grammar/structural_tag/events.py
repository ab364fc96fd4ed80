"""What a parser of the output says, in the order of the text. The texts of all events together are the whole text."""

from __future__ import annotations

from dataclasses import dataclass

from .spec import Tag


@dataclass(frozen=True, kw_only=True)
class TextDelta:
    """A piece of text outside of all tags."""

    text: str


@dataclass(frozen=True, kw_only=True)
class TagBegin:
    """A tag began.

    Attributes:
        tag: which one.
        name: its name, by default its number in the tree.
        text: its begin as it was written; special tokens by their names.
    """

    tag: Tag
    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class TagDelta:
    """A piece of the content of the innermost tag that is open."""

    tag: Tag
    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class TagEnd:
    """The innermost open tag ended; `text` is its end as it was written."""

    tag: Tag
    name: str
    text: str


Event = TextDelta | TagBegin | TagDelta | TagEnd
