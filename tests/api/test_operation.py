"""Running a server: ids, logs, CORS, keys, limits, sockets, TLS."""

from __future__ import annotations

import json
import logging
import select
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from api_fakes import echoes, fake_runtime, hangs, says
from api_processes import Server, fake_server
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from formcast.api.async_engine import AsyncLLM
from formcast.api.runtime import Runtime
from formcast.api.server.app import create_app, service_routes
from formcast.api.server.logs import JsonFormatter, TextFormatter
from formcast.api.server.service import Service
from formcast.api.server.settings import ServerSettings
from formcast.api.server.transport import bind_unix
from formcast.engine.request import GenerationError

CHAT = "/v1/chat/completions"
SECRET = "the secret of the prompt"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": SECRET}]}


def client(runtime: Runtime | None = None, *, root_path: str = "", **settings: Any) -> TestClient:
    app = create_app(
        AsyncLLM(runtime or fake_runtime(echoes)), ServerSettings(served_model_names=("fake",), root_path=root_path, **settings)
    )
    return TestClient(app, raise_server_exceptions=False, root_path=root_path)


# --- request ids -------------------------------------------------------------------------------------------------------


def test_a_request_keeps_its_id():
    assert client().post(CHAT, json=HELLO, headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"


@pytest.mark.parametrize("given", [None, "", "with space", "x" * 129, "é".encode().decode("latin-1")])
def test_a_request_without_a_usable_id_gets_one(given: str | None):
    api = client()
    headers = [] if given is None else [(b"x-request-id", given.encode("latin-1"))]
    ids = {api.get("/version", headers=headers).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2 and all(len(value) == 32 for value in ids)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [(CHAT, {"zzz": 1}, 400), ("/nothing", {}, 404), ("/health", {}, 405), (CHAT, HELLO | {"stream": True}, 200)],
)
def test_every_answer_has_an_id(path: str, body: dict[str, Any], status: int):
    answer = client().post(path, json=body)
    assert (answer.status_code, len(answer.headers["x-request-id"])) == (status, 32)


def test_refused_strangers_and_surprises_have_ids_too():
    def surprise(request: Any) -> Any:
        raise ZeroDivisionError

    assert client(api_keys=("k",)).get("/version").headers["x-request-id"]
    answer = client(fake_runtime(surprise)).post(CHAT, json=HELLO)
    assert answer.status_code == 500 and answer.headers["x-request-id"]


# --- logs --------------------------------------------------------------------------------------------------------------


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [json.loads(JsonFormatter().format(record)) for record in caplog.records if record.name == "formcast.requests"]


def test_one_line_a_request_without_its_text(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "formcast.requests")
    client(fake_runtime(says("answer"))).post(CHAT, json=HELLO | {"user": "me"}, headers={"x-request-id": "r1"})
    (line,) = logged(caplog)
    assert line["request_id"] == "r1"
    assert (line["method"], line["path"], line["status"]) == ("POST", CHAT, 200)
    assert line["generated_tokens"] == 6 and line["finish_reasons"] == ["stop"] and line["error"] is None
    assert line["level"] == "info" and line["time"].endswith("+00:00") and line["seconds"] >= 0
    assert SECRET not in json.dumps(line) and "answer" not in json.dumps(line)


def test_prompts_are_logged_if_asked_for(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "formcast.requests")
    client(log_prompts=True).post(CHAT, json=HELLO)
    assert logged(caplog)[0]["prompts"] == [f"user: {SECRET}\nassistant:"]


def test_errors_are_logged_by_their_code(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "formcast.requests")
    client().post(CHAT, json=HELLO | {SECRET: 1})
    runtime = fake_runtime(says("h", finish_reason="error", error=GenerationError("boom")))
    client(runtime).post(CHAT, json=HELLO | {"stream": True})
    refused, broken = logged(caplog)
    assert (refused["status"], refused["error"]) == (400, "unknown_parameter")
    assert (broken["status"], broken["error"]) == (200, "generation_failed")
    assert SECRET not in json.dumps([refused, broken])


def test_log_lines_hold_no_line_breaks():
    record = logging.LogRecord("formcast.x", logging.ERROR, "", 0, "two\nlines", (), None)
    record.fields = {"path": "/a\nb"}  # type: ignore[attr-defined]
    assert "\n" not in JsonFormatter().format(record)
    assert '"/a\\nb"' in TextFormatter().format(record)


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()], ids=["json", "text"])
def test_no_request_forges_a_log_line(formatter: logging.Formatter, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    forged = "x\nINFO formcast.requests: request\r\u2028\x1b[2J"
    api = client(log_prompts=True)
    api.get("/v1/models/" + quote(forged))
    api.post("/" + quote(forged), headers={"x-request-id": "a\tb"})
    api.post(CHAT, json=HELLO | {"model": forged})
    api.post(CHAT, json={"messages": [{"role": "user", "content": forged}]})
    lines = [formatter.format(record) for record in caplog.records if record.name.startswith("formcast")]
    assert len(lines) == 4
    assert all(line.isprintable() and line.isascii() for line in lines)


TEXT_LINE = pytest.param("text", "INFO formcast.requests: request request_id=", marks=pytest.mark.slow)


@pytest.mark.parametrize(("log_format", "begins"), [("json", "{"), TEXT_LINE])
def test_a_server_process_logs_requests(log_format: str, begins: str):
    with fake_server("echoes", {"log_level": "info", "log_format": log_format}) as server:
        httpx.post(f"{server.url}{CHAT}", json=HELLO)
        _, rest = server.stop(15)
    lines = [line for line in rest.splitlines() if line]
    assert len(lines) == 1 and lines[0].startswith(begins)
    assert SECRET not in rest


# --- CORS --------------------------------------------------------------------------------------------------------------

ORIGIN = {"origin": "https://page.example"}
PREFLIGHT = ORIGIN | {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}


def test_web_pages_may_not_call_by_default():
    api = client()
    assert api.options(CHAT, headers=PREFLIGHT).status_code == 405
    assert "access-control-allow-origin" not in api.get("/version", headers=ORIGIN).headers


@pytest.mark.parametrize(("allowed", "expected"), [(("https://page.example",), "https://page.example"), (("*",), "*")])
def test_allowed_pages_may_call_even_where_keys_are_needed(allowed: tuple[str, ...], expected: str):
    api = client(allowed_origins=allowed, api_keys=("k",))
    preflight = api.options(CHAT, headers=PREFLIGHT)
    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, expected)
    assert api.get("/version", headers=ORIGIN).status_code == 401
    answer = api.get("/version", headers=ORIGIN | {"authorization": "Bearer k"})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, expected)


def test_other_pages_may_not_call():
    api = client(allowed_origins=("https://other.example",))
    assert "access-control-allow-origin" not in api.get("/version", headers=ORIGIN).headers


# --- keys --------------------------------------------------------------------------------------------------------------

PATHS = ["/v1/models", "/version", "/metrics", "/nothing", "/health/", "//health", "/HEALTH", "/health/../version", "http://x/health"]


@pytest.fixture(scope="module")
def locked() -> Iterator[tuple[str, int]]:
    """The address of a server process that needs a key."""
    with fake_server("echoes", api_keys=["k"]) as server:
        yield address(server)


def address(server: Server) -> tuple[str, int]:
    host, port = server.url.partition("://")[2].split(":")
    return host, int(port)


def ask(place: tuple[str, int], path: str, *headers: str) -> bytes:
    """The status line of a hand-made request."""
    with socket.create_connection(place, timeout=30) as connection:
        connection.sendall("\r\n".join([f"GET {path} HTTP/1.1", *headers, "Connection: close", "", ""]).encode())
        return connection.makefile("rb").readline()


@pytest.mark.parametrize("path", PATHS)
def test_every_path_but_health_needs_a_key(locked: tuple[str, int], path: str):
    assert b" 401 " in ask(locked, path, "Host: x/health", "X-Forwarded-Path: /health", "X-Original-URL: /health")


@pytest.mark.parametrize("path", ["/health", "/health?x=/version"])
def test_health_is_open(locked: tuple[str, int], path: str):
    assert b" 200 " in ask(locked, path, "Host: x")


def test_every_route_needs_a_key():
    service = Service(AsyncLLM(fake_runtime(echoes)), ServerSettings(served_model_names=("fake",)))
    api = client(api_keys=("k", "kk"))
    places = {(route.path, method) for route in service_routes(service) for method in route.methods or ()} - {("/health", "GET"), ("/health", "HEAD")}
    assert len(places) > 20
    for path, method in sorted(places):
        for given in (None, "", "k", "Bearer", "Bearer ", "Bearer kkk", "Basic k", "bearer k\x00"):
            answer = api.request(method, path, headers={} if given is None else {"authorization": given})
            assert answer.status_code == 401, (path, method, given)
        assert api.request(method, path, headers={"authorization": "Bearer kk"}).status_code != 401
        assert api.request(method, path, params={"api_key": "k"}, headers={"cookie": "authorization=Bearer k"}).status_code == 401


def test_a_websocket_that_reaches_the_application_is_refused():
    with pytest.raises(WebSocketDisconnect) as refused, client(api_keys=("k",)).websocket_connect("/v1/models"):
        pass
    assert refused.value.code == 1008


def test_websockets_are_not_a_way_in(locked: tuple[str, int]):
    upgrade = (
        "Host: x",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    )
    assert b" 401 " in ask(locked, "/v1/models", *upgrade)


def test_a_proxy_path_plays_no_part_in_keys():
    api = client(root_path="/llm", api_keys=("k",))
    assert api.get("/health").status_code == 200
    assert api.get("/version").status_code == 401
    assert api.get("/version", headers={"authorization": "Bearer k"}).status_code == 200


# --- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHAT, HELLO | {"n": 129}, "n"),
        (CHAT, HELLO | {"n": 9}, "n"),
        ("/v1/completions", {"prompt": ["a"] * 5, "n": 2}, "n"),
        (CHAT, HELLO | {"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        (CHAT, HELLO | {"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
        (CHAT, HELLO | {"metadata": {"k": "x" * 513}}, "metadata"),
        (CHAT, HELLO | {"logit_bias": {str(number): 1 for number in range(1025)}}, "logit_bias"),
        (CHAT, HELLO | {"stop_token_ids": [1] * 1025}, "stop_token_ids"),
    ],
)
def test_lists_are_bounded(path: str, body: dict[str, Any], param: str):
    answer = client(max_answers=8).post(path, json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text


def test_large_heads_are_refused(locked: tuple[str, int]):
    line = ask(locked, "/health", "Host: x", "X-Long: " + "x" * 200_000)
    assert line == b"" or b" 400 " in line or b" 431 " in line
    assert b" 200 " in ask(locked, "/health", "Host: x")


@pytest.fixture(scope="module")
def impatient() -> Iterator[Server]:
    with fake_server("floods", header_timeout_s=0.2, body_timeout_s=0.2, write_timeout_s=0.4) as server:
        yield server


def test_a_head_that_never_ends_is_cut_off(impatient: Server):
    with socket.create_connection(address(impatient), timeout=30) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        assert connection.recv(1) == b""
    with socket.create_connection(address(impatient), timeout=30) as silent:
        assert silent.recv(1) == b""
    assert httpx.get(f"{impatient.url}/health").status_code == 200


def test_a_body_that_never_ends_is_a_408(impatient: Server):
    with socket.create_connection(address(impatient), timeout=30) as connection:
        connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert b" 408 " in connection.makefile("rb").readline()


@pytest.mark.parametrize(("most_s", "headers"), [(0.05, {}), (None, {"X-Request-Timeout": "0.05"}), (50, {"X-Request-Timeout": "0.05"})])
def test_a_schema_that_takes_too_long_to_read_is_given_up(most_s: float | None, headers: dict[str, str]):
    schema = {"oneOf": [{"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]} for i in range(2000)]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    answer = client(request_timeout_s=most_s).post(CHAT, json=HELLO | {"response_format": form}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "deadline_exceeded")
    assert "was not read after 0.05 s" in answer.text


@pytest.mark.parametrize("of_the_request", [False, True], ids=["server", "request"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_takes_too_long_is_ended(stream: bool, of_the_request: bool):
    runtime = fake_runtime(hangs("a" if stream else ""))
    timeout = {"X-Request-Timeout": "0.05" if of_the_request else "50"}
    answer = client(runtime, request_timeout_s=50 if of_the_request else 0.05).post(CHAT, json=HELLO | {"stream": stream}, headers=timeout)
    error = json.loads(answer.text.split("data: ")[-1])["error"] if stream else answer.json()["error"]
    assert (answer.status_code, error["code"]) == (200 if stream else 504, "deadline_exceeded")
    assert "0.05 s" in error["message"]


@pytest.mark.parametrize("timeout", ["soon", "0", "-1", "nan", "inf", "1_0", "+3", "1e999", ""])
def test_a_timeout_that_is_no_time_is_a_400(timeout: str):
    answer = client(fake_runtime(says("a"))).post(CHAT, json=HELLO, headers={"X-Request-Timeout": timeout})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "X-Request-Timeout")
    loading = client(fake_runtime(says("a"))).post("/api/generate", json={"model": "fake"}, headers={"X-Request-Timeout": timeout})
    assert loading.status_code == 400


@pytest.mark.parametrize("stream", [False, True])
def test_a_reader_that_stalls_is_cut_off(impatient: Server, stream: bool):
    """The engine has long written its answer, the client never reads: its connection ends, and whoever reads gets everything."""
    body = json.dumps(HELLO | {"stream": stream}).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def ask() -> socket.socket:
        connection = socket.socket()
        connection.settimeout(30)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(address(impatient))
        connection.sendall(head + body)
        return connection

    with ask() as slow, ask() as stalled:
        taken = bytearray()
        while piece := slow.recv(1 << 16):
            taken += piece
        assert len(taken) > 10_000_000 and taken.endswith(b"[DONE]\n\n\r\n0\r\n\r\n" if stream else b"}")
        wait_for_a_cut(stalled)
    assert httpx.get(f"{impatient.url}/health").status_code == 200


def wait_for_a_cut(connection: socket.socket) -> None:
    """Without reading: reading would be a sign of life."""
    poll = select.poll()
    poll.register(connection, 0)
    (found,) = poll.poll(30_000)
    assert found[1] & (select.POLLERR | select.POLLHUP)


def test_a_full_queue_says_when_to_come_back():
    answer = client(fake_runtime(hangs(), max_live=0)).post(CHAT, json=HELLO)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_overloaded")
    assert int(answer.headers["retry-after"]) > 0


# --- sockets and TLS ---------------------------------------------------------------------------------------------------


def test_a_unix_socket(tmp_path: Path):
    path = str(tmp_path / "s.sock")
    with bind_unix(path) as first:
        first.listen()
        with pytest.raises(OSError), bind_unix(path):
            pass
    assert not Path(path).exists()
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(path)
    stale.close()
    with bind_unix(path):
        assert Path(path).stat().st_mode & 0o777 == 0o660


def test_a_file_is_not_taken_for_a_socket(tmp_path: Path):
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(OSError), bind_unix(str(path)):
        pass
    assert path.read_text() == "data"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    files = str(folder / "cert.pem"), str(folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *names, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def test_tls(certificate: tuple[str, str]):
    cert, key = certificate
    with fake_server("echoes", {"tls_certificate": cert, "tls_key": key}) as server:
        assert server.url.startswith("https://")
        context = ssl.create_default_context(cafile=cert)
        answer = httpx.post(f"{server.url}{CHAT}", json=HELLO, verify=context)
        assert answer.status_code == 200
