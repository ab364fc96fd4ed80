"""Thoughts: what a model writes for itself before it answers, between two texts such as `<think>` and `</think>`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...engine.request import InvalidRequest
from ...grammar.structural_tag import AnyText, Regex, Tag, Text, Token
from ...grammar.structural_tag.spec import Boundary
from ..tools.format import FramedFormat, ToolFormat, group, spelled
from ..tools.harmony import ANALYSIS, NEXT
from .names import ALIASES
from .reader import REASONING

NONE = "none"


@dataclass(frozen=True, kw_only=True)
class ReasoningFormat:
    """How a thought is set off.

    Attributes:
        begin, end: where the vocabulary has special tokens of these names, they are those tokens.
        may_close: a prompt that ends with the end of a thought says that the thought is over.
        repeats: after one thought there may be another.
        is_framed: goes with a `FramedFormat` of calls only.
    """

    begin: Boundary
    end: Boundary
    may_close: bool = True
    repeats: bool = False
    is_framed: bool = False

    @property
    def signs(self) -> tuple[str, str]:
        """What the chat templates of models that think so hold."""
        return spelled(self.begin).rstrip(), spelled(self.end)


def _between(begin: str, end: str) -> ReasoningFormat:
    return ReasoningFormat(begin=Token(token=begin), end=Token(token=end))


_THINK = _between("<think>", "</think>")
_COHERE = ReasoningFormat(begin=Token(token="<|START_THINKING|>"), end=Token(token="<|END_THINKING|>"), is_framed=True)
REASONING_FORMATS = {
    "qwen3": _THINK,
    "deepseek_r1": _THINK,
    "deepseek_v3": _THINK,
    "glm45": _THINK,
    "mistral": _between("[THINK]", "[/THINK]"),
    "seed_oss": _between("<seed:think>", "</seed:think>"),
    "gemma4": ReasoningFormat(begin=(Token(token="<|channel>"), "thought\n"), end=Token(token="<channel|>")),
    "granite": ReasoningFormat(begin="Here is my thought process:", end="Here is my response:"),
    "kimi": _between("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    "minimax_m3": _between("<mm:think>", "</mm:think>"),
    "cohere_command3": _COHERE,
    "cohere_command4": _COHERE,
    "openai_gptoss": ReasoningFormat(begin=ANALYSIS, end=NEXT, may_close=False, repeats=True, is_framed=True),
}


def reasoning_format(name: str | None, template_source: str | None, tool_format: ToolFormat) -> ReasoningFormat | None:
    """How a model thinks; None if it does not.

    Args:
        name: as vLLM's `--reasoning-parser` has them; "none" is a model that does not think; None is what the template uses.
        tool_format: how the model calls tools.

    Raises:
        InvalidRequest: there is no such format, or it does not go with that of the calls.
    """
    if name == NONE:
        return None
    own = REASONING_FORMATS[tool_format.reasoning] if isinstance(tool_format, FramedFormat) else None
    if name is None and own is not None:
        return own
    if name is not None:
        name = ALIASES.get(name, name)
        if name not in REASONING_FORMATS:
            known = ", ".join((*REASONING_FORMATS, NONE))
            raise InvalidRequest(f"there is no reasoning format {name[:80]!r}; there is {known}", param="reasoning_parser")
        found = REASONING_FORMATS[name]
        if found is not own and (found.is_framed or own is not None):
            what = f"thoughts of the format {name!r} do not go with tool calls of the format {tool_format.name!r}"
            raise InvalidRequest(what, param="reasoning_parser")
        return found
    source = template_source or ""
    plain = (used for used in REASONING_FORMATS.values() if not used.is_framed)
    return next((used for used in plain if all(sign in source for sign in used.signs)), None)


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

    def as_begun_by_model(self) -> Thought:
        """A further thought of the same kind."""
        return dataclasses.replace(self, is_open=False)

    def tag(self) -> Tag:
        """The thought in the tree of an answer."""
        content = Text(value="") if self.max_tokens == 0 else AnyText(max_tokens=self.max_tokens)
        return Tag(begin="" if self.is_open else self.format.begin, content=content, end=(self.format.end,), name=REASONING)


def thought_after(prompt: str, used: ReasoningFormat, max_tokens: int | None) -> Thought | None:
    """The thought that an answer to a prompt may begin with; None where the prompt ends with one that is over, as templates write
    it to switch thinking off."""
    if used.may_close and ends_with(prompt, used.end):
        return None
    return Thought(format=used, is_open=ends_with(prompt, used.begin), max_tokens=max_tokens)


def ends_with(prompt: str, boundary: Boundary) -> bool:
    """Whether a prompt ends with a boundary; templates write white space after some."""
    return prompt.rstrip().endswith(spelled(boundary).rstrip())


def gap() -> Tag:
    """The empty lines that models write after a thought. They are no part of the answer."""
    return group(Regex(pattern="\n{0,2}"))


class ThoughtMeter:
    """Counts the tokens of the thoughts that one answer begins with, their ends among them.

    Args:
        token_bytes: token id -> its bytes; for a special token, its name.
    """

    def __init__(self, thought: Thought, token_bytes: Callable[[int], bytes]):
        self._begin = spelled(thought.format.begin).encode()
        self._end = spelled(thought.format.end).encode()
        self._repeats = thought.format.repeats
        self._token_bytes = token_bytes
        self._text = b""
        self._is_over = False
        self._is_open = thought.is_open
        self._num_certain = 0  # in thoughts that have ended
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
                self._is_over, self._is_open = not self._repeats, False
                self._text, self._num_certain = b"", self.num_tokens
            else:
                self._text = self._text[-len(self._end) :]

    def _look_for_begin(self) -> None:
        if self._text.startswith(self._begin):
            self._is_open = True
        elif not self._begin.startswith(self._text):
            self._is_over, self.num_tokens = True, self._num_certain
