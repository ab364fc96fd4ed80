"""Objects whose members are written apart, as trees of tags.

The tags are called after the members, see `parameter_styles`.

Members come in the order of the schema. Only those that it names are written: of others no tag could tell whether they were there
before. A schema whose members depend on each other is refused.
"""

from __future__ import annotations

import dataclasses

from ..errors import GrammarError
from ..json_schema.document import Document
from ..json_schema.expand import Expander
from ..json_schema.names import Names
from ..json_schema.shapes import ObjectShape, Shapes, StringSet
from ..limits import Limits
from ..regex import Language
from .parameter_styles import ARGUMENT, CONSTANT, PADDED_ARGUMENT, STYLES, TEXT_ARGUMENT, gap
from .parts import Parts
from .pointers import child
from .spec import AnyText, JsonSchema, Member, Node, Optional, Or, Repeat, Sequence, Tag, Text, TriggeredTags
from .symbols import text_of

# what is read as JSON where a string is not all that may come
_LIKE_JSON = Language.pattern(r'[ \t\n\r]*([{\["][^]*|(-?[0-9][0-9.eE+-]*|true|false|null)[ \t\n\r]*)')


def with_parameters(node: Node, parts: Parts, limits: Limits) -> Node:
    """A tree in which each object of a style is a tree of tags.

    Raises:
        GrammarError: with the pointer of a schema that has no such tree.
    """
    if isinstance(node, JsonSchema):
        return _Object(node, parts, limits).tree() if node.style in STYLES else node
    if isinstance(node, Sequence | Or):
        elements = tuple(with_parameters(element, parts, limits) for element in node.elements)
        changed = any(new is not old for new, old in zip(elements, node.elements, strict=True))
        return dataclasses.replace(node, elements=elements) if changed else node
    if isinstance(node, TriggeredTags):
        tags = tuple(_tag_with_parameters(tag, parts, limits) for tag in node.tags)
        return dataclasses.replace(node, tags=tags)
    if isinstance(node, Tag):
        return _tag_with_parameters(node, parts, limits)
    if isinstance(node, Optional | Repeat):
        content = with_parameters(node.content, parts, limits)
        return node if content is node.content else dataclasses.replace(node, content=content)
    return node


def _tag_with_parameters(tag: Tag, parts: Parts, limits: Limits) -> Tag:
    content = with_parameters(tag.content, parts, limits)
    return tag if content is tag.content else dataclasses.replace(tag, content=content)


class _Object:
    """Makes the tree of one object."""

    def __init__(self, node: JsonSchema, parts: Parts, limits: Limits):
        document = parts[node]
        assert isinstance(document, Document)
        self._node = node
        self._limits = limits
        self._style = STYLES[node.style]
        self._expander = Expander(document, limits)

    def tree(self) -> Node:
        shapes = self._expander.expand(self._expander.root)
        if not shapes.objects:
            raise self._refusal("", "arguments are the members of an object, and the schema admits none")
        ways = [self._way(number, shape) for number, shape in enumerate(shapes.objects)]
        possible = [way for way in ways if way is not None]
        if not possible:
            raise self._refusal("", "no finite value satisfies the schema")
        return possible[0] if len(possible) == 1 else Or(elements=tuple(possible), pointer=self._node.pointer)

    def _way(self, number: int, shape: ObjectShape) -> Node | None:
        """The tree of one shape; None if no object has it."""
        if shape.dependencies or shape.witnesses:
            raise self._refusal(str(shape.pointer), f"the style {self._node.style!r} cannot write members that depend on each other")
        names = Names(self._expander, shape)
        written: list[tuple[Node, bool]] = []
        for name in names.mentioned:
            argument = self._argument(number, names, name)
            if argument is None:
                if name in shape.required:
                    return None
                continue
            written.append((argument, name in shape.required))
        if shape.low > len(shape.required) or (shape.high is not None and shape.high < len(written)):
            raise self._refusal(str(shape.pointer), f"the style {self._node.style!r} cannot count members")
        return self._style.joined(written)

    def _argument(self, number: int, names: Names, name: str) -> Node | None:
        style, value = self._style, names.node(name)
        if not self._expander.inhabited(value):
            return None
        if not style.names.fullmatch(name):
            raise self._refusal("", f"the style {self._node.style!r} cannot write the name {name[:80]!r}")
        shapes = self._expander.expand(value)
        has_string = self._expander.has_string(shapes.string)
        is_text = has_string and style.writes_text
        is_json = (has_string and not style.writes_text) or _has_others(shapes, self._limits)
        member = Member(schema=self._node, shape=number, name=name, as_text=False, is_mixed=is_text and is_json, pointer=self._node.pointer)
        found: list[Node] = []
        if is_text:
            text = self._text(dataclasses.replace(member, as_text=True), shapes.string)
            label = PADDED_ARGUMENT if style.is_padded else TEXT_ARGUMENT
            found += [style.tag(name, text, label=label + name, is_text=True)] if text is not None else []
        if is_json:
            content: Node = Sequence(elements=(member, gap())) if style.is_padded else member
            constants = [word for word in style.constants if word in shapes.literals]
            spelled = [Tag(name=CONSTANT + word, begin=style.constants[word], content=Text(value=""), end=("",)) for word in constants]
            content = Or(elements=(content, *spelled)) if spelled else content
            found.append(style.tag(name, content, label=ARGUMENT + name, is_text=False))
        if not found:
            return None
        return found[0] if len(found) == 1 else Or(elements=tuple(found), pointer=self._node.pointer)

    def _text(self, member: Member, strings: StringSet) -> Node | None:
        """A string as it is written; None if none can be."""
        if strings.is_all and not member.is_mixed:
            return AnyText(pointer=self._node.pointer)  # up to the end of the tag
        return None if written_texts(member, strings).is_empty(self._limits) else member

    def _refusal(self, pointer: str, reason: str) -> GrammarError:
        return GrammarError(reason, pointer=child(self._node.pointer, self._node.schema_pointer) + pointer)


def written_texts(member: Member, strings: StringSet) -> Language:
    """How strings are written between the two texts around a member."""
    style = STYLES[member.schema.style]
    texts = strings.to_language()
    if member.is_mixed and not style.tells_text:
        texts -= _LIKE_JSON
    if style.is_padded and not strings.is_all:
        texts = _padded(texts)
    return texts - _ANYTHING.concat(Language.literal(text_of(style.end) or ""), _ANYTHING)


def _padded(texts: Language) -> Language:
    """Texts of which one line break at the begin and then one at the end are taken away, where there are any."""
    line, begun, ended = Language.literal("\n"), texts - _BEGUN, texts - _ENDED
    return Language.union((line.concat(texts, line), line.concat(ended), begun.concat(line), begun & ended))


def _has_others(shapes: Shapes, limits: Limits) -> bool:
    """Whether something other than a string is possible."""
    return bool(shapes.literals or shapes.arrays or shapes.objects) or not shapes.number.is_empty(limits)


_ANYTHING = Language.anything()
_BEGUN = Language.literal("\n").concat(_ANYTHING)
_ENDED = _ANYTHING.concat(Language.literal("\n"))
