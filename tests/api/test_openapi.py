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
from formcast.api.server.service import Service
from formcast.api.server.settings import ServerSettings

KEY = "a-key"


def document(**settings: Any) -> Any:
    made = ServerSettings(served_model_names=("fake",), api_keys=(KEY,), **settings)
    api = TestClient(create_app(AsyncLLM(fake_runtime(echoes)), made), headers={"authorization": f"Bearer {KEY}"})
    return api.get("/openapi.json").json()


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
    assert {reference.removeprefix("#/components/schemas/") for reference in references(made)} <= set(schemas)
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    assert schemas["ChatCompletionBody"]["additionalProperties"] is False


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
