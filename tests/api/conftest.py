"""The small real model and a server with it, made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from api_processes import API_KEY, MODEL, Server

from formcast.api.cli.main import main


@pytest.fixture(scope="session")
def model() -> str:
    """The name of a small instruct model that is in the store; fetched if it is not. A failure to fetch it is a failure."""
    assert main(["pull", MODEL, "--quiet"]) == 0
    return MODEL


@pytest.fixture(scope="session")
def server(model: str) -> Iterator[Server]:
    """A server that all tests share; they may not stop it."""
    started = Server.serve(
        model, "--api-key", API_KEY, "--served-model-name", "small", model, "--max-model-len", "2048", "--max-num-seqs", "16"
    )
    yield started
    started.kill()


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text('{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": false}')
    return path
