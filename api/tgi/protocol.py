"""Request body of `/generate` and `/generate_stream`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from ..openai.protocol import Strings, Unsupported
from ..openai.strict import StrictModel


class TgiGrammar(StrictModel):
    """`value` is a schema (an object or its JSON text), a pattern, or `{"name": ..., "schema": ...}`."""

    type: Literal["json", "regex", "json_schema"]
    value: Any


class TgiParameters(StrictModel):
    only: ClassVar[Mapping[str, Any]] = {
        "adapter_id": None,
        "best_of": 1,
        "decoder_input_details": False,
        "truncate": None,
        "watermark": False,
    }

    max_new_tokens: int | None = None
    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: Strings | None = None
    return_full_text: bool | None = None
    details: bool | None = None
    top_n_tokens: int | None = None
    grammar: TgiGrammar | None = None

    adapter_id: Unsupported = None
    best_of: Unsupported = None
    decoder_input_details: Unsupported = None
    truncate: Unsupported = None
    watermark: Unsupported = None

    def refuse_unsupported(self) -> None:
        """Raise for what is known by name and cannot be done."""
        self.refuse_others("parameters.")

    @property
    def samples(self) -> bool:
        """Whether the answer is drawn; else the likeliest token is taken."""
        return bool(self.do_sample) or any(value is not None for value in (self.temperature, self.top_k, self.top_p, self.typical_p))


class TgiBody(StrictModel):
    hints: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("text", "sampling_params"), "this is TGI's /generate; requests for SGLang's go to /v1/completions"
    )

    inputs: str
    parameters: TgiParameters | None = None
    stream: bool | None = None
    model: str | None = None

    @property
    def options(self) -> TgiParameters:
        return self.parameters or TgiParameters()
