"""Request bodies of `/api/chat`, `/api/generate` and `/api/show`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from ..openai.errors import bad_request, not_supported
from ..openai.protocol import Strings, Unsupported
from ..openai.strict import StrictModel


class Options(StrictModel):
    """`options`. Those that size a process that is running already are taken without effect; `num_ctx` among them."""

    only: ClassVar[Mapping[str, Any]] = {"tfs_z": 1.0, "mirostat": 0}

    num_predict: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    typical_p: float | None = None
    min_p: float | None = None
    seed: int | None = None
    stop: Strings | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None

    repeat_last_n: int | None = None
    penalize_newline: bool | None = None
    tfs_z: Unsupported = None
    mirostat: Unsupported = None
    mirostat_tau: Any = None
    mirostat_eta: Any = None

    num_ctx: int | None = None
    num_keep: int | None = None
    num_batch: int | None = None
    num_gpu: int | None = None
    main_gpu: int | None = None
    num_thread: int | None = None
    numa: bool | None = None
    low_vram: bool | None = None
    f16_kv: bool | None = None
    logits_all: bool | None = None
    vocab_only: bool | None = None
    use_mmap: bool | None = None
    use_mlock: bool | None = None
    embedding_only: bool | None = None


class OllamaBody(StrictModel):
    """What both endpoints share. Answers are streamed unless `stream` is false."""

    only: ClassVar[Mapping[str, Any]] = {"truncate": False, "shift": False}

    model: str
    format: Any = None
    options: Options | None = None
    stream: bool | None = None
    keep_alive: str | float | int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    think: bool | str | None = None
    truncate: bool | None = None
    shift: bool | None = None

    def refuse_unsupported(self) -> None:
        """Raise for what this endpoint knows by name and cannot do."""
        self.refuse_others()
        if self.top_logprobs and not self.logprobs:
            raise bad_request("'top_logprobs' needs 'logprobs': true", param="top_logprobs")
        options = self.options or Options()
        options.refuse_others("options.")
        if options.repeat_penalty not in (None, 1.0) and options.repeat_last_n not in (None, -1):
            raise not_supported("'options.repeat_last_n' other than -1 (all tokens)", param="options.repeat_last_n")


class CalledFunction(StrictModel):
    name: str
    arguments: dict[str, Any]
    index: int | None = None
    description: str | None = None


class CallBody(StrictModel):
    """One of the `tool_calls` of an assistant's message."""

    function: CalledFunction
    id: str | None = None
    type: Literal["function"] | None = None


class FunctionBody(StrictModel):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolBody(StrictModel):
    """One of `tools`."""

    type: Literal["function"] = "function"
    function: FunctionBody


class OllamaMessage(StrictModel):
    only: ClassVar[Mapping[str, Any]] = {"images": []}

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    thinking: str | None = None
    images: Unsupported = None
    tool_calls: list[CallBody] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


class ChatBody(OllamaBody):
    messages: list[OllamaMessage] = Field(default=[], max_length=10_000)
    tools: list[ToolBody] | None = Field(default=None, max_length=1024)

    def refuse_unsupported(self) -> None:
        super().refuse_unsupported()
        for index, message in enumerate(self.messages):
            path = f"messages[{index}]."
            message.refuse_others(path)
            if message.tool_calls and message.role != "assistant":
                raise bad_request("only an assistant calls tools", param=f"{path}tool_calls")
            if (message.tool_name or message.tool_call_id) and message.role != "tool":
                raise bad_request("only the result of a tool has a 'tool_name'", param=f"{path}tool_name")


class GenerateBody(OllamaBody):
    only: ClassVar[Mapping[str, Any]] = {
        **OllamaBody.only,
        "template": "",
        "suffix": "",
        "context": [],
        "images": [],
        "width": 0,
        "height": 0,
        "steps": 0,
    }

    prompt: str | None = None
    system: str | None = None
    raw: bool | None = None
    template: Unsupported = None
    suffix: Unsupported = None
    context: Unsupported = None
    images: Unsupported = None
    width: Unsupported = None
    height: Unsupported = None
    steps: Unsupported = None

    def refuse_unsupported(self) -> None:
        super().refuse_unsupported()
        if self.raw and self.system:
            raise bad_request("'system' does not go with 'raw': true, which leaves the template out", param="system")


class ShowBody(StrictModel):
    model: str | None = None
    name: str | None = None
    verbose: bool | None = None
