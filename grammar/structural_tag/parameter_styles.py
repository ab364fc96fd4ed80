"""How models write the arguments of a call apart, each with texts of its own around it: the styles of xgrammar's `json_schema`, and
Python's.

A string is written as it is (but in Python), any other value as JSON. The tag around a member is called `argument:<name>` if it is written
as JSON, `text argument:<name>` if it is a string as it is, and `padded argument:<name>` if line breaks around the string are no part of it.
Inside of it, a tag `constant:<word>` is another spelling of `true`, `false` or `null`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .spec import Boundary, Node, Optional, Or, Sequence, Tag, Text, Token, joined

ARGUMENT = "argument:"
TEXT_ARGUMENT = "text argument:"
PADDED_ARGUMENT = "padded argument:"
CONSTANT = "constant:"
_LINE_END = Optional(content=Text(value="\n"))


class ParameterStyle(ABC):
    """Attributes:
    end: ends each value; "" where the value itself says where it ends.
    is_padded: there may be a line break around the value that is no part of it.
    tells_text: what comes before a string is different from what comes before another value.
    writes_text: strings are written as they are.
    names: the names that can be written.
    constants: further spellings of `true`, `false` and `null`.
    """

    end: Boundary
    is_padded: bool = False
    tells_text: bool = False
    writes_text: bool = True
    names: re.Pattern[str] = re.compile(r"[^<>\"&\x00-\x1f]+")
    constants: Mapping[str, str] = MappingProxyType({})

    def joined(self, arguments: Iterable[tuple[Node, bool]]) -> Node:
        """Arguments one after another, each with whether it is required."""
        parts = ((Sequence(elements=(gap(), argument)), required) for argument, required in arguments)
        return Sequence(elements=(*(part if required else Optional(content=part) for part, required in parts), gap()))

    @abstractmethod
    def begin(self, name: str, *, is_text: bool) -> Boundary:
        """What comes before the value of an argument."""

    def whole_begin(self, name: str, *, is_text: bool) -> Boundary:
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

    before: Boundary
    after_text: Boundary
    after_json: Boundary
    end: Boundary
    is_padded: bool = False

    @property
    def tells_text(self) -> bool:
        return self.after_text != self.after_json

    def begin(self, name: str, *, is_text: bool) -> Boundary:
        return joined(self.before, name, self.after_text if is_text else self.after_json)


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


class _Python(ParameterStyle):
    """`name=value`, with `, ` between: values are JSON."""

    end = ""
    writes_text = False
    names = re.compile(r"[^\W\d]\w*")
    constants = MappingProxyType({"true": "True", "false": "False", "null": "None"})

    def begin(self, name: str, *, is_text: bool) -> str:
        return f"{name}="

    def joined(self, arguments: Iterable[tuple[Node, bool]]) -> Node:
        """A sequence for each argument that may come first; those after it may be missing if they are not required."""
        listed = list(arguments)
        after: list[Node] = []
        for argument, required in listed:
            with_comma = Sequence(elements=(Text(value=", "), argument))
            after.append(with_comma if required else Optional(content=with_comma))
        ways: list[Node] = []
        for index, (argument, required) in enumerate(listed):
            ways.append(Sequence(elements=(argument, *after[index + 1 :])))
            if required:
                break
        else:
            ways.append(Text(value=""))
        return ways[0] if len(ways) == 1 else Or(elements=tuple(ways))


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
    "step_xml": _Element(before='<steptml:parameter name="', after_text='">', after_json='">', end="</steptml:parameter>"),
    "minicpm_xml": _Element(before='<param name="', after_text='">', after_json='">', end="</param>"),
    "solar": _Element(
        before=Token(token="<|tool_arg:start|>"),
        after_text=Token(token="<|tool_arg:value|>"),
        after_json=Token(token="<|tool_arg:value|>"),
        end=Token(token="<|tool_arg:end|>"),
    ),
    "python": _Python(),
}


def gap() -> Node:
    """What may stand before, between and after arguments."""
    return _LINE_END
