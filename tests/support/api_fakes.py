"""An engine and a model without weights, for what the front ends do on their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from formcast.api.ports import OnOutput
from formcast.api.runtime import Runtime
from formcast.engine.kv.manager import KVUsage
from formcast.engine.request import DeadlineExceeded, EngineOverloaded, EngineStopped, Request, RequestOutput
from formcast.engine.stats import EngineStats

VOCAB_SIZE = 300
Script = Callable[[Request], Iterable[RequestOutput]]


@dataclass(frozen=True)
class Encoding:
    ids: list[int]


class ByteTokenizer:
    """Token ids are the bytes of the text."""

    def encode(self, sequence: str, *, add_special_tokens: bool = True) -> Encoding:
        return Encoding(list(sequence.encode()))

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        return {}


class PlainTemplate:
    """`role: content` lines."""

    def render(self, messages: list[dict[str, Any]], add_generation_prompt: bool = True, **variables: Any) -> str:
        return "".join(f"{message['role']}: {message['content']}\n" for message in messages) + "assistant:"


@dataclass(frozen=True, kw_only=True)
class FakeModel:
    name: str = "fake"
    tokenizer: Any = field(default_factory=ByteTokenizer)
    chat_template: Any = field(default_factory=PlainTemplate)
    bos_token_id: int | None = 256
    add_bos: bool = True
    vocab_size: int = VOCAB_SIZE


def says(text: str, *, finish_reason: Any = "stop", **last: Any) -> Script:
    """A script: one token a byte, one output a token, whatever the request asks."""

    def script(request: Request) -> Iterable[RequestOutput]:
        for byte in text.encode():
            yield RequestOutput(request_id=request.request_id, new_token_ids=(byte,), text=chr(byte))
        yield RequestOutput(request_id=request.request_id, finish_reason=finish_reason, **last)

    return script


def echoes(request: Request) -> Iterable[RequestOutput]:
    """A script: the answer is the prompt."""
    text = bytes(token for token in request.prompt_token_ids if token < 256).decode()
    return says(text)(request)


def fails(error: Any) -> Script:
    """A script: the first thing to come is an error."""
    return lambda request: [RequestOutput(request_id=request.request_id, finish_reason="error", error=error)]


def hangs(text: str = "") -> Script:
    """A script: some text and then nothing until the request is aborted."""
    return lambda request: [RequestOutput(request_id=request.request_id, new_token_ids=(ord(c),), text=c) for c in text]


def floods(request: Request) -> Iterable[RequestOutput]:
    """A script: more text than sockets hold, 10 MB."""
    for _ in range(100):
        yield RequestOutput(request_id=request.request_id, new_token_ids=(120,), text="x" * 100_000)
    yield RequestOutput(request_id=request.request_id, finish_reason="stop")


class FakeEngine:
    """Plays a script for each request, at once, in the thread of the caller. What is open at its deadline fails.

    Attributes:
        submitted: requests in order.
        aborted: ids that were aborted while they ran.
    """

    def __init__(self, script: Script, *, max_live: int | None = None):
        self._script = script
        self._max_live = max_live
        self._live: dict[str, OnOutput] = {}
        self._closed = False
        self.submitted: list[Request] = []
        self.aborted: list[str] = []

    def submit(self, request: Request, on_output: OnOutput) -> None:
        if self._closed:
            raise EngineStopped("the engine is closed")
        if self._max_live is not None and len(self._live) >= self._max_live:
            raise EngineOverloaded("too many requests are waiting")
        self.submitted.append(request)
        self._live[request.request_id] = on_output
        for output in self._script(request):
            on_output(output)
            if output.finished:
                del self._live[request.request_id]
        if request.deadline is not None and request.request_id in self._live:
            timer = threading.Timer(max(0.0, request.deadline - time.monotonic()), self._end_late, [request])
            timer.daemon = True
            timer.start()

    def _end_late(self, request: Request) -> None:
        on_output = self._live.pop(request.request_id, None)
        if on_output is not None:
            error = DeadlineExceeded(request.params.timeout or 0.0)
            on_output(RequestOutput(request_id=request.request_id, finish_reason="error", error=error))

    def abort(self, request_id: str) -> None:
        on_output = self._live.pop(request_id, None)
        if on_output is not None:
            self.aborted.append(request_id)
            on_output(RequestOutput(request_id=request_id, finish_reason="abort"))

    @property
    def alive(self) -> bool:
        return not self._closed

    def stats(self) -> EngineStats:
        return EngineStats(
            num_running=len(self._live),
            num_waiting=1,
            num_waiting_for_grammar=2,
            kv=KVUsage(free=6, held=1, cached=3, total=10),
            num_steps=4,
            num_step_tokens=80,
            step_sizes=(1, 0, 2, *[0] * 10, 1),
            num_prompt_tokens=50,
            num_cached_tokens=20,
            num_generated_tokens=30,
            num_finished=5,
            num_failed=0,
            num_aborted=1,
            num_preemptions=2,
            num_masks=7,
            num_draft_tokens=5,
            num_accepted_tokens=4,
            num_forced_tokens=3,
            mask_seconds=0.25,
            num_held_slots=160,
            num_unused_slots=4,
            model_seconds=2.0,
            host_seconds=0.125,
        )

    def close(self) -> None:
        self._closed = True
        for request_id in list(self._live):
            self.abort(request_id)


def fake_runtime(script: Script, *, max_model_len: int = 256, max_live: int | None = None, **model: Any) -> Runtime:
    """A runtime over a fake engine (its `.engine` is a `FakeEngine`)."""
    return Runtime(
        model=FakeModel(**model),
        engine=FakeEngine(script, max_live=max_live),
        max_model_len=max_model_len,
        max_waiting=64,
        token_bytes=lambda token: bytes([token % 256]),
    )
