"""How models write the arguments of a call apart, each between two texts of its own: the styles of xgrammar's `json_schema`.

A string is written as it is, any other value as JSON. The tag around a member is called `argument:<name>` if it is written as JSON,
`text argument:<name>` if it is a string as it is, and `padded argument:<name>` if line breaks around the string are no part of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from .spec import Node, Optional, Sequence, Tag, Text

ARGUMENT = "argument:"
TEXT_ARGUMENT = "text argument:"
PADDED_ARGUMENT = "padded argument:"
_LINE_END = Optional(content=Text(value="\n"))


class ParameterStyle(ABC):
    """Attributes:
    end: ends each value.
    is_padded: there may be a line break around the value that is no part of it.
    tells_text: what comes before a string is different from what comes before another value.
    """

    end: str
    is_padded: bool = False
    tells_text: bool = False

    @abstractmethod
    def begin(self, name: str, *, is_text: bool) -> str:
        """What comes before the value of an argument."""

    def whole_begin(self, name: str, *, is_text: bool) -> str:
        """All that models write before the value."""
        return self.begin(name, is_text=is_text)

    def tag(self, name: str, content: Node, *, label: str, is_text: bool) -> Node:
        """An argument: a tag around its value, called `label`."""
        return Tag(name=label, begin=self.begin(name, is_text=is_text), content=content, end=(self.end,))


@dataclass(frozen=True, kw_only=True)
class _Element(ParameterStyle):
    """Attributes:
    before: comes before the name.
    after_text: comes after the name of a string.
    after_json: comes after the name of any other value.
    """

    before: str
    after_text: str
    after_json: str
    end: str
    is_padded: bool = False

    @property
    def tells_text(self) -> bool:
        return self.after_text != self.after_json

    def begin(self, name: str, *, is_text: bool) -> str:
        return f"{self.before}{name}{self.after_text if is_text else self.after_json}"


class _KeyAndValue(ParameterStyle):
    """`<arg_key>name</arg_key>`, maybe a line break, `<arg_value>...</arg_value>`: GLM."""

    end = "</arg_value>"

    def begin(self, name: str, *, is_text: bool) -> str:
        return f"<arg_key>{name}</arg_key>"

    def whole_begin(self, name: str, *, is_text: bool) -> str:
        return f"{self.begin(name, is_text=is_text)}\n<arg_value>"

    def tag(self, name: str, content: Node, *, label: str, is_text: bool) -> Node:
        value = Tag(name=label, begin="<arg_value>", content=content, end=(self.end,))
        return Sequence(elements=(Text(value=self.begin(name, is_text=is_text)), _LINE_END, value))


_DSML = "\uff5cDSML\uff5c"  # full-width lines
STYLES: dict[str, ParameterStyle] = {
    "qwen_xml": _Element(before="<parameter=", after_text=">", after_json=">", end="</parameter>", is_padded=True),
    "minimax_xml": _Element(before='<parameter name="', after_text='">', after_json='">', end="</parameter>", is_padded=True),
    "deepseek_xml": _Element(
        before=f'<{_DSML}parameter name="',
        after_text='" string="true">',
        after_json='" string="false">',
        end=f"</{_DSML}parameter>",
    ),
    "glm_xml": _KeyAndValue(),
}


def gap() -> Node:
    """What may stand before, between and after arguments."""
    return _LINE_END
