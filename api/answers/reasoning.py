"""Thoughts: what a model writes for itself before it answers, between two texts such as `<think>` and `</think>`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...engine.request import InvalidRequest
from ...grammar.structural_tag import AnyText, Regex, Tag, Text, Token
from ..tools.format import group
from .reader import REASONING

NONE = "none"


@dataclass(frozen=True, kw_only=True)
class ReasoningFormat:
    """How a thought is set off. Where the vocabulary has special tokens of these names, they are those tokens."""

    begin: str
    end: str


_THINK = ReasoningFormat(begin="<think>", end="</think>")
REASONING_FORMATS = {
    "qwen3": _THINK,
    "deepseek_r1": _THINK,
    "deepseek_v3": _THINK,
    "glm45": _THINK,
    "mistral": ReasoningFormat(begin="[THINK]", end="[/THINK]"),
    "seed_oss": ReasoningFormat(begin="<seed:think>", end="</seed:think>"),
}


def reasoning_format(name: str | None, template_source: str | None) -> ReasoningFormat | None:
    """How a model thinks; None if it does not.

    Args:
        name: as vLLM's `--reasoning-parser` has them; "none" is a model that does not think; None is what the template uses.

    Raises:
        InvalidRequest: there is no such format.
    """
    if name == NONE:
        return None
    if name is not None:
        if name not in REASONING_FORMATS:
            known = ", ".join((*REASONING_FORMATS, NONE))
            raise InvalidRequest(f"there is no reasoning format {name[:80]!r}; there is {known}", param="reasoning_parser")
        return REASONING_FORMATS[name]
    source = template_source or ""
    return next((used for used in REASONING_FORMATS.values() if used.begin in source and used.end in source), None)


@dataclass(frozen=True, kw_only=True)
class Thought:
    """The thought of one answer.

    Attributes:
        is_open: the prompt has begun it already; else the model may begin one.
        max_tokens: most tokens it may take; None for any number.
    """

    format: ReasoningFormat
    is_open: bool
    max_tokens: int | None = None

    @property
    def begin(self) -> Token:
        return Token(token=self.format.begin)

    def tag(self) -> Tag:
        """The thought in the tree of an answer."""
        content = Text(value="") if self.max_tokens == 0 else AnyText(max_tokens=self.max_tokens)
        return Tag(begin="" if self.is_open else self.begin, content=content, end=(Token(token=self.format.end),), name=REASONING)


def thought_after(prompt: str, used: ReasoningFormat, max_tokens: int | None) -> Thought | None:
    """The thought that an answer to a prompt may begin with; None where the prompt ends with one that is over, as templates write
    it to switch thinking off."""
    prompt = prompt.rstrip()
    if prompt.endswith(used.end):
        return None
    return Thought(format=used, is_open=prompt.endswith(used.begin), max_tokens=max_tokens)


def gap() -> Tag:
    """The empty lines that models write after a thought. They are no part of the answer."""
    return group(Regex(pattern="\n{0,2}"))


class ThoughtMeter:
    """Counts the tokens of the thought that one answer begins with, the end of the thought among them.

    Args:
        token_bytes: token id -> its bytes; for a special token, its name.
    """

    def __init__(self, thought: Thought, token_bytes: Callable[[int], bytes]):
        self._begin = thought.format.begin.encode()
        self._end = thought.format.end.encode()
        self._token_bytes = token_bytes
        self._text = b""
        self._is_over = False
        self._is_open = thought.is_open
        self.num_tokens = 0

    def add(self, token_ids: Sequence[int]) -> None:
        for token in token_ids:
            if self._is_over:
                return
            self._text += self._token_bytes(token)
            self.num_tokens += 1
            if not self._is_open:
                self._look_for_begin()
            elif self._end in self._text:
                self._is_over = True
            else:
                self._text = self._text[-len(self._end) :]

    def _look_for_begin(self) -> None:
        if self._text.startswith(self._begin):
            self._is_open = True
        elif not self._begin.startswith(self._text):
            self._is_over, self.num_tokens = True, 0
