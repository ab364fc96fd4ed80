"""A web server on this machine that serves bytes from memory and can misbehave on purpose."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """What to serve, how, and what was asked.

    Attributes:
        files: content by path.
        supports_ranges: whether `Range` is honoured.
        cut_after: on each of the next requests, so many bytes are sent before the connection breaks.
        pause_after: on the next request, so many bytes are sent, `paused` is set, and `resume` is waited for.
        statuses: answers of the next requests instead of the file.
        requests: the path and the `Range` of every request so far.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    supports_ranges: bool = True
    cut_after: list[int] = field(default_factory=list)
    pause_after: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    paused: threading.Event = field(default_factory=threading.Event)
    resume: threading.Event = field(default_factory=threading.Event)
    base_url: str = ""

    def url(self, path: str) -> str:
        return f"{self.base_url}{path}"


@contextmanager
def running(server: FileServer) -> Iterator[FileServer]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    server.base_url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.resume.set()
        httpd.shutdown()
        thread.join()
        httpd.server_close()


def _handler(server: FileServer) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            server.requests.append((self.path, wanted))
            content = server.files.get(self.path)
            if server.statuses or content is None:
                self.send_error(server.statuses.pop(0) if server.statuses else 404)
                return
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and server.supports_ranges else 0
            if start >= len(content) > 0:
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            self._send(content[start:])

        def _send(self, body: bytes) -> None:
            if server.pause_after:
                head = server.pause_after.pop(0)
                self.wfile.write(body[:head])
                self.wfile.flush()
                server.paused.set()
                server.resume.wait()
                body = body[head:]
            if server.cut_after:
                body = body[: server.cut_after.pop(0)]
                self.close_connection = True
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the client went away, which is what some tests are about

        def log_message(self, *args: object) -> None:
            pass

    return Handler
