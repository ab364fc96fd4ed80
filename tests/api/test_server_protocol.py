"""The HTTP protocol over an engine that plays scripts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_fakes import echoes, fails, fake_runtime, hangs, says
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings
from formcast.engine.request import EngineOverloaded, GenerationError, TokenLogprob
from formcast.grammar.errors import GrammarError, LimitError

HELLO = {"model": "fake", "messages": [{"role": "user", "content": "hello"}]}
COMPLETION = {"model": "fake", "prompt": "hello"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
PAIR = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
LARK = 'start: "(" start ")" | "x"'
GBNF = 'root ::= "(" root ")" | "x"'
EBNF = "root\n  ::= '(' root ')' | 'x'"
CHAT = "/v1/chat/completions"


def client(runtime: Runtime, **settings: Any) -> TestClient:
    app = create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake", "alias"), **settings))
    return TestClient(app, raise_server_exceptions=False)


def events(text: str) -> list[Any]:
    """Payloads of an event stream; `[DONE]` as it stands."""
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_a_plain_answer():
    answer = client(fake_runtime(says("hi"))).post(CHAT, json=HELLO)
    body = answer.json()
    assert answer.status_code == 200
    assert body["object"] == "chat.completion"
    assert body["id"].startswith("chatcmpl-")
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hi", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
            "stop_reason": None,
        }
    ]
    prompt_tokens = len("user: hello\nassistant:")
    assert body["usage"]["prompt_tokens"] == prompt_tokens
    assert body["usage"]["completion_tokens"] == 2
    assert body["usage"]["total_tokens"] == prompt_tokens + 2


def test_a_stream_has_role_text_finish_and_done():
    answer = client(fake_runtime(says("hi"))).post(CHAT, json=HELLO | {"stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, done = events(answer.text)
    assert done == "[DONE]"
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "h"},
        {"content": "i"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert all("usage" not in chunk for chunk in chunks)


def test_the_usage_chunk_comes_last_when_asked_for():
    body = HELLO | {"stream": True, "stream_options": {"include_usage": True}}
    *chunks, last, _ = events(client(fake_runtime(says("hi"))).post(CHAT, json=body).text)
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 2
    assert all(chunk["usage"] is None for chunk in chunks)


def test_n_answers_are_streamed_by_index():
    *chunks, _ = events(client(fake_runtime(echoes)).post(CHAT, json=HELLO | {"stream": True, "n": 2}).text)
    texts = {0: "", 1: ""}
    for chunk in chunks:
        choice = chunk["choices"][0]
        texts[choice["index"]] += choice["delta"].get("content", "")
    assert texts == {0: "user: hello\nassistant:", 1: "user: hello\nassistant:"}


def test_completions_take_several_prompts():
    body = client(fake_runtime(echoes)).post("/v1/completions", json=COMPLETION | {"prompt": ["a", "bc"], "n": 2}).json()
    assert [(choice["index"], choice["text"]) for choice in body["choices"]] == [(0, "a"), (1, "a"), (2, "bc"), (3, "bc")]
    assert body["usage"]["prompt_tokens"] == 2 + 3  # each with its begin token


def test_completions_stream():
    *chunks, done = events(client(fake_runtime(says("hi"))).post("/v1/completions", json=COMPLETION | {"stream": True}).text)
    assert done == "[DONE]"
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "hi"
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


def test_logprobs_name_tokens_by_their_bytes():
    entry = TokenLogprob(token_id=104, logprob=-0.5, top=((104, -0.5), (195, -1.5)))
    body = HELLO | {"logprobs": True, "top_logprobs": 2}
    runtime = fake_runtime(says("", logprobs=(entry,)))
    logprobs = client(runtime).post(CHAT, json=body).json()["choices"][0]["logprobs"]
    assert logprobs["content"][0]["token"] == "h"
    assert logprobs["content"][0]["top_logprobs"][1] == {"token": "\ufffd", "logprob": -1.5, "bytes": [195]}
    assert runtime.engine.submitted[0].params.logprobs == 2  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("constraint", "admits", "refuses"),
    [
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}, '{"a": 1}', "{}"),
        ({"response_format": {"type": "json_object"}}, "{}", "[]"),
        ({"structured_outputs": {"json": SCHEMA}}, '{"a": 1}', "{}"),
        ({"structured_outputs": {"json": json.dumps(SCHEMA)}}, '{"a": 1}', "{}"),
        ({"structured_outputs": {"regex": "[0-9]{2}"}}, "12", "123"),
        ({"structured_outputs": {"choice": ["yes", "no"]}}, "no", "maybe"),
        ({"structured_outputs": {"json_object": True}}, "{}", "1"),
        ({"structured_outputs": {"json": SCHEMA, "disable_any_whitespace": True}}, '{"a":1}', '{"a": 1 }'),
        ({"structured_outputs": {"json": SCHEMA, "whitespace_pattern": "\t?"}}, '{"a":\t1}', '{"a": 1}'),
        ({"structured_outputs": {"json_object": True, "whitespace_pattern": "\t?"}}, '{"a":\t1}', '{"a": 1}'),
        ({"guided_json": SCHEMA, "guided_whitespace_pattern": "\t?"}, '{"a":\t1}', '{"a": 1}'),
        ({"structured_outputs": {"json": PAIR, "property_order": "any"}}, '{"b": 1, "a": 2}', '{"b": 1}'),
        ({"structured_outputs": {"json": PAIR, "property_order": "schema"}}, '{"a": 1, "b": 2}', '{"b": 1, "a": 2}'),
        ({"guided_json": SCHEMA}, '{"a": 1}', "{}"),
        ({"guided_regex": "[0-9]{2}"}, "12", "1"),
        ({"guided_choice": ["yes", "no"]}, "yes", ""),
        ({"structured_outputs": {"grammar": LARK}}, "((x))", "((x)"),
        ({"structured_outputs": {"grammar": GBNF}}, "((x))", "((x)"),
        ({"structured_outputs": {"grammar": EBNF}}, "((x))", "((x)"),
        ({"structured_outputs": {"grammar": 'start: "root ::= a" // ::='}}, "root ::= a", "a"),
        ({"guided_grammar": LARK}, "(x)", "x)"),
        ({"guided_grammar": "# two rules\nroot ::= one\none ::= [a-c]"}, "b", "d"),
        ({"response_format": {"type": "grammar", "grammar": GBNF}}, "(x)", "x)"),
        ({"response_format": {"type": "grammar", "grammar": LARK}}, "(x)", "x)"),
        ({"response_format": {"type": "regex", "regex": "[0-9]{2}"}}, "12", "1"),
        ({"response_format": {"type": "choice", "choice": ["yes", "no"]}}, "yes", ""),
        ({"grammar": GBNF}, "(x)", "x)"),
        ({"ebnf": EBNF}, "(x)", "x)"),
        ({"regex": "[0-9]{2}"}, "12", "1"),
        ({"json_schema": json.dumps(SCHEMA)}, '{"a": 1}', "{}"),
        ({"json_schema": SCHEMA}, '{"a": 1}', "{}"),
    ],
)
@pytest.mark.parametrize(("path", "base"), [(CHAT, HELLO), ("/v1/completions", COMPLETION)])
def test_constraints_reach_the_engine(path: str, base: dict, constraint: dict, admits: str, refuses: str):
    runtime = fake_runtime(says("x"))
    assert client(runtime).post(path, json=base | constraint).status_code == 200
    grammar = runtime.engine.submitted[0].grammar  # pyright: ignore[reportAttributeAccessIssue]
    assert grammar.accepts(admits)
    assert not grammar.accepts(refuses)


def test_text_format_is_no_constraint():
    runtime = fake_runtime(says("x"))
    client(runtime).post(CHAT, json=HELLO | {"response_format": {"type": "text"}})
    assert runtime.engine.submitted[0].grammar is None  # pyright: ignore[reportAttributeAccessIssue]


def test_parameters_reach_the_engine():
    given: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 7,
        "min_p": 0.1,
        "seed": 3,
        "stop": "END",
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "repetition_penalty": 1.1,
        "min_tokens": 1,
        "ignore_eos": True,
        "stop_token_ids": [5],
    }
    runtime = fake_runtime(says("x"))
    more = {"max_completion_tokens": 9, "logit_bias": {"12": -3}, "user": "u", "metadata": {"k": "v"}, "store": False, "top_logprobs": None}
    assert client(runtime).post(CHAT, json=HELLO | given | more).status_code == 200
    params = runtime.engine.submitted[0].params  # pyright: ignore[reportAttributeAccessIssue]
    assert {name: getattr(params, name) for name in given} == given | {"stop": ("END",), "stop_token_ids": (5,)}
    assert params.max_tokens == 9
    assert params.logit_bias == {12: -3.0}


def test_all_tokens_may_be_spelt_as_vllm_does():
    runtime = fake_runtime(says("x"))
    client(runtime).post(CHAT, json=HELLO | {"top_k": -1})
    assert runtime.engine.submitted[0].params.top_k == 0  # pyright: ignore[reportAttributeAccessIssue]


def test_an_answer_can_be_sent_back_and_developer_is_system():
    message = client(fake_runtime(says("hi"))).post(CHAT, json=HELLO).json()["choices"][0]["message"]
    turns = [{"role": "developer", "content": [{"type": "text", "text": "be"}, {"type": "text", "text": " brief"}]}, message]
    body = client(fake_runtime(echoes)).post(CHAT, json=HELLO | {"messages": turns}).json()
    assert body["choices"][0]["message"]["content"] == "system: be brief\nassistant: hi\nassistant:"


def chat(**fields: Any) -> dict[str, Any]:
    return HELLO | fields


def schema_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


BAD_REQUESTS = [
    (chat(respones_format={"type": "json_object"}), "respones_format", "did you mean 'response_format'"),
    (chat(zzz=1), "zzz", "unknown field 'zzz'"),
    (chat(response_format={"type": "json_schema", "json_schema": {"nam": "x"}}), "response_format.json_schema.nam", "'name'"),
    (chat(messages=[{"role": "user", "contents": "x"}]), "messages[0].contents", "'content'"),
    (chat(messages=[]), "messages", "at least 1"),
    (chat(messages=[{"role": "wizard", "content": "x"}]), "messages[0].role", "'system'"),
    (chat(messages=[{"role": "user", "content": 5}]), "messages[0].content", "list"),
    (chat(messages="hello"), "messages", "list"),
    (
        chat(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
        "messages[0].content[0]",
        "image_url",
    ),
    (chat(messages=[{"role": "user", "content": "x", "tool_call_id": "1"}]), "messages[0].tool_call_id", "result of a tool"),
    ({"model": "fake"}, "messages", "is missing"),
    (chat(max_tokens=0), "max_tokens", "at least 1"),
    (chat(max_tokens=-1), "max_tokens", "at least 1"),
    (chat(max_tokens="5"), "max_tokens", "integer"),
    (chat(max_tokens=1.5), "max_tokens", "integer"),
    (chat(max_completion_tokens=0), "max_completion_tokens", "at least 1"),
    (chat(max_tokens=1, max_completion_tokens=2), "max_completion_tokens", "differ"),
    (chat(temperature=-1), "temperature", "at least 0"),
    (chat(temperature="hot"), "temperature", "number"),
    (chat(temperature=True), "temperature", "number"),
    (chat(top_p=2), "top_p", "at most 1"),
    (chat(top_k=-2), "top_k", "at least 0"),
    (chat(n=0), "n", "1 to 128"),
    (chat(stop=[""]), "stop", "empty"),
    (chat(stop={"a": 1}), "stop", "list"),
    (chat(stream="yes"), "stream", "true or false"),
    (chat(seed=1.5), "seed", "integer"),
    (chat(logit_bias={"a": 1}), "logit_bias", "not a token id"),
    (chat(logit_bias={"300": 1}), "logit_bias", "0 to 299"),
    (chat(logit_bias={"3": 1000}), "logit_bias", "100"),
    (chat(stop_token_ids=[300]), "stop_token_ids", "0 to 299"),
    (chat(top_logprobs=2), "top_logprobs", "logprobs"),
    (chat(logprobs=True, top_logprobs=99), "top_logprobs", "at most 20"),
    (chat(stream_options={"include_usage": True}), "stream_options", "stream"),
    (chat(metadata={"a": 1}), "metadata.a", "a text"),
    (chat(tools=[]), "tools", "1 to 1024"),
    (chat(tools=[{"type": "function", "function": {"name": "a b"}}]), "tools[0].function.name", "letters"),
    (chat(tools=[{"type": "function", "function": {"name": "f"}}] * 2), "tools[1].function.name", "two tools"),
    (chat(tools=[{"type": "function", "function": {"name": "f", "strict": True, "parameters": {"type": "objekt"}}}]), "tools[0].function.parameters", "/type"),
    (chat(tools=[{"type": "function", "function": {"name": "f"}}], tool_choice={"type": "function", "function": {"name": "g"}}), "tool_choice", "no tool"),
    (chat(functions=[{"name": "a b"}]), "functions[0].name", "letters"),
    (chat(functions=[{"name": "f"}], function_call={"name": "g"}), "function_call", "no tool"),
    (chat(functions=[{"name": "f"}], tool_choice="auto"), "functions", "'tool_choice'"),
    (chat(function_call="auto"), "function_call", "needs 'functions'"),
    (chat(messages=[{"role": "function", "name": "f", "content": "x"}]), "messages[0].name", "called before"),
    (chat(messages=[{"role": "function", "content": "x"}]), "messages[0].name", "missing"),
    (chat(response_format={"type": "structural_tag", "format": {"type": "texte"}}), "response_format", "/format/type"),
    (chat(response_format={"type": "structural_tag", "regex": "a"}), "response_format.regex", "does not go"),
    (chat(structured_outputs={"structural_tag": "{"}), "structured_outputs.structural_tag", "not JSON"),
    (chat(structured_outputs={"regex": "a", "whitespace_pattern": " "}), "structured_outputs.whitespace_pattern", "'json'"),
    (chat(structured_outputs={"regex": "a", "disable_any_whitespace": True}), "structured_outputs.disable_any_whitespace", "'json'"),
    (chat(structured_outputs={"choice": ["a"], "property_order": "any"}), "structured_outputs.property_order", "'json'"),
    (chat(structured_outputs={"json": {}, "property_order": "alphabet"}), "structured_outputs.property_order", "'any'"),
    (chat(guided_regex="a", guided_whitespace_pattern=" "), "guided_whitespace_pattern", "'guided_json'"),
    (chat(tool_choice="auto"), "tool_choice", "needs 'tools'"),
    (chat(functions=[]), "functions", "1 to 1024"),
    (chat(reasoning_effort="low"), "reasoning_effort", "not supported"),
    (chat(modalities=["audio"]), "modalities", "not supported"),
    (chat(store=True), "store", "never kept"),
    (chat(chat_template_kwargs={"messages": []}), "chat_template_kwargs.messages", "itself"),
    (chat(response_format={"type": "xml"}), "response_format.type", "'json_schema'"),
    (chat(response_format={"type": "json_schema"}), "response_format.json_schema.schema", "needs"),
    (chat(response_format=schema_format("{}")), "response_format.json_schema.schema", "must be an object"),
    (chat(response_format=schema_format([1])), "response_format.json_schema.schema", "object or a boolean"),
    (chat(response_format={"type": "json_object", "json_schema": {}}), "response_format.json_schema", "json_object"),
    (chat(response_format=schema_format({"type": "objekt"})), "response_format.json_schema.schema", "/type"),
    (chat(response_format=schema_format({"properties": {"a": {"type": 5}}})), "response_format.json_schema.schema", "/properties/a"),
    (chat(structured_outputs={"regex": "("}), "structured_outputs.regex", "position"),
    (chat(structured_outputs={"json": "{"}), "structured_outputs.json", "structured_outputs.json"),
    (chat(structured_outputs={"choice": []}), "structured_outputs.choice", "structured_outputs.choice"),
    (chat(structured_outputs={}), "structured_outputs", "no constraint"),
    (chat(structured_outputs={"json_object": False}), "structured_outputs", "no constraint"),
    (chat(structured_outputs={"grammar": "root ::= x"}), "structured_outputs.grammar", "at position 9"),
    (chat(structured_outputs={"grammar": "start: x"}), "structured_outputs.grammar", "at position 7"),
    (chat(structured_outputs={"grammar": ""}), "structured_outputs.grammar", "structured_outputs.grammar"),
    (chat(structured_outputs={"grammar": 'start: a\na: "x" ('}), "structured_outputs.grammar", "line 2, column 9"),
    (chat(structured_outputs={"structural_tag": {}}), "structured_outputs.structural_tag", "'type' is missing"),
    (chat(structured_outputs={"regx": "a"}), "structured_outputs.regx", "'regex'"),
    (chat(structured_outputs={"regex": "a", "choice": ["a"]}), "structured_outputs.choice", "'structured_outputs.regex'"),
    (chat(guided_json={}, response_format={"type": "json_object"}), "guided_json", "'response_format' and 'guided_json'"),
    (chat(guided_json={}, grammar=GBNF), "grammar", "'guided_json' and 'grammar'"),
    (chat(regex="a", ebnf=EBNF), "ebnf", "'regex' and 'ebnf'"),
    (
        chat(structured_outputs={"grammar": LARK}, guided_grammar=LARK),
        "guided_grammar",
        "'structured_outputs.grammar' and 'guided_grammar'",
    ),
    (chat(response_format={"type": "regex", "regex": "a"}, regex="a"), "regex", "'response_format.regex' and 'regex'"),
    (chat(guided_grammar="x"), "guided_grammar", "position"),
    (chat(guided_grammar=["x"]), "guided_grammar", "a text"),
    (chat(grammar=LARK), "grammar", "position"),
    (chat(grammar='root ::= "a" root'), "grammar", "root"),
    (chat(ebnf='root ::= "a'), "ebnf", "at position 9"),
    (chat(regex="("), "regex", "position"),
    (chat(json_schema="{"), "json_schema", "json_schema"),
    (chat(json_schema={"type": "objekt"}), "json_schema", "/type"),
    (chat(json_schema=[1]), "json_schema", "an object or a boolean"),
    (chat(response_format={"type": "grammar"}), "response_format.grammar", "needs"),
    (chat(response_format={"type": "regex", "choice": ["a"]}), "response_format.choice", "does not go with"),
    (chat(response_format={"type": "choice", "choice": []}), "response_format.choice", "at least one"),
    (chat(response_format={"type": "grammar", "grammar": "root ::= ("}), "response_format.grammar", "position"),
    (chat(response_format={"type": "structural_tag"}), "response_format", "'format' is missing"),
    (chat(response_format={"type": "tag"}), "response_format.type", "'grammar'"),
]


@pytest.mark.parametrize(("body", "param", "says_so"), BAD_REQUESTS)
def test_a_bad_request_names_its_field(body: dict[str, Any], param: str, says_so: str):
    runtime = fake_runtime(echoes)
    answer = client(runtime).post(CHAT, content=json.dumps(body))
    error = answer.json()["error"]
    assert answer.status_code == 400, answer.text
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert says_so in error["message"]
    assert error["code"]
    assert runtime.engine.submitted == []  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (COMPLETION | {"prompt": ""}, None),
        (COMPLETION | {"prompt": None}, "prompt"),
        (COMPLETION | {"prompt": []}, "prompt"),
        (COMPLETION | {"prompt": [[]]}, "prompt"),
        (COMPLETION | {"prompt": [1, "a"]}, "prompt"),
        (COMPLETION | {"prompt": [1, 300]}, "prompt"),
        (COMPLETION | {"prompt": [True]}, "prompt"),
        (COMPLETION | {"best_of": 2}, "best_of"),
        (COMPLETION | {"messages": []}, "messages"),
    ],
)
def test_bad_completions(body: dict[str, Any], param: str | None):
    answer = client(fake_runtime(echoes)).post("/v1/completions", json=body)
    if param is None:
        assert answer.status_code == 200  # the begin token alone is a prompt
    else:
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (chat(messages=[{"role": "user", "content": "x" * 300}]), "messages"),
        (chat(max_tokens=250), "max_tokens"),
        (chat(max_completion_tokens=250), "max_completion_tokens"),
    ],
)
def test_beyond_the_context(body: dict[str, Any], param: str):
    answer = client(fake_runtime(echoes, max_model_len=256)).post(CHAT, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", param)
    assert "256" in error["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("failure", "status", "code", "param"),
    [
        (GrammarError("cannot", pointer="/a"), 400, "invalid_grammar", "guided_json"),
        (LimitError("too big"), 400, "grammar_too_large", "guided_json"),
        (GenerationError("boom"), 500, "generation_failed", None),
    ],
)
def test_a_failure_before_the_first_token_is_a_status(failure: Any, status: int, code: str, param: str | None, stream: bool):
    body = HELLO | {"guided_json": SCHEMA, "stream": stream}
    answer = client(fake_runtime(fails(failure))).post(CHAT, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)


def test_a_failure_inside_a_stream_is_one_error_event():
    runtime = fake_runtime(says("h", finish_reason="error", error=GenerationError("boom")))
    *chunks, last = events(client(runtime).post(CHAT, json=HELLO | {"stream": True}).text)
    assert last["error"]["message"] == "boom"
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks) == "h"


def test_an_aborted_answer_is_not_a_normal_one():
    answer = client(fake_runtime(says("h", finish_reason="abort"))).post(CHAT, json=HELLO)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "aborted")


def test_a_full_engine_says_try_again():
    runtime = fake_runtime(hangs(), max_live=0)
    answer = client(runtime).post(CHAT, json=HELLO)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_overloaded")
    assert answer.headers["retry-after"]
    assert issubclass(EngineOverloaded, Exception)


def test_a_stopped_engine_is_unavailable():
    runtime = fake_runtime(echoes)
    runtime.close()
    assert client(runtime).post(CHAT, json=HELLO).status_code == 503


def test_a_surprise_is_a_500_without_details():
    def script(request: Any) -> Any:
        raise ZeroDivisionError("secret")

    answer = client(fake_runtime(script)).post(CHAT, json=HELLO)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["error"]["code"] == "internal_error"


def test_models():
    api = client(fake_runtime(echoes))
    assert [card["id"] for card in api.get("/v1/models").json()["data"]] == ["fake", "alias"]
    assert api.get("/v1/models/alias").json()["object"] == "model"
    missing = api.get("/v1/models/a/b")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


def test_an_answer_names_the_model_as_the_request_did():
    assert client(fake_runtime(echoes)).post(CHAT, json=HELLO | {"model": "alias"}).json()["model"] == "alias"


def test_an_unknown_model_is_a_404():
    answer = client(fake_runtime(echoes)).post(CHAT, json=HELLO | {"model": "gpt-5"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
    assert "fake" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("GET", CHAT, 405), ("POST", "/health", 405)])
def test_wrong_paths_and_methods(method: str, path: str, status: int):
    answer = client(fake_runtime(echoes)).request(method, path)
    assert answer.status_code == status
    assert path in answer.json()["error"]["message"]


def test_health_and_version():
    api = client(fake_runtime(echoes))
    assert api.get("/health").status_code == 200
    assert api.get("/version").json()["version"]


def test_a_large_body_is_a_413():
    api = client(fake_runtime(echoes), max_body_bytes=1000)
    assert api.post(CHAT, content=b"x" * 1001).status_code == 413
    assert api.post(CHAT, content=b"x" * 100_000).json()["error"]["code"] == "request_too_large"


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("Bearer wrong", 401),
        ("Bearer", 401),
        ("Basic one", 401),
        ("Bearer one", 200),
        ("bearer two", 200),
        ("Bearer  two", 200),
        ("Bearer onetwo", 401),
    ],
)
def test_keys(header: str | None, status: int):
    api = client(fake_runtime(echoes), api_keys=("one", "two"))
    headers = {} if header is None else {"authorization": header}
    answer = api.get("/v1/models", headers=headers)
    assert answer.status_code == status
    if status == 401:
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert answer.headers["www-authenticate"] == "Bearer"


def test_health_needs_no_key():
    assert client(fake_runtime(echoes), api_keys=("one",)).get("/health").status_code == 200
