"""The examples run as their docstrings say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
READY = "formcast: ready on "
NEED_A_MODEL = {"classify.py", "extract.py", "ollama_client.py", "openai_client.py", "responses_client.py"}

slow = pytest.mark.slow


def run_example(name: str, *args: str) -> str:
    """What an example prints on standard output."""
    done = subprocess.run([sys.executable, EXAMPLES / name, *args], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def server(model: str) -> Iterator[str]:
    """A `formcast serve` process; gives its base URL."""
    command = [sys.executable, "-m", "formcast.api.cli.main", "serve", model, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if READY in line:
                    yield line.partition(READY)[2].strip()
                    break
            else:
                pytest.fail("the server ended before it was ready")
        finally:
            process.terminate()
            process.communicate(timeout=30)


def test_every_example_is_run_here():
    assert {file.name for file in EXAMPLES.glob("*.py")} == NEED_A_MODEL


@slow
def test_extract():
    printed = run_example("extract.py")
    assert printed.startswith("Sender(name=")


@slow
def test_classify():
    lines = run_example("classify.py").splitlines()
    assert len(lines) == 3
    assert {line.split()[0] for line in lines} <= {"billing", "shipping", "technical", "other"}


@slow
def test_openai_client():
    with server("smollm2-135m") as url:
        *streamed, parsed = run_example("openai_client.py", f"{url}/v1").splitlines()
    assert "".join(streamed).strip()
    assert parsed.startswith("Review(product=")


@slow
def test_clients_of_other_protocols():
    with server("smollm2-135m") as url:
        assert run_example("ollama_client.py", url).startswith("Review(product=")
        *_, parsed = run_example("responses_client.py", f"{url}/v1").splitlines()
    assert parsed.startswith("Verdict(kind=")
