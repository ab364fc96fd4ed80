"""JSON to trees: the own form, xgrammar's `structural_tag` with a `format`, and the older one with `structures` and `triggers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import GrammarError, LimitError
from .bare_values import BARE_STYLES
from .fields import Fields
from .parameter_styles import STYLES
from .pointers import child
from .spec import (
    AnyText,
    AnyToken,
    Boundary,
    GrammarText,
    JsonSchema,
    Node,
    Optional,
    Or,
    Regex,
    Repeat,
    Sequence,
    Tag,
    Text,
    Token,
    TriggeredTags,
    pieces,
    reading,
)

Json = Any

MAX_DEPTH = 100
_ROOT = "structural_tag"


def read_tree(data: Json) -> Node:
    """The tree of a JSON value.

    Raises:
        GrammarError: with the pointer of what is malformed, unknown or not supported.
        LimitError: it is nested deeper than `MAX_DEPTH`.
    """
    if isinstance(data, Mapping) and data.get("type") == _ROOT:
        if "structures" in data:
            return _read_structures(Fields(data, "", 0, _read))
        fields = Fields(data, "", 0, _read)
        fields.value("type")
        node = fields.node("format")
        fields.done()
        return node
    return _read(data, "", 0)


def _read(data: Json, pointer: str, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise LimitError(f"a structural tag is nested at most {MAX_DEPTH} deep", pointer=pointer)
    fields = Fields(data, pointer, depth, _read)
    kind = fields.text("type")
    read = _READERS.get(kind)
    if read is None:
        expected = (_ROOT, *_READERS) if not pointer else tuple(_READERS)
        raise GrammarError(f"there is no part of type {kind[:80]!r}", pointer=child(pointer, "type"), expected=expected)
    node = read(fields)
    fields.done()
    return node


# --- one reader a type -----------------------------------------------------------------------------------------------


def _text(fields: Fields) -> Node:
    return Text(value=fields.text("value"), pointer=fields.pointer)


def _token(fields: Fields) -> Node:
    token = fields.value("token")
    if isinstance(token, bool) or not isinstance(token, str | int) or token == "":
        raise GrammarError("a token is given by its name or its id", pointer=fields.at("token"))
    return Token(token=token, pointer=fields.pointer)


def _any_text(fields: Fields) -> Node:
    excludes, tokens, chars = fields.boundaries("excludes"), fields.count("max_tokens"), fields.count("max_chars")
    if tokens is not None and chars is not None:
        raise GrammarError("a text is bounded in tokens or in characters, not in both", pointer=fields.at("max_chars"))
    return AnyText(excludes=excludes, max_tokens=tokens, max_chars=chars, pointer=fields.pointer)


def _any_tokens(fields: Fields) -> Node:
    excludes = fields.boundaries("exclude_tokens", token=True)
    return AnyText(excludes=excludes, max_tokens=fields.count("max_tokens"), pointer=fields.pointer)


def _exclude_token(fields: Fields) -> Node:
    excludes = fields.boundaries("exclude_tokens", token=True)
    return AnyToken(excludes=excludes, pointer=fields.pointer)


def _grammar(fields: Fields) -> Node:
    notation: Any = fields.choice("notation", ("ebnf", "gbnf", "lark"))
    start = fields.optional_text("start")
    return GrammarText(grammar=fields.text("grammar"), notation=notation, start=start, pointer=fields.pointer)


def _regex(fields: Fields) -> Node:
    excludes = tuple(fields.texts("excludes"))
    dialect: Any = fields.choice("dialect", ("ecma", "python"))
    return Regex(pattern=fields.text("pattern"), dialect=dialect, excludes=excludes, pointer=fields.pointer)


def _json_schema(fields: Fields) -> Node:
    return _json_schema_of(fields, fields.choice("style", ("json", *STYLES, *BARE_STYLES)))


def _qwen_xml_parameter(fields: Fields) -> Node:
    return _json_schema_of(fields, "qwen_xml")


def _json_schema_of(fields: Fields, style: str) -> Node:
    fields.refuse("excludes", "texts to exclude from the strings of a schema are not supported")
    any_order, most_spaces = fields.flag("any_order"), fields.count("max_whitespace_cnt")
    if most_spaces is not None and fields.has("whitespace"):
        raise GrammarError("'whitespace' says all of it already", pointer=fields.at("max_whitespace_cnt"))
    spaces = "bounded" if most_spaces is None else f"[ \t\n\r]{{0,{most_spaces}}}"
    order: Any = fields.choice("property_order", ("any", "schema") if any_order else ("schema", "any"))
    if style != "json" and order == "any":
        where = fields.at("any_order" if any_order else "property_order")
        raise GrammarError(f"the style {style!r} keeps the order of the schema", pointer=where)
    return JsonSchema(
        json_schema=fields.value("json_schema"),
        style=style,
        whitespace=fields.optional_text("whitespace") or spaces,
        property_order=order,
        pointer=fields.pointer,
    )


def _sequence(fields: Fields) -> Node:
    return Sequence(elements=_some(fields, fields.nodes("elements")), pointer=fields.pointer)


def _or(fields: Fields) -> Node:
    return Or(elements=_some(fields, fields.nodes("elements")), pointer=fields.pointer)


def _some(fields: Fields, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    if not nodes:
        raise GrammarError("there has to be at least one element", pointer=fields.at("elements"))
    return nodes


def _optional(fields: Fields) -> Node:
    return Optional(content=fields.node("content"), pointer=fields.pointer)


def _plus(fields: Fields) -> Node:
    return Repeat(content=fields.node("content"), min=1, pointer=fields.pointer)


def _star(fields: Fields) -> Node:
    return Repeat(content=fields.node("content"), pointer=fields.pointer)


def _repeat(fields: Fields) -> Node:
    low = fields.count("min") or 0
    high = fields.count("max", unbounded=-1)
    if high is not None and high < low:
        raise GrammarError(f"'max' ({high}) is less than 'min' ({low})", pointer=fields.at("max"))
    return Repeat(content=fields.node("content"), min=low, max=high, pointer=fields.pointer)


def _tag(fields: Fields) -> Tag:
    begin, content, end = fields.boundary("begin"), fields.node("content"), fields.ends("end")
    return Tag(begin=begin, content=content, end=end, name=fields.optional_text("name"), pointer=fields.pointer)


def _triggered_tags(fields: Fields) -> Node:
    triggers = fields.boundaries("triggers", required=True)
    return _triggered(fields, triggers, fields.tags("tags"), fields.boundaries("excludes"))


def _token_triggered_tags(fields: Fields) -> Node:
    triggers = fields.boundaries("trigger_tokens", token=True, required=True)
    return _triggered(fields, triggers, fields.tags("tags"), fields.boundaries("exclude_tokens", token=True))


def _triggered(fields: Fields, triggers: tuple[Boundary, ...], tags: tuple[Tag, ...], excludes: tuple[Boundary, ...]) -> TriggeredTags:
    at_least_one = fields.flag("at_least_one")
    node = TriggeredTags(
        triggers=triggers,
        tags=tags,
        at_least_one=at_least_one,
        stop_after_first=fields.flag("stop_after_first"),
        excludes=excludes,
        # xgrammar: "at_least_one ... disallows leading free text"
        text_before=fields.flag("text_before", not at_least_one),
        pointer=fields.pointer,
    )
    _check_triggers(node)
    return node


def _check_triggers(node: TriggeredTags) -> None:
    if not node.tags:
        raise GrammarError("there has to be at least one tag", pointer=child(node.pointer, "tags"))
    for tag in node.tags:
        if not any(begins_with(tag.begin, trigger) for trigger in node.triggers):
            raise GrammarError("no trigger is the beginning of this tag", pointer=child(tag.pointer, "begin"))
    for i, trigger in enumerate(node.triggers):
        if not any(begins_with(tag.begin, trigger) for tag in node.tags):
            raise GrammarError("no tag begins with this trigger", pointer=child(node.pointer, "triggers", i))


def begins_with(begin: Boundary, trigger: Boundary) -> bool:
    """Whether a trigger announces a tag that begins so."""
    announced = _letters(trigger)
    return _letters(begin)[: len(announced)] == announced


def _letters(boundary: Boundary) -> list[str | Token]:
    """A boundary as characters and tokens."""
    return [letter for piece in pieces(boundary) for letter in ((piece,) if isinstance(piece, Token) else piece)]


def _dispatch(fields: Fields) -> Node:
    return _dispatched(fields, fields.rules("rules"), fields.boundaries("excludes"))


def _token_dispatch(fields: Fields) -> Node:
    return _dispatched(fields, fields.rules("rules", token=True), fields.boundaries("exclude_tokens", token=True))


def _dispatched(fields: Fields, tags: tuple[Tag, ...], excludes: tuple[Boundary, ...]) -> Node:
    loop = fields.flag("loop", True)
    triggers = tuple(dict.fromkeys(tag.begin for tag in tags))
    node = TriggeredTags(triggers=triggers, tags=tags, stop_after_first=not loop, excludes=excludes, pointer=fields.pointer)
    _check_triggers(node)
    return node


def _tags_with_separator(fields: Fields) -> Node:
    tags = fields.tags("tags")
    if not tags:
        raise GrammarError("there has to be at least one tag", pointer=fields.at("tags"))
    one = Or(elements=tags, pointer=fields.at("tags"))
    separator = reading(fields.boundary("separator"))
    at_least_one, stop_after_first = fields.flag("at_least_one"), fields.flag("stop_after_first")
    more = Repeat(content=Sequence(elements=(separator, one), pointer=fields.pointer), pointer=fields.pointer)
    some: Node = one if stop_after_first else Sequence(elements=(one, more), pointer=fields.pointer)
    return some if at_least_one else Optional(content=some, pointer=fields.pointer)


_READERS: dict[str, Callable[[Fields], Node]] = {
    "const_string": _text,
    "text": _text,
    "any_text": _any_text,
    "any_tokens": _any_tokens,
    "exclude_token": _exclude_token,
    "token": _token,
    "grammar": _grammar,
    "regex": _regex,
    "json_schema": _json_schema,
    "qwen_xml_parameter": _qwen_xml_parameter,
    "sequence": _sequence,
    "or": _or,
    "optional": _optional,
    "plus": _plus,
    "star": _star,
    "repeat": _repeat,
    "tag": _tag,
    "triggered_tags": _triggered_tags,
    "token_triggered_tags": _token_triggered_tags,
    "tags_with_separator": _tags_with_separator,
    "dispatch": _dispatch,
    "token_dispatch": _token_dispatch,
}


# --- the older form ----------------------------------------------------------------------------------------------------


def _read_structures(fields: Fields) -> Node:
    fields.value("type")
    tags = tuple(_structure(data, child("/structures", i)) for i, data in enumerate(fields.items("structures")))
    triggers = fields.boundaries("triggers", required=True)
    fields.done()
    node = TriggeredTags(triggers=triggers, tags=tags)
    _check_triggers(node)
    return node


def _structure(data: Json, pointer: str) -> Tag:
    fields = Fields(data, pointer, 1, _read)
    content = JsonSchema(json_schema=fields.value("schema"), schema_pointer="schema", pointer=pointer)
    tag = Tag(begin=fields.boundary("begin"), content=content, end=(fields.boundary("end"),), pointer=pointer)
    fields.done()
    return tag
