"""Thoughts of a real model, in this process and behind a real server."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import ollama
import openai
import pytest
from api_processes import API_KEY, Server

from formcast import LLM, SamplingParams
from formcast.api.runtime import Runtime, RuntimeOptions, open_runtime
from formcast.engine.models.chat_template import ChatTemplate

pytestmark = pytest.mark.slow

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n<think>\n{% if enable_thinking is defined and not enable_thinking %}\n</think>\n\n{% endif %}"
)
PET = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "kind": {"enum": ["cat", "dog"]}},
    "required": ["name", "kind"],
    "additionalProperties": False,
}
TALK: Any = [{"role": "user", "content": "Tell me about a pet."}]
FORM: Any = {"type": "json_schema", "json_schema": {"name": "pet", "schema": PET}}
GREEDY = SamplingParams(temperature=0, max_tokens=80)
BUDGET = 12


@pytest.fixture(scope="module")
def server(model: str) -> Iterator[Server]:
    """A model that is said to think; requests bring the template that lets it."""
    started = Server.serve(
        *(model, "--api-key", API_KEY, "--served-model-name", "small", "--max-model-len", "1024"),
        *("--reasoning-parser", "qwen3", "--trust-request-chat-template"),
    )
    yield started
    started.kill()


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0, timeout=120) as made:
        yield made


def extra(**more: Any) -> dict[str, Any]:
    return {"chat_template": TEMPLATE, "thinking_token_budget": BUDGET, **more}


ASKED: dict[str, Any] = {"model": "small", "messages": TALK, "temperature": 0, "max_tokens": 80}


def test_a_thought_within_its_budget_and_then_the_schema(client: openai.OpenAI):
    made = client.chat.completions.create(**ASKED, response_format=FORM, extra_body=extra())
    message: Any = made.choices[0].message
    jsonschema.validate(json.loads(message.content), PET)
    assert message.reasoning == message.reasoning_content and message.reasoning
    assert made.usage and made.usage.completion_tokens_details
    spent = made.usage.completion_tokens_details.reasoning_tokens
    assert spent is not None and BUDGET < spent <= BUDGET + len("</think>"), "the end of the thought is counted too"
    streamed = list(client.chat.completions.create(**ASKED, response_format=FORM, extra_body=extra(), stream=True))
    deltas: list[Any] = [chunk.choices[0].delta for chunk in streamed if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == message.content
    assert "".join(getattr(delta, "reasoning", None) or "" for delta in deltas) == message.reasoning


def test_thinking_switched_off(client: openai.OpenAI):
    off = extra(chat_template_kwargs={"enable_thinking": False})
    message: Any = client.chat.completions.create(**ASKED, response_format=FORM, extra_body=off).choices[0].message
    jsonschema.validate(json.loads(message.content), PET)
    assert getattr(message, "reasoning", None) is None


def test_a_thought_and_then_a_call(client: openai.OpenAI):
    tool: Any = {"type": "function", "function": {"name": "adopt", "parameters": PET, "strict": True}}
    choice = client.chat.completions.create(
        **ASKED, tools=[tool], tool_choice="required", parallel_tool_calls=False, extra_body=extra()
    ).choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content is None and choice.message.tool_calls
    (call,) = choice.message.tool_calls
    assert call.type == "function"
    jsonschema.validate(json.loads(call.function.arguments), PET)


def test_ollama_knows_that_the_model_thinks(server: Server):
    with ollama.Client(host=server.url, headers={"authorization": f"Bearer {API_KEY}"}, timeout=120) as made:
        assert "thinking" in (made.show("small").capabilities or ())
        assert made.chat("small", TALK, think=True, options={"num_predict": 4, "temperature": 0}).done


def runtime(model: str, **options: Any) -> Runtime:
    opened = open_runtime(RuntimeOptions(model=model, max_model_len=512, max_num_seqs=2, **options))
    thinks: Any = dataclasses.replace(opened.model, chat_template=ChatTemplate(TEMPLATE))  # pyright: ignore[reportArgumentType]
    return dataclasses.replace(opened, model=thinks)


@pytest.mark.slow
def test_drafts_change_nothing_where_a_thought_ends(model: str):
    """The end of the thought is forced by the budget, and with it begins what the schema forces: both are in one draft."""
    texts = []
    for options in ({"draft_from_grammar": False}, {"speculative_config": {"method": "ngram", "num_speculative_tokens": 5}}):
        with LLM.over(runtime(model, **options)) as llm:
            for _ in range(3):  # what came before becomes a habit
                output = llm.chat(TALK, GREEDY, schema=PET, thinking_token_budget=BUDGET)[0].outputs[0]
                jsonschema.validate(output.parsed, PET)
                assert output.reasoning and output.text.split("</think>")[0].strip() == output.reasoning
                texts.append(output.text)
            stats = llm.runtime.engine.stats()
    assert len(set(texts)) == 1
    assert stats.num_accepted_tokens > 0
