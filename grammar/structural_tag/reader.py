"""JSON to trees: the own form, xgrammar's `structural_tag` with a `format`, and the older one with `structures` and `triggers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import GrammarError, LimitError
from .parameter_styles import STYLES
from .pointers import child
from .spec import (
    AnyText,
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
            return _read_structures(_Fields(data, "", 0))
        fields = _Fields(data, "", 0)
        fields.value("type")
        node = fields.node("format")
        fields.done()
        return node
    return _read(data, "", 0)


def _read(data: Json, pointer: str, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise LimitError(f"a structural tag is nested at most {MAX_DEPTH} deep", pointer=pointer)
    fields = _Fields(data, pointer, depth)
    kind = fields.text("type")
    read = _READERS.get(kind)
    if read is None:
        expected = (_ROOT, *_READERS) if not pointer else tuple(_READERS)
        raise GrammarError(f"there is no part of type {kind[:80]!r}", pointer=child(pointer, "type"), expected=expected)
    node = read(fields)
    fields.done()
    return node


class _Fields:
    """The fields of one JSON object. Each is taken once; `done` refuses what is left."""

    def __init__(self, data: Json, pointer: str, depth: int):
        if not isinstance(data, Mapping):
            raise GrammarError(f"a part of a structural tag is an object, not {_named(data)}", pointer=pointer)
        self._data = dict(data)
        self.pointer = pointer
        self._depth = depth

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
        return _unicode(self._typed(name, self.value(name), str, "a text"), self.at(name))

    def optional_text(self, name: str) -> str | None:
        value = self._data.pop(name, None)
        return None if value is None else self._typed(name, value, str, "a text")

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
        return _read(self.value(name), self.at(name), self._depth + 1)

    def nodes(self, name: str) -> tuple[Node, ...]:
        return tuple(_read(data, child(self.at(name), i), self._depth + 1) for i, data in enumerate(self.items(name)))

    def tags(self, name: str) -> tuple[Tag, ...]:
        found = []
        for i, data in enumerate(self.items(name)):
            pointer = child(self.at(name), i)
            if isinstance(data, Mapping) and "type" not in data:
                data = {"type": "tag", **data}
            node = _read(data, pointer, self._depth + 1)
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
            content = _read(pair[1], child(pointer, 1), self._depth + 1)
            tags.append(Tag(begin=begin, content=content, end=("",), pointer=pointer))
        return tuple(tags)

    def items(self, name: str) -> list[Json]:
        return self._typed(name, self.value(name), list, "a list")

    def _boundary(self, data: Json, pointer: str, may_be_empty: bool, token: bool = False) -> Boundary:
        if token and isinstance(data, str | int) and not isinstance(data, bool):
            return Token(token=data, pointer=pointer)
        if isinstance(data, Mapping):
            node = _read(data, pointer, self._depth + 1)
            if not isinstance(node, Token):
                raise GrammarError("a boundary is a text or a token", pointer=pointer)
            return node
        if not isinstance(data, str):
            raise GrammarError(f"a boundary is a text or a token, not {_named(data)}", pointer=pointer)
        if not data and not may_be_empty:
            raise GrammarError("this text may not be empty", pointer=pointer)
        return _unicode(data, pointer)

    def _typed(self, name: str, value: Json, kind: type, what: str) -> Json:
        if not isinstance(value, kind):
            raise GrammarError(f"{name!r} is {what}, not {_named(value)}", pointer=self.at(name))
        return value


def _unicode(text: str, pointer: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise GrammarError("a lone surrogate is in no text", pointer=pointer)
    return text


def _named(value: Json) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


# --- one reader a type -----------------------------------------------------------------------------------------------


def _text(fields: _Fields) -> Node:
    return Text(value=fields.text("value"), pointer=fields.pointer)


def _token(fields: _Fields) -> Node:
    token = fields.value("token")
    if isinstance(token, bool) or not isinstance(token, str | int) or token == "":
        raise GrammarError("a token is given by its name or its id", pointer=fields.at("token"))
    return Token(token=token, pointer=fields.pointer)


def _any_text(fields: _Fields) -> Node:
    excludes, tokens, chars = fields.boundaries("excludes"), fields.count("max_tokens"), fields.count("max_chars")
    if tokens is not None and chars is not None:
        raise GrammarError("a text is bounded in tokens or in characters, not in both", pointer=fields.at("max_chars"))
    return AnyText(excludes=excludes, max_tokens=tokens, max_chars=chars, pointer=fields.pointer)


def _any_tokens(fields: _Fields) -> Node:
    excludes = fields.boundaries("exclude_tokens", token=True)
    return AnyText(excludes=excludes, max_tokens=fields.count("max_tokens"), pointer=fields.pointer)


def _exclude_token(fields: _Fields) -> Node:
    raise GrammarError("one token of any text is not supported", pointer=fields.pointer)


def _grammar(fields: _Fields) -> Node:
    notation: Any = fields.choice("notation", ("ebnf", "gbnf", "lark"))
    start = fields.optional_text("start")
    return GrammarText(grammar=fields.text("grammar"), notation=notation, start=start, pointer=fields.pointer)


def _regex(fields: _Fields) -> Node:
    fields.refuse("excludes", "texts to exclude from a regex are not supported")
    dialect: Any = fields.choice("dialect", ("ecma", "python"))
    return Regex(pattern=fields.text("pattern"), dialect=dialect, pointer=fields.pointer)


def _json_schema(fields: _Fields) -> Node:
    return _json_schema_of(fields, fields.choice("style", ("json", *STYLES)))


def _qwen_xml_parameter(fields: _Fields) -> Node:
    return _json_schema_of(fields, "qwen_xml")


def _json_schema_of(fields: _Fields, style: str) -> Node:
    any_order = fields.flag("any_order")
    order: Any = fields.choice("property_order", ("any", "schema") if any_order else ("schema", "any"))
    if style != "json" and order == "any":
        where = fields.at("any_order" if any_order else "property_order")
        raise GrammarError(f"the style {style!r} keeps the order of the schema", pointer=where)
    return JsonSchema(
        json_schema=fields.value("json_schema"),
        style=style,
        whitespace=fields.optional_text("whitespace") or "bounded",
        property_order=order,
        pointer=fields.pointer,
    )


def _sequence(fields: _Fields) -> Node:
    return Sequence(elements=_some(fields, fields.nodes("elements")), pointer=fields.pointer)


def _or(fields: _Fields) -> Node:
    return Or(elements=_some(fields, fields.nodes("elements")), pointer=fields.pointer)


def _some(fields: _Fields, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    if not nodes:
        raise GrammarError("there has to be at least one element", pointer=fields.at("elements"))
    return nodes


def _optional(fields: _Fields) -> Node:
    return Optional(content=fields.node("content"), pointer=fields.pointer)


def _plus(fields: _Fields) -> Node:
    return Repeat(content=fields.node("content"), min=1, pointer=fields.pointer)


def _star(fields: _Fields) -> Node:
    return Repeat(content=fields.node("content"), pointer=fields.pointer)


def _repeat(fields: _Fields) -> Node:
    low = fields.count("min") or 0
    high = fields.count("max", unbounded=-1)
    if high is not None and high < low:
        raise GrammarError(f"'max' ({high}) is less than 'min' ({low})", pointer=fields.at("max"))
    return Repeat(content=fields.node("content"), min=low, max=high, pointer=fields.pointer)


def _tag(fields: _Fields) -> Tag:
    begin, content, end = fields.boundary("begin"), fields.node("content"), fields.ends("end")
    return Tag(begin=begin, content=content, end=end, name=fields.optional_text("name"), pointer=fields.pointer)


def _triggered_tags(fields: _Fields) -> Node:
    triggers = fields.boundaries("triggers", required=True)
    return _triggered(fields, triggers, fields.tags("tags"), fields.boundaries("excludes"))


def _token_triggered_tags(fields: _Fields) -> Node:
    triggers = fields.boundaries("trigger_tokens", token=True, required=True)
    return _triggered(fields, triggers, fields.tags("tags"), fields.boundaries("exclude_tokens", token=True))


def _triggered(fields: _Fields, triggers: tuple[Boundary, ...], tags: tuple[Tag, ...], excludes: tuple[Boundary, ...]) -> TriggeredTags:
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
    if isinstance(begin, str) and isinstance(trigger, str):
        return begin.startswith(trigger)
    return begin == trigger


def _dispatch(fields: _Fields) -> Node:
    return _dispatched(fields, fields.rules("rules"), fields.boundaries("excludes"))


def _token_dispatch(fields: _Fields) -> Node:
    return _dispatched(fields, fields.rules("rules", token=True), fields.boundaries("exclude_tokens", token=True))


def _dispatched(fields: _Fields, tags: tuple[Tag, ...], excludes: tuple[Boundary, ...]) -> Node:
    loop = fields.flag("loop", True)
    triggers = tuple(dict.fromkeys(tag.begin for tag in tags))
    node = TriggeredTags(triggers=triggers, tags=tags, stop_after_first=not loop, excludes=excludes, pointer=fields.pointer)
    _check_triggers(node)
    return node


def _tags_with_separator(fields: _Fields) -> Node:
    tags = fields.tags("tags")
    if not tags:
        raise GrammarError("there has to be at least one tag", pointer=fields.at("tags"))
    one = Or(elements=tags, pointer=fields.at("tags"))
    separator = Text(value=fields.text("separator"), pointer=fields.at("separator"))
    at_least_one, stop_after_first = fields.flag("at_least_one"), fields.flag("stop_after_first")
    more = Repeat(content=Sequence(elements=(separator, one), pointer=fields.pointer), pointer=fields.pointer)
    some: Node = one if stop_after_first else Sequence(elements=(one, more), pointer=fields.pointer)
    return some if at_least_one else Optional(content=some, pointer=fields.pointer)


_READERS: dict[str, Callable[[_Fields], Node]] = {
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


def _read_structures(fields: _Fields) -> Node:
    fields.value("type")
    tags = tuple(_structure(data, child("/structures", i)) for i, data in enumerate(fields.items("structures")))
    triggers = fields.boundaries("triggers", required=True)
    fields.done()
    node = TriggeredTags(triggers=triggers, tags=tags)
    _check_triggers(node)
    return node


def _structure(data: Json, pointer: str) -> Tag:
    fields = _Fields(data, pointer, 1)
    content = JsonSchema(json_schema=fields.value("schema"), schema_pointer="schema", pointer=pointer)
    tag = Tag(begin=fields.boundary("begin"), content=content, end=(fields.boundary("end"),), pointer=pointer)
    fields.done()
    return tag
