"""Constraints in the bodies that the documents of other servers show: each is enforced, or refused by the name of its field."""

from __future__ import annotations

from typing import Any

import pytest
from api_fakes import fake_runtime, says
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
TALK: dict[str, Any] = {"model": "fake", "messages": [{"role": "user", "content": "x"}]}
CAR = {"title": "Car", "type": "object", "properties": {"brand": {"type": "string"}, "kind": {"enum": ["suv", "van"]}}, "required": ["brand", "kind"]}
GOOD, BAD = '{"brand": "x", "kind": "van"}', '{"brand": "x", "kind": "bus"}'
SQL = 'root ::= "SELECT " column " FROM " table\ncolumn ::= "name" | "age"\ntable ::= "people"'
MAIL = r"[a-z0-9.]{1,20}@\w{6,10}\.com\n"
OPENAI = {"type": "json_schema", "json_schema": {"name": "car", "schema": CAR}}
TAGS = {
    "type": "structural_tag",
    "structures": [{"begin": "<function=car>", "schema": CAR, "end": "</function>"}],
    "triggers": ["<function="],
}
CALL = f"I call <function=car>{GOOD}</function>", f"I call <function=car>{BAD}</function>"
NEW_TAGS = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<function="],
        "tags": [{"begin": "<function=car>", "content": {"type": "json_schema", "json_schema": CAR}, "end": "</function>"}],
    },
}


@pytest.mark.parametrize(
    ("path", "body", "good", "bad"),
    [
        # OpenAI
        (CHAT, TALK | {"response_format": OPENAI}, GOOD, BAD),
        (CHAT, TALK | {"response_format": {"type": "json_object"}}, "{}", "[]"),
        (RESPONSES, {"input": "x", "text": {"format": {"type": "json_schema", "name": "car", "schema": CAR}}}, GOOD, BAD),
        (RESPONSES, {"input": "x", "text": {"format": {"type": "json_object"}}}, "{}", "[]"),
        # vLLM
        (CHAT, TALK | {"structured_outputs": {"choice": ["positive", "negative"]}}, "positive", "neutral"),
        (CHAT, TALK | {"structured_outputs": {"regex": MAIL}, "stop": ["\n"]}, "ada@engines.com\n", "ada"),
        (CHAT, TALK | {"structured_outputs": {"json": CAR}}, GOOD, BAD),
        (CHAT, TALK | {"structured_outputs": {"grammar": SQL}}, "SELECT age FROM people", "SELECT x FROM people"),
        (CHAT, TALK | {"structured_outputs": {"structural_tag": TAGS}}, *CALL),
        (CHAT, TALK | {"response_format": NEW_TAGS}, *CALL),
        (CHAT, TALK | {"guided_json": CAR}, GOOD, BAD),
        (CHAT, TALK | {"guided_choice": ["a", "b"]}, "b", "c"),
        (COMPLETIONS, {"prompt": "x", "guided_regex": "a+"}, "aa", "b"),
        (COMPLETIONS, {"prompt": "x", "guided_grammar": SQL}, "SELECT name FROM people", "SELECT"),
        # SGLang
        (CHAT, TALK | {"response_format": TAGS}, *CALL),
        (CHAT, TALK | {"ebnf": SQL}, "SELECT name FROM people", "SELECT"),
        (CHAT, TALK | {"regex": "(Paris|London)"}, "London", "Rome"),
        # llama.cpp
        (CHAT, TALK | {"response_format": {"type": "json_object", "schema": CAR}}, GOOD, BAD),
        (CHAT, TALK | {"response_format": {"type": "json_schema", "schema": CAR}}, GOOD, BAD),
        (CHAT, TALK | {"json_schema": CAR}, GOOD, BAD),
        (COMPLETIONS, {"prompt": "x", "grammar": SQL}, "SELECT name FROM people", "SELECT"),
        # Ollama
        ("/api/chat", TALK | {"format": CAR, "stream": False, "options": {"temperature": 0}}, GOOD, BAD),
        ("/api/generate", {"model": "fake", "prompt": "x", "format": "json", "stream": False}, "{}", "[]"),
        # TGI
        ("/generate", {"inputs": "x", "parameters": {"grammar": {"type": "json", "value": CAR}, "repetition_penalty": 1.3}}, GOOD, BAD),
        ("/generate", {"inputs": "x", "parameters": {"grammar": {"type": "regex", "value": "a+"}}}, "aa", "b"),
    ],
)  # fmt: skip
def test_documented_constraints_are_enforced(path: str, body: dict[str, Any], good: str, bad: str):
    runtime = fake_runtime(says("x"), max_model_len=4096)
    answer = TestClient(create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",)))).post(path, json=body)
    assert answer.status_code == 200, answer.text
    grammar = runtime.engine.submitted[0].grammar  # pyright: ignore[reportAttributeAccessIssue]
    assert grammar.accepts(good) and not grammar.accepts(bad)


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        (CHAT, TALK | {"guided_json": CAR, "guided_decoding_backend": "xgrammar"}, "guided_decoding_backend"),
        (CHAT, TALK | {"structural_tag": TAGS}, "structural_tag"),
        (CHAT, TALK | {"tools": [{"type": "custom", "custom": {"name": "sql", "format": {"type": "grammar"}}}]}, "only tools of the type 'function'"),
        (CHAT, TALK | {"tools": [], "tool_choice": {"type": "custom", "custom": {"name": "sql"}}}, "only tools of the type 'function'"),
        (CHAT, TALK | {"num_beams": 4}, "'beam_width'"),
        (RESPONSES, {"input": "x", "use_beam_search": True}, "/v1/completions"),
        (CHAT, TALK | {"best_of": 2}, "'n'"),
        (RESPONSES, {"input": "x", "tools": [{"type": "custom", "name": "sql", "format": {"type": "grammar"}}]}, "tools[0]"),
        (RESPONSES, {"input": "x", "response_format": OPENAI}, "response_format"),
        (CHAT, TALK | {"grammar": SQL, "json_schema": CAR}, "'json_schema' and 'grammar'"),
        (CHAT, TALK | {"grammar_lazy": True}, "grammar_lazy"),
        ("/generate", {"text": "x", "sampling_params": {"json_schema": "{}"}}, "/v1/completions"),
        ("/completion", {"prompt": "x", "grammar": SQL}, "/v1/completions"),
    ],
)
def test_the_others_are_refused_by_name(path: str, body: dict[str, Any], name: str):
    app = create_app(AsyncLLM(fake_runtime(says("x"))), ServerSettings(served_model_names=("fake",)))
    answer = TestClient(app).post(path, json=body)
    assert answer.status_code in (400, 404) and name in answer.text, answer.text
