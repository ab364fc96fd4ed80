"""Health, version and tokens."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from api_fakes import echoes, fake_runtime
from api_processes import API_KEY, Server
from starlette.testclient import TestClient

from formcast.api.async_engine import AsyncLLM
from formcast.api.server.app import create_app
from formcast.api.server.settings import ServerSettings


@pytest.fixture
def api() -> TestClient:
    return TestClient(create_app(AsyncLLM(fake_runtime(echoes)), ServerSettings(served_model_names=("fake",))))


def test_health_notices_a_stopped_engine():
    runtime = fake_runtime(echoes)
    api = TestClient(create_app(AsyncLLM(runtime), ServerSettings(served_model_names=("fake",))))
    assert api.get("/health").status_code == 200
    runtime.close()
    answer = api.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "engine stopped"})


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"prompt": "ab"}, [256, 97, 98]),
        ({"prompt": "ab", "add_special_tokens": False}, [97, 98]),
        ({"prompt": "", "add_special_tokens": False}, []),
        ({"messages": [{"role": "user", "content": "a"}]}, list(b"user: a\nassistant:")),
    ],
)
def test_tokenize(api: TestClient, body: dict[str, Any], tokens: list[int]):
    assert api.post("/tokenize", json=body).json() == {"count": len(tokens), "max_model_len": 256, "tokens": tokens, "token_strs": None}


def test_token_names(api: TestClient):
    answer = api.post("/tokenize", json={"prompt": "hé", "add_special_tokens": False, "return_token_strs": True}).json()
    assert answer["token_strs"] == ["h", "\ufffd", "\ufffd"]


@pytest.mark.parametrize(("tokens", "text"), [([104, 105], "hi"), ([], ""), ([0xC3, 0xA9], "é"), ([0xC3], "\ufffd")])
def test_detokenize(api: TestClient, tokens: list[int], text: str):
    assert api.post("/detokenize", json={"tokens": tokens}).json() == {"prompt": text}


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": "a", "messages": [{"role": "user", "content": "a"}]}, "prompt"),
        ("/tokenize", {"promt": "a"}, "promt"),
        ("/tokenize", {"messages": []}, "messages"),
        ("/tokenize", {"prompt": "a", "add_generation_prompt": True}, "add_generation_prompt"),
        ("/tokenize", {"messages": [{"role": "user", "content": "a"}], "continue_final_message": True}, "continue_final_message"),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": [300]}, "tokens"),
        ("/detokenize", {"tokens": ["a"]}, "tokens[0]"),
        ("/detokenize", {"tokens": [1], "model": 5}, "model"),
    ],
)
def test_bad_bodies(api: TestClient, path: str, body: dict[str, Any], param: str):
    answer = api.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_a_real_tokenizer_there_and_back(server: Server):
    with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {API_KEY}"}) as real:
        text = "Grüße, 世界! 🙂"
        tokens = real.post("/tokenize", json={"prompt": text, "model": "small"}).json()["tokens"]
        assert real.post("/detokenize", json={"tokens": tokens, "model": "small"}).json() == {"prompt": text}
        chat = real.post("/tokenize", json={"messages": [{"role": "user", "content": text}]}).json()
        rendered = real.post("/detokenize", json={"tokens": chat["tokens"]}).json()["prompt"]
        assert text in rendered and rendered.endswith("<|im_start|>assistant\n")
        bare = {"messages": [{"role": "user", "content": text}], "add_generation_prompt": False}
        assert real.post("/tokenize", json=bare).json()["count"] < chat["count"]
