"""What the front ends need of an engine and of a model. Anything of this shape will do, which is how tests bring their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..engine.request import Request, RequestOutput
from ..engine.stats import EngineStats

OnOutput = Callable[[RequestOutput], None]


class Engine(Protocol):
    """Runs requests on a thread of its own."""

    def submit(self, request: Request, on_output: OnOutput) -> Any:
        """Queue a request. `on_output` is called on the engine's thread, the last time with a finish reason.

        Raises:
            InvalidRequest, EngineOverloaded, EngineStopped: nothing was queued.
        """
        ...

    def abort(self, request_id: str) -> Any:
        """End a request; an id that is unknown or finished is ignored."""
        ...

    def close(self) -> Any:
        """End all requests and the thread."""
        ...

    def stats(self) -> EngineStats:
        """What is open, and counts since the start."""
        ...

    @property
    def alive(self) -> bool:
        """Whether requests are accepted: neither closed nor failed."""
        ...


class Encoding(Protocol):
    @property
    def ids(self) -> list[int]: ...


class AddedToken(Protocol):
    @property
    def content(self) -> str: ...

    @property
    def special(self) -> bool: ...


class Tokenizer(Protocol):
    def encode(self, sequence: str, *, add_special_tokens: bool = True) -> Encoding: ...

    def get_added_tokens_decoder(self) -> Any:
        """Token id -> `AddedToken`."""
        ...


class ChatTemplate(Protocol):
    def render(self, messages: list[dict[str, Any]], add_generation_prompt: bool = True, **variables: Any) -> str: ...


class ServedModel(Protocol):
    """What of a loaded model concerns prompts."""

    @property
    def name(self) -> str: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def chat_template(self) -> ChatTemplate | None: ...

    @property
    def bos_token_id(self) -> int | None: ...

    @property
    def add_bos(self) -> bool: ...

    @property
    def vocab_size(self) -> int: ...
