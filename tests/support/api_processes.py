"""Real `formcast` processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MODEL = "smollm2-135m"
FORMCAST = (sys.executable, "-m", "formcast.api.cli.main")
API_KEY = "a-key-for-tests"


def run_formcast(*arguments: str, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run([*FORMCAST, *arguments], input=data, capture_output=True, timeout=240, check=False)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@dataclass(kw_only=True)
class Server:
    """A server process that says on stderr where it is ready.

    Attributes:
        url: as it announced it.
        lines: what it has written to stderr until it was ready.
    """

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    url: str = ""

    @classmethod
    def serve(cls, *arguments: str) -> Server:
        """`formcast serve` on a free port."""
        return cls.start(*FORMCAST, "serve", *arguments, "--port", "0")

    @classmethod
    def start(cls, *command: str) -> Server:
        server = cls(process=subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True))
        server._wait_until_ready()
        return server

    def _wait_until_ready(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            if "ready on http" in line:
                self.url = line.split()[-1]
                return
        raise RuntimeError(f"the server ended with {self.process.wait()}: {self.lines}")

    def stop(self, number: int) -> tuple[int, str]:
        """Send a signal and wait; the exit code and the rest of stderr."""
        self.process.send_signal(number)
        _, rest = self.process.communicate(timeout=60)
        return self.process.returncode, rest

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@contextmanager
def fake_server(script: str = "hangs", transport: dict[str, Any] | None = None, **settings: Any) -> Iterator[Server]:
    """A server process over a scripted engine, up at once; see `api_fake_server`."""
    program = str(Path(__file__).with_name("api_fake_server.py"))
    server = Server.start(sys.executable, program, script, json.dumps(settings), *([json.dumps(transport)] if transport else []))
    try:
        yield server
    finally:
        server.kill()
