"""The items of a response, one after another, and the events of each.

An answer is a thought, a message and calls, in the order in which they come. The item that is being written is the last one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...engine.request import TokenLogprob
from ..answers.reader import AnswerDelta, CallBegin, ContentDelta, ReasoningDelta
from ..jobs import new_id
from .logprobs import TokenBytes, chat_logprobs

Event = dict[str, Any]
MakeEvent = Callable[..., Event]


@dataclass(kw_only=True)
class Item(ABC):
    """One item.

    Attributes:
        index: its place in the output.
        event: makes an event of a type and fields.
        status: "in_progress", "completed" or "incomplete".
    """

    index: int
    event: MakeEvent
    item_id: str
    status: str = "in_progress"
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def place(self) -> dict[str, Any]:
        """Where a piece of the item belongs."""
        return {"item_id": self.item_id, "output_index": self.index}

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...

    def begin(self) -> list[Event]:
        return [self.event("response.output_item.added", output_index=self.index, item=self.to_json())]

    @abstractmethod
    def add(self, text: str, logprobs: Sequence[TokenLogprob]) -> list[Event]: ...

    def end(self, status: str) -> list[Event]:
        self.status = status
        return [self.event("response.output_item.done", output_index=self.index, item=self.to_json())]


@dataclass(kw_only=True)
class MessageItem(Item):
    """A message with one text."""

    token_bytes: TokenBytes
    item_id: str = field(default_factory=lambda: new_id("msg"))
    logprobs: list[TokenLogprob] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        content = [] if self.status == "in_progress" else [self._part()]
        return {"id": self.item_id, "type": "message", "status": self.status, "role": "assistant", "content": content}

    def begin(self) -> list[Event]:
        return [*super().begin(), self.event("response.content_part.added", **self.place, content_index=0, part=self._part())]

    def add(self, text: str, logprobs: Sequence[TokenLogprob]) -> list[Event]:
        self.pieces.append(text)
        self.logprobs += logprobs
        shown = self._logprobs(logprobs)
        return [self.event("response.output_text.delta", **self.place, content_index=0, delta=text, logprobs=shown)]

    def end(self, status: str) -> list[Event]:
        place = {**self.place, "content_index": 0}
        return [
            self.event("response.output_text.done", **place, text=self.text, logprobs=self._logprobs(self.logprobs)),
            self.event("response.content_part.done", **place, part=self._part()),
            *super().end(status),
        ]

    def _part(self) -> dict[str, Any]:
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": self._logprobs(self.logprobs)}

    def _logprobs(self, logprobs: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
        return chat_logprobs(logprobs, self.token_bytes)["content"]


@dataclass(kw_only=True)
class ReasoningItem(Item):
    """A thought."""

    item_id: str = field(default_factory=lambda: new_id("rs"))

    def to_json(self) -> dict[str, Any]:
        content = [] if self.status == "in_progress" else [{"type": "reasoning_text", "text": self.text}]
        return {"id": self.item_id, "type": "reasoning", "status": self.status, "summary": [], "content": content}

    def add(self, text: str, logprobs: Sequence[TokenLogprob]) -> list[Event]:
        self.pieces.append(text)
        return [self.event("response.reasoning_text.delta", **self.place, content_index=0, delta=text)]

    def end(self, status: str) -> list[Event]:
        done = self.event("response.reasoning_text.done", **self.place, content_index=0, text=self.text)
        return [done, *super().end(status)]


@dataclass(kw_only=True)
class CallItem(Item):
    """A call; its text is that of the arguments."""

    call_id: str
    name: str
    item_id: str = field(default_factory=lambda: new_id("fc"))

    def to_json(self) -> dict[str, Any]:
        about = {"id": self.item_id, "type": "function_call", "status": self.status}
        return {**about, "call_id": self.call_id, "name": self.name, "arguments": self.text}

    def add(self, text: str, logprobs: Sequence[TokenLogprob]) -> list[Event]:
        self.pieces.append(text)
        return [self.event("response.function_call_arguments.delta", **self.place, delta=text)]

    def end(self, status: str) -> list[Event]:
        done = self.event("response.function_call_arguments.done", **self.place, name=self.name, arguments=self.text)
        return [done, *super().end(status)]


class Items:
    """What has been written so far.

    Args:
        event: see `Item`.
    """

    def __init__(self, event: MakeEvent, token_bytes: TokenBytes):
        self._event = event
        self._token_bytes = token_bytes
        self._items: list[Item] = []

    def add(self, delta: AnswerDelta, logprobs: Sequence[TokenLogprob] = ()) -> list[Event]:
        """The events of a piece of the answer."""
        if isinstance(delta, CallBegin):
            place = {"index": self._next, "event": self._event}
            return self._begin(CallItem(call_id=delta.call_id, name=delta.name, **place))
        begun: list[Event] = []
        if isinstance(delta, ContentDelta) and not isinstance(self._last, MessageItem):
            begun = self._begin(MessageItem(index=self._next, event=self._event, token_bytes=self._token_bytes))
        if isinstance(delta, ReasoningDelta) and not isinstance(self._last, ReasoningItem):
            begun = self._begin(ReasoningItem(index=self._next, event=self._event))
        assert self._last is not None
        return [*begun, *self._last.add(delta.text, logprobs)]

    def end(self, status: str) -> list[Event]:
        """The events of the end of the answer. An answer that says nothing is an empty message."""
        begun: list[Event] = []
        if self._last is None:
            begun = self._begin(MessageItem(index=0, event=self._event, token_bytes=self._token_bytes))
        assert self._last is not None
        return [*begun, *self._last.end(status)]

    def to_json(self) -> list[dict[str, Any]]:
        return [item.to_json() for item in self._items]

    @property
    def _next(self) -> int:
        return len(self._items)

    @property
    def _last(self) -> Item | None:
        return self._items[-1] if self._items else None

    def _begin(self, item: Item) -> list[Event]:
        ended = self._last.end("completed") if self._last is not None else []
        self._items.append(item)
        return [*ended, *item.begin()]
