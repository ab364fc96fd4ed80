"""The OpenAPI document is complete, and the server does what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from api_fakes import echoes, fake_runtime
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.server.app import create_app, service_routes
from formcast.api.server.operations import OPERATIONS
from formcast.api.server.service import Service
from formcast.api.server.settings import ServerSettings

KEY = "a-key"


TALK: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}]}
GENERATING = {
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/api/chat", "/api/generate", "/generate", "/generate_stream", "/",
}  # fmt: skip


def client(**settings: Any) -> TestClient:
    made = ServerSettings(served_model_names=("fake",), api_keys=(KEY,), **settings)
    return TestClient(create_app(AsyncLLM(fake_runtime(echoes)), made), headers={"authorization": f"Bearer {KEY}"})


def document(**settings: Any) -> Any:
    return client(**settings).get("/openapi.json").json()


def test_every_route_is_described_and_no_other():
    routes = service_routes(Service(AsyncLLM(fake_runtime(echoes)), ServerSettings(served_model_names=("fake",))))
    served = {(route.path.replace(":path", ""), method) for route in routes for method in route.methods or () if method != "HEAD"}
    described = {(path, method.upper()) for path, methods in document()["paths"].items() for method in methods}
    assert described == served


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for member in value:
            yield from references(member)


def test_references_lead_somewhere_and_schemas_are_schemas():
    made = document()
    schemas = made["components"]["schemas"]
    for reference in set(references(made)):
        _, components, kind, name = reference.split("/")
        assert name in made[components][kind]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    assert schemas["ChatCompletionBody"]["additionalProperties"] is False


def test_headers_show():
    made = document()
    for operation in OPERATIONS:
        described = made["paths"][operation.path][operation.method.lower()]
        names = {made["components"]["parameters"][entry["$ref"].rpartition("/")[2]]["name"] for entry in described["parameters"] if "$ref" in entry}
        assert names == {"X-Request-Id"} | ({"X-Request-Timeout"} if operation.path in GENERATING else set())
        assert all("X-Request-Id" in answer["headers"] for answer in described["responses"].values())
        assert all("Retry-After" in answer["headers"] for status, answer in described["responses"].items() if status == "503")


# Fields that are understood, but may say only what happens anyway.
ONLY: list[tuple[str, str, dict[str, Any], str, Any, Any]] = [
    ("/v1/chat/completions", "ChatCompletionBody", TALK, "verbosity", None, "low"),
    ("/v1/chat/completions", "ChatCompletionBody", TALK, "add_special_tokens", False, True),
    ("/v1/chat/completions", "ChatCompletionBody", TALK | {"stream": True}, "stream_options", {"include_obfuscation": False}, {"include_obfuscation": True}),
    ("/v1/completions", "CompletionBody", {"prompt": "x"}, "add_special_tokens", True, False),
    ("/v1/completions", "CompletionBody", {"prompt": "x"}, "suffix", None, ""),
    ("/v1/responses", "ResponsesBody", {"input": "x"}, "truncation", "disabled", "auto"),
    ("/v1/responses", "ResponsesBody", {"input": "x"}, "reasoning", {"summary": "auto"}, {"summary": "detailed"}),
    ("/v1/responses", "ResponsesBody", {"input": "x", "stream": True}, "stream_options", {"continuous_usage_stats": False}, {"continuous_usage_stats": True}),
    ("/api/generate", "GenerateBody", {"model": "fake", "prompt": "x", "stream": False}, "context", [], [1]),
    ("/api/chat", "ChatBody", {"model": "fake", "messages": [], "stream": False}, "options", {"mirostat": 0}, {"mirostat": 2}),
    ("/generate", "TgiBody", {"inputs": "x"}, "parameters", {"watermark": False}, {"watermark": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "model", "body", "field", "served", "refused"), ONLY)
def test_what_may_say_only_one_thing_is_described_so(path: str, model: str, body: Any, field: str, served: Any, refused: Any):
    api = client()
    made = api.get("/openapi.json").json()
    validator = Draft202012Validator({"$ref": f"#/components/schemas/{model}", "components": made["components"]})
    for value in (served, None):
        validator.validate(body | {field: value})
        assert api.post(path, json=body | {field: value}).status_code == 200
    assert not validator.is_valid(body | {field: refused})
    answer = api.post(path, json=body | {field: refused})
    assert answer.status_code == 400 and field in answer.text and "False" not in answer.text


def test_keys_and_proxy_paths_show():
    made = document(root_path="/llm")
    assert made["servers"] == [{"url": "/llm"}]
    assert made["paths"]["/version"]["get"]["security"] and "security" not in made["paths"]["/health"]["get"]


BODIES: list[tuple[str, Any]] = [
    ("ChatCompletionBody", {"messages": [{"role": "user", "content": "x"}], "stop": "a", "stream": None}),
    ("ChatCompletionBody", {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}], "stop": ["a"]}),
    ("ChatCompletionBody", {"messages": [{"role": "user", "content": "x"}], "structured_outputs": {"json": {}}}),
    ("CompletionBody", {"prompt": ["a", "b"]}),
    ("CompletionBody", {"prompt": [[1, 2], [3]]}),
    ("ResponsesBody", {"input": [{"role": "user", "content": "x"}], "text": {"format": {"type": "json_schema", "schema": {}}}}),
    ("GenerateBody", {"model": "x", "prompt": "y", "options": {"stop": "a"}, "format": {}}),
    ("TgiBody", {"inputs": "x", "parameters": {"grammar": {"type": "json", "value": {}}}}),
]


@pytest.mark.parametrize(("name", "body"), BODIES)
def test_what_is_served_is_described(name: str, body: Any):
    made = document()
    validator = Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": made["components"]})
    validator.validate(body)
    assert not validator.is_valid(body | {"unheard_of": 1})
