"""How a server process ends. The engine is a fake, so that a process is up at once."""

from __future__ import annotations

import json
import signal

import httpx
import pytest
from api_processes import Server, fake_server

BODY = {"messages": [{"role": "user", "content": "x"}], "stream": True}


def test_a_signal_ends_an_idle_server():
    with fake_server(shutdown_grace_s=30) as server:
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert server.stop(signal.SIGTERM) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_ends_running_streams_with_an_error_event(number: int):
    with (
        fake_server(shutdown_grace_s=0) as server,
        httpx.stream("POST", f"{server.url}/v1/chat/completions", json=BODY, timeout=30) as answer,
    ):
        lines = answer.iter_lines()
        next(lines)
        assert server.stop(number) == (0, "")
        *_, last = [line for line in lines if line]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "aborted"


def test_a_second_signal_does_not_wait_for_the_grace():
    with (
        fake_server(shutdown_grace_s=1000) as server,
        httpx.stream("POST", f"{server.url}/v1/chat/completions", json=BODY, timeout=30) as answer,
    ):
        lines = answer.iter_lines()
        next(lines)
        server.process.send_signal(signal.SIGINT)
        until_refused(server)
        assert server.stop(signal.SIGINT) == (0, "")
        *_, last = [line for line in lines if line]
    assert "error" in json.loads(last.removeprefix("data: "))


def until_refused(server: Server) -> None:
    """Wait until the server has taken note of the first signal: it accepts no more connections."""
    while True:
        try:
            httpx.get(f"{server.url}/health")
        except httpx.TransportError:
            return
