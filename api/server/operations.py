"""Every operation of the server, for its document."""

from __future__ import annotations

from ..ollama.protocol import ChatBody, GenerateBody, ShowBody
from ..openai.protocol import ChatCompletionBody, CompletionBody
from ..openai.responses_body import ResponsesBody
from ..openai.tokenize import DetokenizeBody, TokenizeBody
from ..tgi.protocol import TgiBody
from .openapi import EVENTS, LINES, NUMBER, TEXT, Operation, Schema, a_list, an_object

_USAGE = an_object(prompt_tokens=NUMBER, completion_tokens=NUMBER, total_tokens=NUMBER)
_MODEL = an_object(id=TEXT, object={"const": "model"}, created=NUMBER, owned_by=TEXT, max_model_len=NUMBER)
_CHAT = an_object(
    id=TEXT,
    object={"const": "chat.completion"},
    created=NUMBER,
    model=TEXT,
    choices=a_list(an_object(index=NUMBER, message=an_object(role={"const": "assistant"}), finish_reason=TEXT)),
    usage=_USAGE,
)
_COMPLETION = an_object(
    id=TEXT,
    object={"const": "text_completion"},
    created=NUMBER,
    model=TEXT,
    choices=a_list(an_object(index=NUMBER, text=TEXT, finish_reason=TEXT)),
    usage=_USAGE,
)
_RESPONSE = an_object(
    id=TEXT,
    object={"const": "response"},
    created_at=NUMBER,
    status={"enum": ["completed", "incomplete"]},
    model=TEXT,
    output=a_list(an_object(type=TEXT)),
    usage=an_object(input_tokens=NUMBER, output_tokens=NUMBER, total_tokens=NUMBER),
)
_DONE: Schema = {"const": True}
_OLLAMA_MODELS = an_object(models=a_list(an_object(name=TEXT, model=TEXT, size=NUMBER, details={"type": "object"})))

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/v1/chat/completions",
        tag="openai",
        summary="The assistant's next turn",
        body=ChatCompletionBody,
        answer=_CHAT,
        media=EVENTS,
        generates=True,
    ),
    Operation(
        method="POST",
        path="/v1/completions",
        tag="openai",
        summary="Plain continuation",
        body=CompletionBody,
        answer=_COMPLETION,
        media=EVENTS,
        generates=True,
    ),
    Operation(
        method="POST",
        path="/v1/responses",
        tag="openai",
        summary="A response; nothing is kept",
        body=ResponsesBody,
        answer=_RESPONSE,
        media=EVENTS,
        generates=True,
    ),
    Operation(method="GET", path="/v1/models", tag="openai", summary="What is served", answer=an_object(data=a_list(_MODEL))),
    Operation(
        method="GET",
        path="/v1/models/{name}",
        tag="openai",
        summary="One model",
        answer=_MODEL,
        statuses=(404,),
        parameters=("name",),
    ),
    Operation(
        method="POST",
        path="/api/chat",
        tag="ollama",
        summary="The assistant's next turn",
        body=ChatBody,
        answer=an_object(model=TEXT, message=an_object(content=TEXT), done=_DONE),
        media=LINES,
        generates=True,
    ),
    Operation(
        method="POST",
        path="/api/generate",
        tag="ollama",
        summary="An answer to a prompt",
        body=GenerateBody,
        answer=an_object(model=TEXT, response=TEXT, done=_DONE),
        media=LINES,
        generates=True,
    ),
    Operation(method="GET", path="/api/tags", tag="ollama", summary="What is served", answer=_OLLAMA_MODELS),
    Operation(method="GET", path="/api/ps", tag="ollama", summary="What is loaded", answer=_OLLAMA_MODELS),
    Operation(
        method="POST",
        path="/api/show",
        tag="ollama",
        summary="A model's particulars",
        body=ShowBody,
        answer=an_object(details={"type": "object"}, model_info={"type": "object"}),
    ),
    Operation(method="GET", path="/api/version", tag="ollama", summary="The version", answer=an_object(version=TEXT)),
    Operation(
        method="POST",
        path="/generate",
        tag="tgi",
        summary="Plain continuation",
        body=TgiBody,
        answer=an_object(generated_text=TEXT),
        generates=True,
    ),
    Operation(
        method="POST", path="/generate_stream", tag="tgi", summary="The same, streamed", body=TgiBody, media=EVENTS, generates=True
    ),
    Operation(
        method="POST",
        path="/",
        tag="tgi",
        summary="Either, by `stream`",
        body=TgiBody,
        answer=an_object(generated_text=TEXT),
        media=EVENTS,
        generates=True,
    ),
    Operation(method="GET", path="/info", tag="tgi", summary="What is served", answer=an_object(model_id=TEXT, version=TEXT)),
    Operation(
        method="POST",
        path="/tokenize",
        tag="vllm",
        summary="Text or conversation to token ids",
        body=TokenizeBody,
        answer=an_object(count=NUMBER, max_model_len=NUMBER, tokens=a_list(NUMBER)),
    ),
    Operation(
        method="POST",
        path="/detokenize",
        tag="vllm",
        summary="Token ids to text",
        body=DetokenizeBody,
        answer=an_object(prompt=TEXT),
    ),
    Operation(
        method="GET", path="/health", tag="system", summary="Whether requests are answered", answer=an_object(status=TEXT), statuses=(503,)
    ),
    Operation(method="GET", path="/version", tag="system", summary="The version", answer=an_object(version=TEXT)),
    Operation(method="GET", path="/metrics", tag="system", summary="Meters for Prometheus", media="text/plain"),
    Operation(method="GET", path="/openapi.json", tag="system", summary="This document", answer=an_object(openapi=TEXT, paths={})),
)
