"""What an answer says: thought, content and calls, as its text arrives."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...grammar.structural_tag import Event, TagBegin, TagDelta, TagEnd, TextDelta
from ...grammar.structural_tag.parser import StructuralParser
from ..tools.labels import CONTENT, MESSAGE
from .calls import CallReader

REASONING = "reasoning"  # the tag around a thought
_PARAGRAPH = "\n\n"  # between two thoughts, and two messages


@dataclass(frozen=True, kw_only=True)
class ReasoningDelta:
    """A piece of what the model thinks before it answers."""

    text: str


@dataclass(frozen=True, kw_only=True)
class ContentDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, kw_only=True)
class CallBegin:
    """A call; its arguments follow."""

    index: int
    call_id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class ArgumentsDelta:
    """A piece of the JSON text of a call's arguments."""

    index: int
    text: str


AnswerDelta = ReasoningDelta | ContentDelta | CallBegin | ArgumentsDelta


@dataclass(kw_only=True)
class ToolCall:
    """A call with all that is known of its arguments.

    Attributes:
        arguments: JSON text; only a part of it if the answer was cut.
    """

    call_id: str
    name: str
    arguments: str = ""

    @property
    def parsed(self) -> dict[str, Any] | None:
        """The arguments as a value; None if the answer was cut inside of them."""
        try:
            return json.loads(self.arguments)
        except (ValueError, RecursionError):
            return None


@dataclass(kw_only=True)
class Answer:
    """An answer as a whole.

    Attributes:
        reasoning: None if there is no thought.
        content: None if there is nothing but thought and calls.
    """

    reasoning: str | None = None
    content: str | None = None
    calls: list[ToolCall] = field(default_factory=list)

    @staticmethod
    def of(deltas: Iterable[AnswerDelta]) -> Answer:
        answer = Answer()
        for delta in deltas:
            answer.add(delta)
        return answer

    def add(self, delta: AnswerDelta) -> None:
        if isinstance(delta, ReasoningDelta):
            self.reasoning = (self.reasoning or "") + delta.text
        elif isinstance(delta, ContentDelta):
            self.content = (self.content or "") + delta.text
        elif isinstance(delta, CallBegin):
            self.calls.append(ToolCall(call_id=delta.call_id, name=delta.name))
        else:
            self.calls[delta.index].arguments += delta.text


class AnswerReader:
    """Turns the text of one answer into thought, content and calls.

    White space between calls, and between the content and a call, belongs to neither. So white space waits until something follows it.
    White space around a thought does not belong to it either.

    Args:
        trims: white space between a thought and the content belongs to neither. Not where a constraint accounts for it.
    """

    def __init__(self, parser: StructuralParser, *, trims: bool = True):
        self._parser = parser
        self._trims = trims
        self._space = ""
        self._thought = _Trimmed()
        self._content_begins = False  # content to trim is about to begin, after a thought
        self._has_content = False
        self._depth = 0  # of the tags that are open inside of a tag of content, which counts too
        self._num_calls = 0
        self._call = CallReader()

    def feed(self, text: str, token_ids: Sequence[int]) -> list[AnswerDelta]:
        """What a further piece of the answer brings.

        Args:
            text: the piece as text.
            token_ids: the same as tokens, which are read where the format has special tokens.

        Raises:
            OutputError: the answer does not keep to the format.
        """
        events = self._parser.feed_tokens(token_ids) if self._parser.needs_tokens else self._parser.feed(text)
        return [delta for event in events for delta in self._deltas(event)]

    def finish(self) -> list[AnswerDelta]:
        """What the end of the answer brings."""
        deltas = [delta for event in self._parser.finish(drop_tokens=True) for delta in self._deltas(event)]
        if self._space and not self._num_calls:
            deltas.append(ContentDelta(text=self._space))
        return deltas

    @property
    def needs_tokens(self) -> bool:
        """Whether it reads tokens and not the text."""
        return self._parser.needs_tokens

    @property
    def has_calls(self) -> bool:
        """Whether a call has begun."""
        return self._num_calls > 0

    def _deltas(self, event: Event) -> Iterable[AnswerDelta]:
        if isinstance(event, TextDelta):
            return self._content(event.text)
        if self._depth or (event.name == CONTENT and isinstance(event, TagBegin)):
            return self._inside_content(event)
        if event.name == REASONING:
            return self._reasoning(event)
        if event.name == MESSAGE:
            return self._message(event)
        call = self._call.begun_by(event)
        if call is not None:
            return self._begin(*call)
        text = self._call.text_of(event)
        return (ArgumentsDelta(index=self._num_calls - 1, text=text),) if text else ()

    def _reasoning(self, event: Event) -> Iterable[AnswerDelta]:
        if isinstance(event, TagDelta):
            shown = self._thought.add(event.text)
            return (ReasoningDelta(text=shown),) if shown else ()
        if isinstance(event, TagBegin):
            self._thought.begin_paragraph()
        self._content_begins = self._trims and isinstance(event, TagEnd)
        return ()

    def _inside_content(self, event: TagBegin | TagDelta | TagEnd) -> Iterable[AnswerDelta]:
        """The outermost tag says that this is content; what it begins and ends with is none."""
        is_outermost = self._depth == (0 if isinstance(event, TagBegin) else 1)
        self._depth += isinstance(event, TagBegin) - isinstance(event, TagEnd)
        if isinstance(event, TagDelta) or not is_outermost:
            return self._content(event.text)
        return self._message(event)

    def _message(self, event: Event) -> Iterable[AnswerDelta]:
        if isinstance(event, TagBegin):
            self._space = _PARAGRAPH if self._has_content else ""
        return ()

    def _content(self, text: str) -> Iterable[AnswerDelta]:
        if self._content_begins:
            text = text.lstrip()
            self._content_begins = not text
        text = self._space + text
        shown = text.rstrip()
        self._space = text[len(shown) :]
        self._has_content |= bool(shown)
        return (ContentDelta(text=shown),) if shown else ()

    def _begin(self, name: str, call_id: str) -> Iterable[AnswerDelta]:
        self._space = ""
        self._content_begins = False
        self._num_calls += 1
        return (CallBegin(index=self._num_calls - 1, call_id=call_id, name=name),)


class _Trimmed:
    """A text without the white space around its paragraphs, as its pieces arrive."""

    def __init__(self) -> None:
        self._space = ""
        self._begun = False  # the paragraph
        self._between = ""  # comes before the paragraph

    def begin_paragraph(self) -> None:
        if self._begun:
            self._space, self._begun, self._between = "", False, _PARAGRAPH

    def add(self, text: str) -> str:
        text = self._space + text if self._begun else text.lstrip()
        shown = text.rstrip()
        self._space = text[len(shown) :]
        if shown and not self._begun:
            shown, self._begun, self._between = self._between + shown, True, ""
        return shown
